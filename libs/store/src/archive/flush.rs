//! Manifest row and prune in one transaction (put-before-prune). Beside erasure this is the only place that deletes
//! complete entries.

use std::time::Instant;

use fail::fail_point;
use sqlx::PgConnection;
use wakelog_model::SessionId;

use super::manifest::{OnRecordedCopy, insert_segment};
use super::rows::{ArchivedObject, Flush, Flushed, Recorded, Refusal, SegmentKind, SnapshotCause, Staging};
use super::{LockedSession, commit, lock_session};
use crate::error::{During, convert};
use crate::numbers::to_bigint;
use crate::store::give_up;
use crate::{Error, Store};

const FLUSH: &str = "flush";
const SNAPSHOT_SEGMENT: &str = "snapshot segment";

impl Store {
    /// Records the object and prunes the rows that it holds: both or neither.
    ///
    /// What the caller decided on may be old, so everything is decided again under the lock of the session's row:
    /// whether the session is erased, whether the object is still protected from deletion, whether the hot tail still
    /// holds exactly the rows that the object was made of, and the kind. A segment that a snapshot recorded under the
    /// same key takes the new kind.
    ///
    /// [`Error::ArchiveCommitUnknown`]: ask [`Self::segment`] whether it is recorded, and with which kind. "No" is not
    /// final, the COMMIT may still be on its way; but whatever is tried next of this session or this object waits for
    /// it and finds it.
    /// [`Error::Bug`]: the range is not one of complete entries, or a checkpoint is inside it.
    pub async fn flush(&self, flush: &Flush) -> Result<Flushed, Error> {
        let begun = Instant::now();
        let outcome = self.flush_once(flush).await;
        let name = match &outcome {
            Ok(Flushed::Done { kind, .. }) => kind.name(),
            Ok(Flushed::Refused(refusal)) => refusal.name(),
            Err(Error::ArchiveCommitUnknown { .. }) => "commit_unknown",
            Err(_) => "failed",
        };
        metrics::counter!("wakelog_store_flushes_total", "outcome" => name).increment(1);
        metrics::histogram!("wakelog_store_flush_seconds").record(begun.elapsed().as_secs_f64());
        outcome
    }

    async fn flush_once(&self, flush: &Flush) -> Result<Flushed, Error> {
        let Flush {
            session,
            staging,
            object,
        } = flush;
        let session = *session;
        let mut transaction = self.begin().await?;
        let locked = lock_session(&mut transaction, session, During::Archive(FLUSH)).await?;
        if locked.erased {
            give_up(transaction).await;
            return Ok(Flushed::Refused(Refusal::Erased));
        }
        check_range(session, object, locked)?;
        let kind = kind_of_prune(object, locked)?;
        if !consume_staging(&mut transaction, FLUSH, session, *staging, &object.key).await? {
            give_up(transaction).await;
            return Ok(Flushed::Refused(Refusal::NotStaged));
        }
        let recorded = insert_segment(
            &mut transaction,
            FLUSH,
            session,
            object,
            kind,
            OnRecordedCopy::TakeOver,
        )
        .await?;
        if !recorded {
            // Only the staged row goes, which protects nothing any more.
            commit(transaction, FLUSH).await?;
            return Ok(Flushed::Refused(Refusal::AlreadyRecorded));
        }
        let found = delete_rows(&mut transaction, session, object).await?;
        if found != object.part_rows {
            give_up(transaction).await;
            return Ok(Flushed::Refused(Refusal::RowsMoved {
                expected: object.part_rows,
                found,
            }));
        }
        fail_point!("store::flush_after_delete", |_| Err(Error::Failpoint {
            name: "store::flush_after_delete"
        }));
        let remarked = remark_superseded(&mut transaction, session, locked).await?;
        fail_point!("store::flush_before_commit", |_| Err(Error::Failpoint {
            name: "store::flush_before_commit"
        }));
        commit(transaction, FLUSH).await?;
        fail_point!("store::flush_after_commit", |_| Err(
            Error::ArchiveCommitUnknown {
                what: FLUSH,
                reason: "failpoint store::flush_after_commit".to_owned()
            }
        ));
        Ok(Flushed::Done { kind, remarked })
    }

