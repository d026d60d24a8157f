//! From a record of the log to something the fold can decide about, or the reason why not. Pure.
//!
//! Bodies are opened and checked here, before the fold, so that no state ever holds the digest of bytes that the hot
//! tail could not hand out again.

use bytes::Bytes;
use prost::Message as _;
use wakelog_model::{Digest16, SessionId, decode_part};
use wakelog_proto::v1::session_record::Record as Variant;
use wakelog_proto::v1::{EntryPart, SessionRecord};
use wakelog_stream::Record;

/// A record of the log, decoded as far as it can be.
#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub(crate) offset: i64,
    pub(crate) key: Bytes,
    pub(crate) raw: Bytes,
    /// Also set for a record that can't be folded, as long as its key is a session id: an erased session's records
    /// are not kept, whatever is wrong with them.
    pub(crate) session: Option<SessionId>,
    /// When the log took it, in milliseconds since 1970; `None`: it does not say.
    pub(crate) logged_at_ms: Option<u64>,
    pub(crate) content: Content,
}

/// What came of the value.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// The fold decides.
    Foldable(SessionRecord),
    /// It is put aside before the fold.
    Refused(Refused),
}

/// Why a record can't be folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: RefusedReason,
    pub(crate) detail: String,
}

/// The kinds of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedReason {
    /// The key is no session id, or the value is no `SessionRecord` that this build knows.
    Undecodable,
    /// The part's encoding is not one that this build knows.
    UnknownEncoding,
    /// The part's body is not what the part says it is.
    Malformed,
}

impl RefusedReason {
    /// The reason's stable name, in metrics and in the quarantine.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Undecodable => "undecodable",
            Self::UnknownEncoding => "unknown_encoding",
            Self::Malformed => "malformed",
        }
    }

    /// Whether a newer build may be able to read what this one can't. Only such records count towards the limit that
    /// stops a partition.
    pub(crate) fn may_be_a_bad_deploy(self) -> bool {
        match self {
            Self::Undecodable | Self::UnknownEncoding => true,
            Self::Malformed => false,
        }
    }
}

impl Decoded {
    /// The key, if the record counts towards the limit of undecodable records.
    pub(crate) fn undecodable_key(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Refused(refused) if refused.reason.may_be_a_bad_deploy() => Some(&self.key),
            _ => None,
        }
    }
}

/// Decodes one record.
pub(crate) fn decode(record: &Record) -> Decoded {
    let session = session_of(&record.key);
    let content = match &session {
        Err(refused) => Content::Refused(refused.clone()),
        Ok(_) => decode_value(&record.value).map_or_else(Content::Refused, Content::Foldable),
    };
    Decoded {
        offset: record.offset,
        key: record.key.clone(),
        raw: record.value.clone(),
        session: session.ok(),
        logged_at_ms: record.timestamp_ms.and_then(|at| u64::try_from(at).ok()),
        content,
    }
}

fn session_of(key: &[u8]) -> Result<SessionId, Refused> {
    let text = std::str::from_utf8(key).map_err(|_| undecodable("the key is not text"))?;
    text.parse()
        .map_err(|error| undecodable(format!("the key is not a session id: {error}")))
}

fn decode_value(value: &Bytes) -> Result<SessionRecord, Refused> {
    let record = SessionRecord::decode(value.clone())
        .map_err(|error| undecodable(format!("the value is not a session record: {error}")))?;
    match &record.record {
        None => Err(undecodable(
            "the session record holds no variant that this build knows",
        )),
        Some(Variant::EntryPart(part)) => check_body(part).map(|()| record),
        Some(_) => Ok(record),
    }
}

fn check_body(part: &EntryPart) -> Result<(), Refused> {
    let Some(digest) = Digest16::from_slice(&part.part_digest) else {
        // The fold calls it malformed and says how.
        return Ok(());
    };
    let refused = |reason: RefusedReason, error: wakelog_model::Error| Refused {
        reason,
        detail: error.to_string(),
    };
    match decode_part(part.encoding, &part.body, part.plain_length as usize, digest) {
        Ok(_) => Ok(()),
        Err(error @ wakelog_model::Error::UnknownEncoding { .. }) => {
            Err(refused(RefusedReason::UnknownEncoding, error))
        }
        Err(error) => Err(refused(RefusedReason::Malformed, error)),
    }
}

fn undecodable(detail: impl Into<String>) -> Refused {
    Refused {
        reason: RefusedReason::Undecodable,
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests;
