//! How a part becomes a record.

use bytes::Bytes;
use prost::Message as _;
use tokio::task::spawn_blocking;
use tonic::Status;
use wakelog_model::{EntryDigester, WriterNonce, encode_part, part_digest};
use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{EntryPart, SessionRecord};

use crate::auth::Identity;
use crate::refusals;

#[cfg(test)]
mod tests;

/// Digesting and compressing less than this is cheaper than handing it to another thread.
const INLINE_BYTES: usize = 32 * 1024;

/// What is the same on all parts of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryHead {
    pub identity: Identity,
    pub nonce: WriterNonce,
    pub seq: u64,
    pub checkpoint: bool,
}

/// A part as it came.
#[derive(Debug, Clone)]
pub(crate) struct PlainPart {
    pub number: u32,
    pub last: bool,
    pub content: Bytes,
}

/// Encodes a part as the value of a record, and hands the digester back with the part's digest in it.
pub(crate) async fn encode(
    head: EntryHead,
    part: PlainPart,
    digester: EntryDigester,
) -> Result<(Bytes, EntryDigester), Status> {
    off_thread_if_large(part.content.len(), move || encode_now(&head, &part, digester)).await
}

/// Takes a part's digest without encoding it: for a repeat.
pub(crate) async fn digest(content: Bytes, mut digester: EntryDigester) -> Result<EntryDigester, Status> {
    off_thread_if_large(content.len(), move || {
        digester.push(part_digest(&content));
        digester
    })
    .await
}

fn encode_now(head: &EntryHead, part: &PlainPart, mut digester: EntryDigester) -> (Bytes, EntryDigester) {
    let digest = part_digest(&part.content);
    digester.push(digest);
    let (encoding, body) = encode_part(&part.content);
    let entry_digest = digester.finish().filter(|_| part.last);
    let entry_part = EntryPart {
        lifetime_id: Bytes::copy_from_slice(head.identity.lifetime.as_bytes()),
        generation: head.identity.generation,
        writer_nonce: Bytes::copy_from_slice(head.nonce.as_bytes()),
        lifetime_seq: head.seq,
        part: part.number,
        last: part.last,
        checkpoint: head.checkpoint,
        encoding: encoding as i32,
        // A part has at most 512 KiB.
        plain_length: part.content.len() as u32,
        part_digest: Bytes::copy_from_slice(digest.as_bytes()),
        body,
        part_count: if part.last { digester.part_count() } else { 0 },
        entry_digest: entry_digest
            .map_or_else(Bytes::new, |digest| Bytes::copy_from_slice(digest.as_bytes())),
    };
    let record = SessionRecord {
        record: Some(Record::EntryPart(entry_part)),
    };
    (record.encode_to_vec().into(), digester)
}

async fn off_thread_if_large<T: Send + 'static>(
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Status> {
    if length <= INLINE_BYTES {
        return Ok(work());
    }
    spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "encoding a part did not end");
        refusals::unavailable("the part could not be encoded")
    })
}
