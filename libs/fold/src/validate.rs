//! Reading a record's fields, without any state: each function checks everything that can be wrong with a record by
//! itself, and hands out typed values.

use wakelog_model::limits::{
    MAX_ACCOUNT_BYTES, MAX_LABEL_KEY_BYTES, MAX_LABEL_VALUE_BYTES, MAX_LABELS, MAX_PARTS,
    MAX_REQUEST_ID_BYTES, MAX_SUBPATH_BYTES, PART_SIZE,
};
use wakelog_model::{Digest16, Encoding, LifetimeId, SessionId, WriterNonce, check_part_length};
use wakelog_proto::v1::{AccessChanged, AccessRole, EntryPart, LifetimeBound, SessionOpened};

use crate::{Malformed, Opened};

/// The largest number that the hot tail can store (a Postgres `bigint`).
pub(crate) const MAX_NUMBER: u64 = i64::MAX as u64;

/// The largest encoded part. An encoding may add to the plain bytes, but never more than this.
const MAX_BODY_BYTES: usize = PART_SIZE + 64 * 1024;

/// A well-formed `LifetimeBound`.
pub(crate) struct Bind<'a> {
    pub(crate) lifetime: LifetimeId,
    pub(crate) generation: u64,
    pub(crate) request_id: &'a str,
}

/// A well-formed `EntryPart`, without its body: the fold decides by digests.
pub(crate) struct Part {
    pub(crate) lifetime: LifetimeId,
    pub(crate) generation: u64,
    pub(crate) nonce: WriterNonce,
    pub(crate) lifetime_seq: u64,
    pub(crate) number: u32,
    pub(crate) checkpoint: bool,
    pub(crate) digest: Digest16,
    /// On the last part only.
    pub(crate) end: Option<EntryEnd>,
}

/// What an entry's last part says about the entry.
pub(crate) struct EntryEnd {
    pub(crate) part_count: u32,
    pub(crate) entry_digest: Digest16,
}

pub(crate) fn opened(record: &SessionOpened) -> Result<Opened, Malformed> {
    text("owner", &record.owner, MAX_ACCOUNT_BYTES)?;
    if record.labels.len() > MAX_LABELS {
        return Err(Malformed::TooManyLabels {
            limit: MAX_LABELS,
            actual: record.labels.len(),
        });
    }
    for (key, value) in &record.labels {
        text("label key", key, MAX_LABEL_KEY_BYTES)?;
        optional_text("label value", value, MAX_LABEL_VALUE_BYTES)?;
    }
    optional_text("subpath", &record.subpath, MAX_SUBPATH_BYTES)?;
    let parent = match record.parent_session_id.as_str() {
        "" => None,
        parent => Some(
            parent
                .parse::<SessionId>()
                .map_err(|_| Malformed::ParentNotASession)?,
        ),
    };
    Ok(Opened {
        owner: record.owner.clone(),
        labels: record.labels.clone(),
        parent,
        subpath: record.subpath.clone(),
        partition: record.partition,
    })
}

pub(crate) fn access(record: &AccessChanged) -> Result<(&str, AccessRole), Malformed> {
    account(&record.account)?;
    Ok((&record.account, role(record.role)?))
}

pub(crate) fn role(number: i32) -> Result<AccessRole, Malformed> {
    AccessRole::try_from(number).map_err(|_| Malformed::UnknownRole { number })
}

pub(crate) fn bind(session: SessionId, record: &LifetimeBound) -> Result<Bind<'_>, Malformed> {
    let lifetime = lifetime_id(&record.lifetime_id)?;
    let request_id = request_id(&record.request_id)?;
    let generation = generation(record.generation)?;
    if lifetime != LifetimeId::for_bind(session, request_id, generation) {
        return Err(Malformed::LifetimeIdNotDerived);
    }
    Ok(Bind {
        lifetime,
        generation,
        request_id,
    })
}

