//! Records, batches and a store in memory, for the tests of this crate.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message as _;
use wakelog_fold::SessionState;
use wakelog_model::limits::PART_SIZE;
use wakelog_model::{Digest16, LifetimeId, SessionId, encode_part, entry_digest, part_digest};
use wakelog_proto::v1::session_record::Record as Variant;
use wakelog_proto::v1::{
    AccessChanged, AccessRole, EntryPart, LifetimeBound, LifetimeEnded, SessionErased, SessionOpened,
    SessionRecord,
};
use wakelog_store::{BatchWrites, LifetimeWrite, PartRow, QuarantinedRecord, SessionWrite};
use wakelog_stream::Record;

use crate::batch::{BatchPlan, fold_records};
use crate::commit_outcome::SentCommit;
use crate::decode::{Decoded, decode};
use crate::states::{Known, States};

pub(crate) const TOPIC: &str = "wakelog.transcript";
pub(crate) const PARTITION: i32 = 3;

/// Session `n`.
pub(crate) fn session(n: u8) -> SessionId {
    format!("00000000-0000-4000-8000-0000000000{n:02x}")
        .parse()
        .unwrap()
}

pub(crate) fn record(variant: Variant) -> SessionRecord {
    SessionRecord {
        record: Some(variant),
    }
}

pub(crate) fn opened(parent: Option<SessionId>) -> SessionRecord {
    opened_on(PARTITION, parent)
}

pub(crate) fn opened_on(partition: i32, parent: Option<SessionId>) -> SessionRecord {
    record(Variant::SessionOpened(SessionOpened {
        owner: "ada".to_owned(),
        labels: BTreeMap::from([("project".to_owned(), "engine".to_owned())]),
        parent_session_id: parent.map(|parent| parent.to_string()).unwrap_or_default(),
        subpath: String::new(),
        partition,
    }))
}

pub(crate) fn access(account: &str, role: AccessRole) -> SessionRecord {
    record(Variant::AccessChanged(AccessChanged {
        account: account.to_owned(),
        role: role.into(),
    }))
}

/// The request that binds `generation`.
fn request_id(generation: u64) -> String {
    format!("request-{generation}")
}

fn lifetime_id(session: SessionId, generation: u64) -> Bytes {
    let id = LifetimeId::for_bind(session, &request_id(generation), generation);
    Bytes::copy_from_slice(id.as_bytes())
}

pub(crate) fn bound(session: SessionId, generation: u64) -> SessionRecord {
    record(Variant::LifetimeBound(LifetimeBound {
        lifetime_id: lifetime_id(session, generation),
        generation,
        request_id: request_id(generation),
    }))
}

pub(crate) fn ended(session: SessionId, generation: u64) -> SessionRecord {
    record(Variant::LifetimeEnded(LifetimeEnded {
        lifetime_id: lifetime_id(session, generation),
    }))
}

pub(crate) fn erased() -> SessionRecord {
    record(Variant::SessionErased(SessionErased {}))
}

/// The plain bytes of part `part` of an entry whose parts are all made of `fill`.
fn plain_part(fill: u8, last: bool) -> Bytes {
    Bytes::from(vec![fill; if last { 40 } else { PART_SIZE }])
}

/// Part `part` of `parts` of an entry.
pub(crate) fn entry_part(
    session: SessionId,
    generation: u64,
    lifetime_seq: u64,
    (part, parts): (u32, u32),
    checkpoint: bool,
    fill: u8,
) -> SessionRecord {
    let last = part + 1 == parts;
    let plain = plain_part(fill, last);
    let (encoding, body) = encode_part(&plain);
    let digests: Vec<Digest16> = (0..parts)
        .map(|number| part_digest(&plain_part(fill, number + 1 == parts)))
        .collect();
    let whole = entry_digest(&digests).unwrap();
    record(Variant::EntryPart(EntryPart {
        lifetime_id: lifetime_id(session, generation),
        generation,
        writer_nonce: Bytes::copy_from_slice(&[generation as u8; 16]),
        lifetime_seq,
        part,
        last,
        checkpoint,
        encoding: encoding as i32,
        plain_length: plain.len() as u32,
        part_digest: Bytes::copy_from_slice(part_digest(&plain).as_bytes()),
        body,
        part_count: if last { parts } else { 0 },
        entry_digest: if last {
            Bytes::copy_from_slice(whole.as_bytes())
        } else {
            Bytes::new()
        },
    }))
}

/// An entry of one part.
pub(crate) fn entry(session: SessionId, generation: u64, lifetime_seq: u64, fill: u8) -> SessionRecord {
    entry_part(session, generation, lifetime_seq, (0, 1), false, fill)
}

pub(crate) fn log_record(offset: i64, session: SessionId, record: &SessionRecord) -> Record {
    let (key, value) = (
        Bytes::from(session.to_string()),
        Bytes::from(record.encode_to_vec()),
    );
    Record::new(PARTITION, offset, key, value, None)
}