    /// Records a copy of entries that stay in the hot tail. The checks are those of [`Self::flush`], but for the rows.
    pub async fn record_snapshot_segment(
        &self,
        session: SessionId,
        staging: Staging,
        object: &ArchivedObject,
        cause: SnapshotCause,
    ) -> Result<Recorded, Error> {
        let mut transaction = self.begin().await?;
        let locked = lock_session(&mut transaction, session, During::Archive(SNAPSHOT_SEGMENT)).await?;
        if locked.erased {
            give_up(transaction).await;
            return Ok(Recorded::Refused(Refusal::Erased));
        }
        check_range(session, object, locked)?;
        if !consume_staging(&mut transaction, SNAPSHOT_SEGMENT, session, staging, &object.key).await? {
            give_up(transaction).await;
            return Ok(Recorded::Refused(Refusal::NotStaged));
        }
        let recorded = insert_segment(
            &mut transaction,
            SNAPSHOT_SEGMENT,
            session,
            object,
            cause.segment_kind(),
            OnRecordedCopy::Keep,
        )
        .await?;
        commit(transaction, SNAPSHOT_SEGMENT).await?;
        match recorded {
            true => Ok(Recorded::Done),
            false => Ok(Recorded::Refused(Refusal::AlreadyRecorded)),
        }
    }
}

impl Refusal {
    fn name(self) -> &'static str {
        match self {
            Self::Erased => "refused_erased",
            Self::NotStaged => "refused_not_staged",
            Self::AlreadyRecorded => "refused_already_recorded",
            Self::RowsMoved { .. } => "refused_rows_moved",
        }
    }
}

/// Complete entries only, and all of them.
fn check_range(session: SessionId, object: &ArchivedObject, locked: LockedSession) -> Result<(), Error> {
    let (min, max) = (object.min_entry_seq, object.max_entry_seq);
    let is_whole =
        min > 0 && max.checked_sub(min).and_then(|more| more.checked_add(1)) == Some(object.entries);
    if is_whole && max <= locked.last_entry_seq {
        return Ok(());
    }
    Err(Error::Bug(format!(
        "session {session}: a segment of {} entries from {min} to {max}, complete up to {}",
        object.entries, locked.last_entry_seq
    )))
}

/// By the checkpoint as it is now: one that came after the range was chosen supersedes the deltas before it.
fn kind_of_prune(object: &ArchivedObject, locked: LockedSession) -> Result<SegmentKind, Error> {
    let checkpoint = locked.last_checkpoint_seq;
    if object.max_entry_seq < checkpoint {
        return Ok(SegmentKind::Superseded);
    }
    if object.min_entry_seq > checkpoint {
        return Ok(SegmentKind::SafetyValve);
    }
    Err(Error::Bug(format!(
        "a flush of entries {} to {} would prune the last checkpoint, which is {checkpoint}",
        object.min_entry_seq, object.max_entry_seq
    )))
}

/// Whether the object was still protected by the very row that its PUT was staged with. Waits for somebody who
/// condemns it, and then finds it condemned.
async fn consume_staging(
    connection: &mut PgConnection,
    what: &'static str,
    session: SessionId,
    staging: Staging,
    key: &str,
) -> Result<bool, Error> {
    let consumed = sqlx::query(
        "DELETE FROM archive_staged_objects
         WHERE object_key = $1 AND session_id = $2 AND staging_id = $3 AND condemned_at IS NULL",
    )
    .bind(key)
    .bind(session.0)
    .bind(staging.0)
    .execute(connection)
    .await
    .map_err(|error| convert(During::Archive(what), error))?;
    Ok(consumed.rows_affected() == 1)
}

/// Deletes what the hot tail holds of the object's range. Complete entries are never added to, so the same number of
/// rows are the same rows.
async fn delete_rows(
    connection: &mut PgConnection,
    session: SessionId,
    object: &ArchivedObject,
) -> Result<u64, Error> {
    let deleted = sqlx::query(
        "DELETE FROM agent_session_transcript_entries
         WHERE session_id = $1 AND entry_seq BETWEEN $2 AND $3",
    )
    .bind(session.0)
    .bind(to_bigint("min_entry_seq", object.min_entry_seq)?)
    .bind(to_bigint("max_entry_seq", object.max_entry_seq)?)
    .execute(connection)
    .await
    .map_err(|error| convert(During::Archive(FLUSH), error))?;
    Ok(deleted.rows_affected())
}

/// Safety-valve segments that a checkpoint has superseded since: readers of a resume body need them no more.
async fn remark_superseded(
    connection: &mut PgConnection,
    session: SessionId,
    locked: LockedSession,
) -> Result<u64, Error> {
    let remarked = sqlx::query(
        "UPDATE agent_session_archive_segments SET kind = 'superseded'
         WHERE session_id = $1 AND kind = 'safety_valve' AND max_entry_seq < $2",
    )
    .bind(session.0)
    .bind(to_bigint("last_checkpoint_seq", locked.last_checkpoint_seq)?)
    .execute(connection)
    .await
    .map_err(|error| convert(During::Archive(FLUSH), error))?;
    Ok(remarked.rows_affected())
}

#[cfg(test)]
mod tests;
