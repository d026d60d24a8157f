//! Entries as the records that ingest makes of them, so that a raw producer publishes the very same bytes.

use bytes::Bytes;
use prost::Message as _;
use wakelog_model::{EntryDigester, encode_part, part_digest};
use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{EntryPart, SessionRecord};

use crate::pipeline::HeldSession;

/// A record of the topic.
#[derive(Debug, Clone)]
pub(crate) struct RawRecord {
    pub(crate) partition: i32,
    pub(crate) key: String,
    pub(crate) value: Vec<u8>,
}

/// The part of an entry of one part, as ingest makes it.
pub(crate) fn part_of_entry(session: &HeldSession, seq: u64, entry: &Bytes) -> EntryPart {
    let digest = part_digest(entry);
    let mut digester = EntryDigester::default();
    digester.push(digest);
    let (encoding, body) = encode_part(entry);
    EntryPart {
        lifetime_id: session.grant.lifetime_id.clone(),
        generation: session.grant.generation,
        writer_nonce: session.nonce.as_bytes().to_vec().into(),
        lifetime_seq: seq,
        part: 0,
        last: true,
        checkpoint: false,
        encoding: encoding as i32,
        plain_length: entry.len() as u32,
        part_digest: digest.as_bytes().to_vec().into(),
        body,
        part_count: digester.part_count(),
        entry_digest: digest.as_bytes().to_vec().into(),
    }
}

/// A part as a record.
pub(crate) fn record_of_part(session: &HeldSession, part: EntryPart) -> RawRecord {
    let record = SessionRecord {
        record: Some(Record::EntryPart(part)),
    };
    RawRecord {
        partition: session.partition,
        key: session.id.clone(),
        value: record.encode_to_vec(),
    }
}

/// The records of entries that are dealt out.
pub(crate) fn records_of(sessions: &[HeldSession], entries: &[Bytes], first_seq: u64) -> Vec<RawRecord> {
    dealt_out(sessions, entries, first_seq)
        .map(|(session, part)| record_of_part(session, part))
        .collect()
}

/// Entries dealt out to the sessions in turn, those of each numbered from `first_seq` on.
pub(crate) fn dealt_out<'a>(
    sessions: &'a [HeldSession],
    entries: &'a [Bytes],
    first_seq: u64,
) -> impl Iterator<Item = (&'a HeldSession, EntryPart)> {
    entries.iter().enumerate().map(move |(index, entry)| {
        let session = &sessions[index % sessions.len()];
        let seq = first_seq + (index / sessions.len()) as u64;
        (session, part_of_entry(session, seq, entry))
    })
}