pub(crate) fn raw_record(offset: i64, key: &str, value: &'static [u8]) -> Record {
    Record::new(
        PARTITION,
        offset,
        Bytes::from(key.to_owned()),
        Bytes::from_static(value),
        None,
    )
}

/// Folds batches one after the other into a store in memory, as the persister does.
#[derive(Debug, Default)]
pub(crate) struct Harness {
    pub(crate) store: MemoryStore,
    cached: Option<States>,
    next_offset: i64,
}

impl Harness {
    /// Folds one batch and writes it.
    pub(crate) fn batch(&mut self, records: &[(SessionId, SessionRecord)]) -> BatchWrites {
        let first = self.next_offset;
        let records = records
            .iter()
            .zip(first..)
            .map(|((session, record), offset)| log_record(offset, *session, record))
            .collect();
        self.batch_of(records)
    }

    /// The same of any records.
    pub(crate) fn batch_of(&mut self, records: Vec<Record>) -> BatchWrites {
        let decoded: Vec<Decoded> = records.iter().map(decode).collect();
        self.batch_of_decoded(&decoded)
    }

    pub(crate) fn batch_of_decoded(&mut self, decoded: &[Decoded]) -> BatchWrites {
        let to = self.next_offset + decoded.len() as i64;
        let plan = BatchPlan {
            topic: TOPIC,
            partition: PARTITION,
            offsets: SentCommit {
                epoch: 1,
                from: self.next_offset,
                to,
            },
            last_record_crc: 0,
            records: decoded,
        };
        let mut states = self.cached.take().unwrap_or_else(|| self.store.load());
        let (writes, _) = fold_records(&plan, &mut states).unwrap();
        self.store.write(&writes);
        self.cached = Some(states);
        self.next_offset = to;
        writes
    }

    /// Forgets what only a process knows.
    pub(crate) fn die(&mut self) {
        self.cached = None;
    }
}

/// What the store does with a batch, by its documentation: deletes first, then upserts and inserts, erasure last.
#[derive(Debug, Default)]
pub(crate) struct MemoryStore {
    pub(crate) sessions: BTreeMap<SessionId, SessionWrite>,
    pub(crate) gone: BTreeSet<SessionId>,
    pub(crate) lifetimes: BTreeMap<(SessionId, u64), LifetimeWrite>,
    pub(crate) access: BTreeMap<(SessionId, String), i32>,
    pub(crate) parts: BTreeMap<(SessionId, u64, u32), PartRow>,
    pub(crate) quarantined: Vec<QuarantinedRecord>,
}

impl MemoryStore {
    fn load(&self) -> States {
        let mut states = States::new(PARTITION);
        for (session, write) in &self.sessions {
            let state = SessionState::decode(&write.state).unwrap();
            states.insert(
                *session,
                Known {
                    state,
                    root_erased: self.gone.contains(session),
                },
            );
        }
        states
    }

    fn write(&mut self, writes: &BatchWrites) {
        for (session, entry_seq) in &writes.discarded_entries {
            self.parts
                .retain(|(of, seq, _), _| (of, seq) != (session, entry_seq));
        }
        let mut written = BTreeSet::new();
        for write in &writes.sessions {
            assert!(written.insert(write.session), "a session is written once a batch");
            self.sessions.insert(write.session, write.clone());
        }
        let mut written = BTreeSet::new();
        for write in &writes.lifetimes {
            assert!(
                written.insert((write.session, write.generation)),
                "a lifetime is written once a batch"
            );
            assert!(self.sessions.contains_key(&write.session));
            if let Some(stored) = self
                .lifetimes
                .insert((write.session, write.generation), write.clone())
            {
                let write_once = |write: &LifetimeWrite| (write.lifetime_id, write.base, write.body_start);
                assert_eq!(write_once(&stored), write_once(write));
                assert!(stored.applied_seq <= write.applied_seq);
            }
        }
        for write in &writes.access {
            let key = (write.session, write.account.clone());
            match write.role {
                0 => drop(self.access.remove(&key)),
                role => drop(self.access.insert(key, role)),
            }
        }
        for part in &writes.parts {
            let key = (part.session, part.entry_seq, part.part);
            assert!(
                self.parts.insert(key, part.clone()).is_none(),
                "key violation: {key:?}"
            );
        }
        self.quarantined.extend(writes.quarantined.iter().cloned());
        for session in &writes.erased {
            self.erase(*session);
        }
    }

    fn erase(&mut self, session: SessionId) {
        self.gone.insert(session);
        self.parts.retain(|(of, _, _), _| *of != session);
        let children: Vec<SessionId> = self
            .sessions
            .values()
            .filter(|write| write.parent == Some(session))
            .map(|write| write.session)
            .collect();
        for child in children {
            if !self.gone.contains(&child) {
                self.erase(child);
            }
        }
    }
}
