//! From a state object to rows of the store, or the reason why not.

use bytes::Bytes;
use prost::Message as _;
use wakelog_archive::{Failure, ObjectName, ObjectStore, STATE_FORMAT, SnapshotKey};
use wakelog_fold::SessionState;
use wakelog_model::{Digest16, LifetimeId, SessionId, WriterNonce};
use wakelog_proto::v1::{ArchivedLifetime, ArchivedSession};
use wakelog_store::{AccessWrite, LifetimeWrite, RestoredSession, SessionWrite};

use crate::Error;
use crate::effects::session_write;

/// Bytes of a state object, at most: a lifetime has less than 300, and a session that was taken over a hundred thousand times
/// is none.
const LIMIT: u64 = 32 * 1024 * 1024;

/// A state that was read and makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchivedState {
    pub(super) restored: RestoredSession,
    /// The digests of the parts of the entry after the last complete one. The parts are an object of their own.
    pub(super) unfinished: Vec<Digest16>,
}

impl ArchivedState {
    pub(super) fn partition(&self) -> i32 {
        self.restored.session.partition
    }

    pub(super) fn next_offset(&self) -> i64 {
        i64::try_from(self.restored.next_offset).unwrap_or(i64::MAX)
    }
}

/// Reads a state object. The inner error says what is wrong with it.
pub(super) async fn read(
    objects: &ObjectStore,
    topic: &str,
    key: SnapshotKey,
) -> Result<Result<ArchivedState, String>, Error> {
    let name = ObjectName::State(key).to_string();
    match objects.get_bytes(&name, LIMIT).await {
        Ok(bytes) => Ok(decode(topic, key, bytes)),
        Err(error) => damage(error).map(Err),
    }
}

/// What is wrong with an object, if it is that and not the way to it.
pub(super) fn damage(error: wakelog_archive::Error) -> Result<String, Error> {
    use wakelog_archive::Error as Archive;
    let is_damage = matches!(
        error,
        Archive::TooLarge { .. }
            | Archive::SegmentDamaged { .. }
            | Archive::UnknownFormat { .. }
            | Archive::NotInSegment { .. }
    ) || matches!(error.failure(), Some(Failure::NotFound | Failure::Corrupt));
    match is_damage {
        true => Ok(error.to_string()),
        false => Err(error.into()),
    }
}

fn decode(topic: &str, key: SnapshotKey, bytes: Bytes) -> Result<ArchivedState, String> {
    let archived = ArchivedSession::decode(bytes).map_err(|error| error.to_string())?;
    if archived.format != STATE_FORMAT {
        return Err(format!(
            "its format has version {}, this build knows {STATE_FORMAT}",
            archived.format
        ));
    }
    if archived.topic != topic {
        return Err(format!("it is of topic {}", archived.topic));
    }
    let is_named_so = archived.session_id == key.session.to_string()
        && archived.incarnation == key.incarnation
        && archived.next_offset == key.offset;
    if !is_named_so {
        return Err("it is not the state that its name says".to_owned());
    }
    let state = SessionState::decode(&archived.fold_state).map_err(|error| error.to_string())?;
    let session = SessionWrite {
        opened_at_us: Some(archived.opened_at_us),
        updated_at_us: (archived.updated_at_us > 0).then_some(archived.updated_at_us),
        ..session_write(key.session, &state).map_err(|error| error.to_string())?
    };
    if session.partition != archived.partition {
        return Err("it names two partitions".to_owned());
    }
    let lifetime = state.lifetime();
    let unfinished = lifetime.map_or_else(Vec::new, |lifetime| lifetime.open_part_digests().to_vec());
    if unfinished.len() != archived.unfinished_parts as usize {
        return Err(format!(
            "{} parts are unfinished by its state, {} by itself",
            unfinished.len(),
            archived.unfinished_parts
        ));
    }
    let lifetimes = archived
        .lifetimes
        .iter()
        .map(|lifetime| lifetime_write(key.session, lifetime))
        .collect::<Result<Vec<_>, String>>()?;
    check_current(&session, &lifetimes)?;
    let access = state
        .access()
        .iter()
        .map(|(account, role)| AccessWrite {
            session: key.session,
            account: account.clone(),
            role: i32::from(*role),
        })
        .collect();
    Ok(ArchivedState {
        restored: RestoredSession {
            session,
            lifetimes,
            access,
            incarnation: archived.incarnation,
            next_offset: archived.next_offset,
        },
        unfinished,
    })
}

/// A fence that was lost would let an earlier writer in again (one-writer).
fn check_current(session: &SessionWrite, lifetimes: &[LifetimeWrite]) -> Result<(), String> {
    let generations = lifetimes.iter().map(|lifetime| lifetime.generation);
    if !generations.eq(1..=session.generation) {
        return Err(format!(
            "it has not exactly the lifetimes 1 to {}",
            session.generation
        ));
    }
    Ok(())
}

fn lifetime_write(session: SessionId, archived: &ArchivedLifetime) -> Result<LifetimeWrite, String> {
    let wrong = |error: wakelog_model::Error| error.to_string();
    let nonce = match archived.writer_nonce.as_ref() {
        [] => None,
        nonce => Some(WriterNonce::from_slice(nonce).map_err(wrong)?),
    };
    Ok(LifetimeWrite {
        session,
        generation: archived.generation,
        lifetime_id: LifetimeId::from_slice(&archived.lifetime_id).map_err(wrong)?,
        request_id: archived.request_id.clone(),
        base: archived.base,
        body_start: archived.body_start,
        nonce,
        applied_seq: archived.applied_seq,
        status: archived.status,
        bound_at_ms: Some(archived.bound_at_ms),
    })
}

#[cfg(test)]
pub(super) mod tests;