pub(crate) fn part(record: &EntryPart) -> Result<Part, Malformed> {
    if !(1..=MAX_NUMBER).contains(&record.lifetime_seq) {
        return Err(Malformed::SequenceOutOfRange {
            lifetime_seq: record.lifetime_seq,
        });
    }
    if record.part >= MAX_PARTS {
        return Err(Malformed::PartOutOfRange {
            part: record.part,
            limit: MAX_PARTS,
        });
    }
    if check_part_length(record.part, record.last, record.plain_length as usize).is_err() {
        let EntryPart {
            part,
            last,
            plain_length,
            ..
        } = *record;
        return Err(Malformed::PlainLength {
            part,
            last,
            plain_length,
        });
    }
    if Encoding::try_from(record.encoding).is_err() {
        return Err(Malformed::UnknownEncoding {
            number: record.encoding,
        });
    }
    if record.body.is_empty() {
        return Err(Malformed::BodyEmpty);
    }
    if record.body.len() > MAX_BODY_BYTES {
        return Err(Malformed::BodyTooLong {
            limit: MAX_BODY_BYTES,
            actual: record.body.len(),
        });
    }
    Ok(Part {
        lifetime: lifetime_id(&record.lifetime_id)?,
        generation: generation(record.generation)?,
        nonce: WriterNonce(sixteen("writer_nonce", &record.writer_nonce)?),
        lifetime_seq: record.lifetime_seq,
        number: record.part,
        checkpoint: record.checkpoint,
        digest: Digest16(sixteen("part_digest", &record.part_digest)?),
        end: entry_end(record)?,
    })
}

fn entry_end(record: &EntryPart) -> Result<Option<EntryEnd>, Malformed> {
    if record.last {
        if record.part_count == 0 {
            return Err(Malformed::PartCountMissing);
        }
        let entry_digest = Digest16(sixteen("entry_digest", &record.entry_digest)?);
        return Ok(Some(EntryEnd {
            part_count: record.part_count,
            entry_digest,
        }));
    }
    if record.part_count != 0 {
        return Err(Malformed::PartCountUnexpected {
            part_count: record.part_count,
        });
    }
    if !record.entry_digest.is_empty() {
        return Err(Malformed::EntryDigestUnexpected);
    }
    Ok(None)
}

pub(crate) fn lifetime_id(bytes: &[u8]) -> Result<LifetimeId, Malformed> {
    sixteen("lifetime_id", bytes).map(LifetimeId)
}

pub(crate) fn request_id(request_id: &str) -> Result<&str, Malformed> {
    text("request_id", request_id, MAX_REQUEST_ID_BYTES)?;
    Ok(request_id)
}

pub(crate) fn generation(generation: u64) -> Result<u64, Malformed> {
    if (1..=MAX_NUMBER).contains(&generation) {
        Ok(generation)
    } else {
        Err(Malformed::GenerationOutOfRange { generation })
    }
}

pub(crate) fn account(account: &str) -> Result<(), Malformed> {
    text("account", account, MAX_ACCOUNT_BYTES)
}

fn text(field: &'static str, value: &str, limit: usize) -> Result<(), Malformed> {
    if value.is_empty() {
        return Err(Malformed::TextEmpty { field });
    }
    optional_text(field, value, limit)
}

fn optional_text(field: &'static str, value: &str, limit: usize) -> Result<(), Malformed> {
    if value.len() > limit {
        return Err(Malformed::TextTooLong {
            field,
            limit,
            actual: value.len(),
        });
    }
    if value.contains('\0') {
        return Err(Malformed::TextWithNul { field });
    }
    Ok(())
}

pub(crate) fn sixteen(field: &'static str, bytes: &[u8]) -> Result<[u8; 16], Malformed> {
    bytes.try_into().map_err(|_| Malformed::Length {
        field,
        expected: 16,
        actual: bytes.len(),
    })
}
