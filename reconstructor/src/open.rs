//! Opening a session: pin, publish, wait until applied. The same request again gives the same session.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wakelog_model::SessionId;
use wakelog_proto::v1::{SessionOpened, session_record::Record};
use wakelog_store::{Progress, SessionRow};

use crate::core::Core;
use crate::poll::Poll;
use crate::publish::Applied;
use crate::validate::Labels;
use crate::{Error, metrics};

/// A session to open, validated.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) session: SessionId,
    pub(crate) owner: String,
    pub(crate) labels: Labels,
    pub(crate) parent: Option<SessionId>,
    pub(crate) subpath: String,
}

impl Core {
    /// Opens the session, and returns it once it is applied.
    pub(crate) async fn open(
        &self,
        new: &NewSession,
        abandoned: &CancellationToken,
    ) -> Result<SessionRow, Error> {
        let look = || self.store.visible_session(new.session, &new.owner);
        if let Some(row) = look().await? {
            return same_session(new, row);
        }
        let partition = self.pin(new).await?;
        let mut poll = Poll::new("the opened session", self.options.apply_timeout, abandoned);
        let record = Record::SessionOpened(SessionOpened {
            owner: new.owner.clone(),
            labels: new.labels.clone(),
            parent_session_id: new.parent.map(|parent| parent.to_string()).unwrap_or_default(),
            subpath: new.subpath.clone(),
            partition,
        });
        let published = self.publish(new.session, partition, record).await?;
        let applied = self
            .wait_applied(partition, published, &mut poll, || async { Ok(look().await?) })
            .await?;
        metrics::applied(poll.waited());
        match applied {
            Applied::Seen(row) => same_session(new, row),
            // Opened before and erased since: what was erased is not there.
            Applied::Nothing => Err(Error::SessionNotFound),
        }
    }

    /// The partition of the session, for good. A sub-session lives on its parent's.
    async fn pin(&self, new: &NewSession) -> Result<i32, Error> {
        let Some(parent) = new.parent else {
            let wanted = partition_of(new.session, self.partition_count().await?);
            return Ok(self.store.ensure_pin(new.session, wanted).await?);
        };
        let parent = self.visible(parent, &new.owner).await?;
        if parent.owner != new.owner {
            return Err(Error::NotOwner);
        }
        let pinned = self.store.ensure_pin(new.session, parent.partition).await?;
        if pinned != parent.partition {
            // An earlier try of this request, with another parent, has fixed it.
            return Err(Error::Conflict("parent"));
        }
        Ok(pinned)
    }

    async fn partition_count(&self) -> Result<i32, Error> {
        let bound = self.options.apply_timeout;
        // One asks the log, the others wait for its answer; not in a row without end if the log is away.
        let mut cached = tokio::time::timeout(bound, self.partition_count.lock())
            .await
            .map_err(|_| Error::NotInTime {
                what: "the partition count",
                waited: bound,
            })?;
        if let Some(counted) = *cached
            && Instant::now() < counted.good_until
        {
            return Ok(counted.count);
        }
        let max_age = self.options.partition_count_max_age;
        match (self.reader.partition_count().await, *cached) {
            (Ok(of_topic), _) => {
                let count = open_partitions(
                    of_topic,
                    &self.store.progress_of_topic(&self.options.topic).await?,
                );
                let good_for = match count == of_topic {
                    true => max_age,
                    false => max_age.min(PART_OF_THEM_GOOD_FOR),
                };
                *cached = Some(Counted {
                    count,
                    good_until: Instant::now() + good_for,
                });
                Ok(count)
            }
            // Partitions are only ever added: the old count still names partitions that exist.
            (Err(error), Some(counted)) => {
                let count = counted.count;
                tracing::warn!(%error, count, "the partition count could not be refreshed");
                *cached = Some(Counted {
                    count,
                    good_until: Instant::now() + max_age,
                });
                Ok(count)
            }
            (Err(error), None) => Err(error.into()),
        }
    }
}

/// How many partitions were open for new sessions, and until when that need not be asked again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    count: i32,
    good_until: Instant,
}

/// How long it is good where not all partitions are claimed. The others will be any moment, and a session stays where it is for good.
const PART_OF_THEM_GOOD_FOR: Duration = Duration::from_millis(200);

/// How many of the topic's partitions new sessions may go to: those that somebody has begun to fold. One that was just added
/// would keep its first sessions waiting. All, while nothing is folded yet: then all of them are about to be claimed.
fn open_partitions(partition_count: i32, progress: &[Progress]) -> i32 {
    if progress.iter().all(|found| found.next_offset == 0) {
        return partition_count;
    }
    let claimed = |partition: &i32| progress.iter().any(|found| found.partition == *partition);
    match (0..partition_count).take_while(claimed).count() {
        0 => partition_count,
        claimed => i32::try_from(claimed).unwrap_or(partition_count),
    }
}

/// Where a new session goes. Its id is a hash, or random: its first bytes are as good as any.
fn partition_of(session: SessionId, partition_count: i32) -> i32 {
    let [a, b, c, d, ..] = session.0.into_bytes();
    let count = u32::try_from(partition_count).unwrap_or(1).max(1);
    i32::try_from(u32::from_be_bytes([a, b, c, d]) % count).unwrap_or(0)
}

/// The applied session, if it is the one that the request describes.
fn same_session(new: &NewSession, row: SessionRow) -> Result<SessionRow, Error> {
    if row.owner != new.owner {
        return Err(Error::Conflict("owner"));
    }
    if row.labels != new.labels {
        return Err(Error::Conflict("labels"));
    }
    if row.parent != new.parent {
        return Err(Error::Conflict("parent"));
    }
    if row.subpath != new.subpath {
        return Err(Error::Conflict("subpath"));
    }
    Ok(row)
}

#[cfg(test)]
mod tests;
