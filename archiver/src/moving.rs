//! Moving entries out of the hot tail: sealed, staged, put, verified, and only then recorded and pruned, in one transaction
//! (put-before-prune). A death at any point leaves the rows where they were, or the record and no rows.

use wakelog_archive::SealedSegment;
use wakelog_model::SessionId;
use wakelog_store::{ArchivedObject, Flush, Flushed, Recorded, Refusal, SnapshotCause, Staged};

use crate::gather::Gathered;
use crate::shared::Shared;
use crate::uncovered::EntryRange;
use crate::{Error, failpoint, telemetry};

/// What becomes of the rows once the object is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// They are pruned.
    Prune,
    /// They stay: the object is a copy.
    Keep(SnapshotCause),
}

/// How moving a range came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// All of it is recorded.
    All,
    /// Another archiver, a checkpoint or an erasure came between: what is left has to be looked at anew.
    Overtaken,
}

impl Shared {
    /// Moves a run of entries, in as many segments as it takes.
    pub(crate) async fn move_run(
        &self,
        session: SessionId,
        (first, last): EntryRange,
        then: Then,
    ) -> Result<Moved, Error> {
        let lifetimes = self.lifetimes(session).await?;
        let mut next = first;
        while next <= last {
            let Some(gathered) = self.gather(session, (next, last), &lifetimes).await? else {
                return Ok(Moved::Overtaken);
            };
            next = gathered.segment.key.max_entry_seq + 1;
            if self.put_and_record(session, gathered, then).await? == Moved::Overtaken {
                return Ok(Moved::Overtaken);
            }
        }
        Ok(Moved::All)
    }

    async fn put_and_record(
        &self,
        session: SessionId,
        gathered: Gathered,
        then: Then,
    ) -> Result<Moved, Error> {
        let Gathered { segment, part_rows } = gathered;
        let key = segment.key.to_string();
        failpoint::reach(failpoint::BEFORE_STAGE)?;
        let staging = match self.store.stage_object(session, &key).await? {
            Staged::Ready(staging) => staging,
            // The object is being deleted as an orphan; it can be put again once that is over.
            Staged::Condemned => return Err(Error::Condemned { key }),
            Staged::Erased => return Ok(Moved::Overtaken),
        };
        failpoint::reach(failpoint::AFTER_STAGE)?;
        self.objects
            .put(&key, &segment.spool, segment.object_digest)
            .await?;
        failpoint::reach(failpoint::AFTER_PUT)?;
        let object = archived(&segment, key, part_rows);
        let bytes = object.object_bytes;
        let refusal = match then {
            Then::Prune => {
                let flush = Flush {
                    session,
                    staging,
                    object,
                };
                match self.flush(&flush).await? {
                    Flushed::Done { kind, remarked } => {
                        telemetry::archived(kind.name(), bytes);
                        tracing::info!(
                            %session,
                            first = segment.key.min_entry_seq,
                            last = segment.key.max_entry_seq,
                            kind = kind.name(),
                            remarked,
                            bytes,
                            "archived and pruned"
                        );
                        return Ok(Moved::All);
                    }
                    Flushed::Refused(refusal) => refusal,
                }
            }
            Then::Keep(cause) => {
                let kind = cause.segment_kind().name();
                match self.record_copy(session, staging, &object, cause).await? {
                    Recorded::Done => {
                        telemetry::archived(kind, bytes);
                        return Ok(Moved::All);
                    }
                    Recorded::Refused(refusal) => refusal,
                }
            }
        };
        telemetry::refused(&refusal);
        tracing::info!(
            %session,
            first = segment.key.min_entry_seq,
            last = segment.key.max_entry_seq,
            ?refusal,
            "an object was put and not recorded"
        );
        match refusal {
            // The very same object was recorded by another archiver, or by a flush of this one whose answer was lost.
            Refusal::AlreadyRecorded if then != Then::Prune => Ok(Moved::All),
            Refusal::AlreadyRecorded | Refusal::Erased | Refusal::NotStaged | Refusal::RowsMoved { .. } => {
                Ok(Moved::Overtaken)
            }
        }
    }

    /// A COMMIT without an answer is looked up: the manifest has the object or the rows are still there.
    async fn flush(&self, flush: &Flush) -> Result<Flushed, Error> {
        match self.store.flush(flush).await {
            Err(error @ wakelog_store::Error::ArchiveCommitUnknown { .. }) => {
                match self.store.segment(flush.session, &flush.object.key).await? {
                    Some(row) => Ok(Flushed::Done {
                        kind: row.kind,
                        remarked: 0,
                    }),
                    None => Err(error.into()),
                }
            }
            answered => Ok(answered?),
        }
    }

    async fn record_copy(
        &self,
        session: SessionId,
        staging: wakelog_store::Staging,
        object: &ArchivedObject,
        cause: SnapshotCause,
    ) -> Result<Recorded, Error> {
        match self
            .store
            .record_snapshot_segment(session, staging, object, cause)
            .await
        {
            Err(error @ wakelog_store::Error::ArchiveCommitUnknown { .. }) => {
                match self.store.segment(session, &object.key).await? {
                    Some(_) => Ok(Recorded::Done),
                    None => Err(error.into()),
                }
            }
            answered => Ok(answered?),
        }
    }
}

fn archived(segment: &SealedSegment, key: String, part_rows: u64) -> ArchivedObject {
    ArchivedObject {
        key,
        min_entry_seq: segment.key.min_entry_seq,
        max_entry_seq: segment.key.max_entry_seq,
        entries: segment.entries,
        part_rows,
        plain_bytes: segment.plain_bytes,
        object_bytes: segment.object_bytes,
        object_digest: segment.object_digest,
    }
}
