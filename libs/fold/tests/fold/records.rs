//! Builds well-formed records.

use bytes::Bytes;
use wakelog_fold::Context;
use wakelog_model::limits::PART_SIZE;
use wakelog_model::{LifetimeId, SessionId, entry_digest, part_digest};
use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{
    AccessChanged, AccessRole, EntryPart, LifetimeBound, LifetimeEnded, PartEncoding, SessionErased,
    SessionOpened, SessionRecord,
};

pub(crate) const PARTITION: i32 = 5;
pub(crate) const HERE: Context = Context {
    partition: PARTITION,
    root_erased: false,
};

/// The nonces of two writers.
pub(crate) const ANNE: u8 = 0xa1;
pub(crate) const BERT: u8 = 0xb2;

pub(crate) fn session() -> SessionId {
    SessionId::for_request("alice", "a session")
}

/// A variant of `SessionRecord`.
pub(crate) trait Variant: Clone {
    fn record(&self) -> SessionRecord;
}

macro_rules! variant {
    ($($name:ident),*) => {
        $(impl Variant for $name {
            fn record(&self) -> SessionRecord {
                SessionRecord { record: Some(Record::$name(self.clone())) }
            }
        })*
    };
}

variant!(
    SessionOpened,
    AccessChanged,
    LifetimeBound,
    EntryPart,
    LifetimeEnded,
    SessionErased
);

impl Variant for SessionRecord {
    fn record(&self) -> SessionRecord {
        self.clone()
    }
}

pub(crate) fn opened() -> SessionOpened {
    SessionOpened {
        owner: "alice".into(),
        labels: [
            ("project".into(), "wakelog".into()),
            ("empty".into(), String::new()),
        ]
        .into(),
        parent_session_id: SessionId::for_request("alice", "the parent").to_string(),
        subpath: "agents/helper".into(),
        partition: PARTITION,
    }
}

pub(crate) fn access(account: &str, role: AccessRole) -> AccessChanged {
    AccessChanged {
        account: account.into(),
        role: role.into(),
    }
}

pub(crate) fn bind(generation: u64, request_id: &str) -> LifetimeBound {
    let id = LifetimeId::for_bind(session(), request_id, generation);
    LifetimeBound {
        lifetime_id: Bytes::copy_from_slice(id.as_bytes()),
        generation,
        request_id: request_id.into(),
    }
}

pub(crate) fn end(lifetime: &LifetimeBound) -> LifetimeEnded {
    LifetimeEnded {
        lifetime_id: lifetime.lifetime_id.clone(),
    }
}

/// The parts of one entry. The fold does not look into bodies, so a part may say that it has 512 KiB while its body is
/// a few bytes.
pub(crate) fn entry(
    lifetime: &LifetimeBound,
    nonce: u8,
    lifetime_seq: u64,
    checkpoint: bool,
    bodies: &[impl AsRef<[u8]>],
) -> Vec<EntryPart> {
    let digests: Vec<_> = bodies.iter().map(|body| part_digest(body.as_ref())).collect();
    let whole = entry_digest(&digests).expect("an entry has parts");
    let part = |(number, body): (usize, &[u8])| {
        let last = number + 1 == bodies.len();
        EntryPart {
            lifetime_id: lifetime.lifetime_id.clone(),
            generation: lifetime.generation,
            writer_nonce: Bytes::copy_from_slice(&[nonce; 16]),
            lifetime_seq,
            part: number as u32,
            last,
            checkpoint,
            encoding: PartEncoding::Plain.into(),
            plain_length: if last { body.len() as u32 } else { PART_SIZE as u32 },
            part_digest: Bytes::copy_from_slice(digests[number].as_bytes()),
            body: Bytes::copy_from_slice(body),
            part_count: if last { bodies.len() as u32 } else { 0 },
            entry_digest: if last {
                Bytes::copy_from_slice(whole.as_bytes())
            } else {
                Bytes::new()
            },
        }
    };
    bodies.iter().map(AsRef::as_ref).enumerate().map(part).collect()
}

/// An entry of one part, which is no checkpoint.
pub(crate) fn delta(lifetime: &LifetimeBound, nonce: u8, lifetime_seq: u64, body: &str) -> EntryPart {
    entry(lifetime, nonce, lifetime_seq, false, &[body]).remove(0)
}

/// A checkpoint of one part.
pub(crate) fn checkpoint(lifetime: &LifetimeBound, nonce: u8, lifetime_seq: u64, body: &str) -> EntryPart {
    entry(lifetime, nonce, lifetime_seq, true, &[body]).remove(0)
}
