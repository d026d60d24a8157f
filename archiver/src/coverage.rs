//! How far the states in the archive reach: below that, a rebuild needs no record of the topic.

use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;
use wakelog_archive::{COVERED_FORMAT, CoveredKey, Failure, MARK_LIMIT, ObjectName, ObjectStore};
use wakelog_proto::v1::CoveredPartition;
use wakelog_store::{Coverage, CoverageNow, Store};

use crate::shared::Shared;
use crate::{Error, telemetry};

/// Says so unless the bucket holds the coverage that the database has recorded. Another bucket, or one that lost its objects, lacks
/// the states of sessions that nothing happens to any more, and what is written into it would hide that.
pub async fn check_bucket(store: &Store, objects: &ObjectStore, topic: &str) -> Result<(), Error> {
    for (partition, recorded) in store.recorded_coverages(topic).await? {
        let Ok(number) = u32::try_from(partition) else {
            continue;
        };
        let written = written_coverage(objects, recorded.incarnation, number).await?;
        check_recorded(partition, recorded, &written)?;
    }
    Ok(())
}

/// Forgets that this database's states are in any bucket, so that all of them are archived anew, into the one that there is now: for
/// whoever has lost a bucket, or begins with another one. Segments of which the rows were pruned stay in the manifest; what was lost
/// with them is lost, and a body that needs them is an error. No archiver may run meanwhile.
pub async fn begin_anew(store: &Store, topic: &str) -> Result<(), Error> {
    store.forget_states(topic).await?;
    Ok(())
}

impl Shared {
    /// Writes down how far a partition is covered, and of which log, if that has changed, and drops what was written before.
    /// `is_first`: nobody in this process has looked at what the bucket holds of it. Returns how long the database was busy with
    /// the partition's sessions.
    pub(crate) async fn cover(&self, partition: i32, is_first: bool) -> Result<Duration, Error> {
        let topic = &self.options.topic;
        let begun = Instant::now();
        let now = self.store.coverage(topic, partition).await?;
        let looked_for = begun.elapsed();
        let coverage = now.coverage;
        let recorded = self.store.recorded_coverage(topic, partition).await?;
        let rises = recorded.is_none_or(|recorded| rises(recorded, coverage));
        if !rises && !is_first {
            return Ok(looked_for);
        }
        let Ok(number) = u32::try_from(partition) else {
            return Ok(looked_for);
        };
        let written = written_coverage(&self.objects, coverage.incarnation, number).await?;
        match recorded {
            Some(recorded) if recorded.incarnation == coverage.incarnation => {
                check_recorded(partition, recorded, &written)?;
            }
            Some(recorded) => {
                let before = written_coverage(&self.objects, recorded.incarnation, number).await?;
                check_recorded(partition, recorded, &before)?;
            }
            None => self.check_first(&written, &now).await?,
        }
        if is_first {
            self.mend(partition, &written, recorded, &now).await?;
        }
        if let Some(recorded) = recorded {
            telemetry::covered(partition, recorded.covered_offset);
        }
        if !rises {
            return Ok(looked_for);
        }
        let key = CoveredKey {
            incarnation: coverage.incarnation,
            partition: number,
            offset: coverage.covered_offset,
        };
        self.put_coverage(partition, key, &now).await?;
        let recorded = self.store.record_coverage(topic, partition, coverage).await?;
        telemetry::covered(partition, recorded.covered_offset);
        if recorded != coverage {
            // Another archiver has seen more.
            return Ok(looked_for);
        }
        for older in written {
            if older.offset < key.offset {
                self.objects
                    .delete(&ObjectName::Covered(older).to_string())
                    .await?;
            }
        }
        Ok(looked_for)
    }

    /// A database that has recorded no coverage, and a bucket that has: that is a rebuilt one, which has folded what the bucket
    /// knows of, or one that is still on its way there. Or the bucket is another log's, and what this one writes down would be
    /// taken for that one's.
    async fn check_first(&self, written: &[CoveredKey], now: &CoverageNow) -> Result<(), Error> {
        for key in written {
            let fits = match self.read_coverage(*key).await? {
                Read::Covered(covered) => is_of_this_log(&covered, &self.options.topic, now),
                // Whatever it said, this database says as much.
                Read::Unreadable => key.offset <= now.coverage.covered_offset,
                // Another archiver has written down more since.
                Read::Gone => true,
            };
            if !fits {
                return Err(Error::OtherLog {
                    key: key.to_string(),
                    folded: now.next_offset,
                });
            }
        }
        Ok(())
    }

    /// Writes the newest coverage object anew if a rebuild could not read it, and this database has covered as much itself.
    async fn mend(
        &self,
        partition: i32,
        written: &[CoveredKey],
        recorded: Option<Coverage>,
        now: &CoverageNow,
    ) -> Result<(), Error> {
        let Some(newest) = written.iter().max() else {
            return Ok(());
        };
        if !matches!(self.read_coverage(*newest).await?, Read::Unreadable) {
            return Ok(());
        }
        if !is_ours(*newest, recorded, now.coverage) {
            return Err(Error::OtherLog {
                key: newest.to_string(),
                folded: now.next_offset,
            });
        }
        tracing::warn!(partition, key = %newest, "a coverage object can't be read, writing it anew");
        self.put_coverage(partition, *newest, now).await
    }

    async fn read_coverage(&self, key: CoveredKey) -> Result<Read, Error> {
        match self.objects.get_bytes(&key.to_string(), MARK_LIMIT).await {
            Ok(bytes) => read(key, bytes),
            Err(wakelog_archive::Error::TooLarge { .. }) => Ok(Read::Unreadable),
            Err(error) => match error.failure() {
                Some(Failure::NotFound) => Ok(Read::Gone),
                Some(Failure::Corrupt) => Ok(Read::Unreadable),
                _ => Err(error.into()),
            },
        }
    }

    async fn put_coverage(&self, partition: i32, key: CoveredKey, now: &CoverageNow) -> Result<(), Error> {
        let covered = covered_partition(&self.options.topic, partition, key, now);
        let bytes = Bytes::from(covered.encode_to_vec());
        self.objects.put_bytes(&key.to_string(), bytes).await?;
        Ok(())
    }
}

fn read(key: CoveredKey, bytes: Bytes) -> Result<Read, Error> {
    let Ok(covered) = CoveredPartition::decode(bytes) else {
        return Ok(Read::Unreadable);
    };
    if covered.format > COVERED_FORMAT {
        return Err(Error::NewerCoverage {
            key: key.to_string(),
            format: covered.format,
        });
    }
    let says_its_name = covered.format == COVERED_FORMAT
        && covered.incarnation == key.incarnation
        && u32::try_from(covered.partition).ok() == Some(key.partition)
        && covered.covered_offset == key.offset
        && covered.next_offset >= covered.covered_offset;
    Ok(match says_its_name {
        true => Read::Covered(covered),
        false => Read::Unreadable,
    })
}

/// What a coverage object says.
#[derive(Debug, PartialEq)]
enum Read {
    Covered(CoveredPartition),
    /// Damaged, or of another version.
    Unreadable,
    /// It is not there any more.
    Gone,
}

/// The coverage objects of a partition; there is one, or a few that a death has left. What is more is found the next time.
async fn written_coverage(
    objects: &ObjectStore,
    incarnation: u32,
    partition: u32,
) -> Result<Vec<CoveredKey>, Error> {
    let any = CoveredKey {
        incarnation,
        partition,
        offset: 0,
    };
    let page = objects.list_page(&covered_prefix(any), None).await?;
    let names = page.objects.iter().map(|object| ObjectName::parse(&object.key));
    Ok(names
        .filter_map(|name| match name {
            ObjectName::Covered(found) => Some(found),
            _ => None,
        })
        .collect())
}

/// Whether this database has covered as much as the object's name says.
fn is_ours(key: CoveredKey, recorded: Option<Coverage>, now: Coverage) -> bool {
    let covers =
        |coverage: Coverage| coverage.incarnation == key.incarnation && coverage.covered_offset >= key.offset;
    covers(now) || recorded.is_some_and(covers)
}

/// An object goes only after a later one was put and recorded, so what is recorded is there, or something later. Nothing rests on a
/// coverage of nothing.
fn check_recorded(partition: i32, recorded: Coverage, written: &[CoveredKey]) -> Result<(), Error> {
    if recorded.covered_offset == 0 {
        return Ok(());
    }
    let covers =
        |key: &CoveredKey| (key.incarnation, key.offset) >= (recorded.incarnation, recorded.covered_offset);
    match written.iter().any(covers) {
        true => Ok(()),
        false => Err(Error::OtherBucket {
            partition,
            covered: recorded.covered_offset,
        }),
    }
}

/// What was covered once stays so, although a session waits for its next state.
fn rises(recorded: Coverage, now: Coverage) -> bool {
    (now.incarnation, now.covered_offset) > (recorded.incarnation, recorded.covered_offset)
}

fn covered_partition(topic: &str, partition: i32, key: CoveredKey, now: &CoverageNow) -> CoveredPartition {
    CoveredPartition {
        format: COVERED_FORMAT,
        topic: topic.to_owned(),
        incarnation: key.incarnation,
        partition,
        covered_offset: key.offset,
        next_offset: now.next_offset,
        last_record_crc: now.last_record_crc,
    }
}

/// As far as the database can tell: whatever was folded when that was written is folded here, and the last record was the same if
/// it is the last one here too. A start of the service has compared the record with the log's.
fn is_of_this_log(covered: &CoveredPartition, topic: &str, now: &CoverageNow) -> bool {
    let is_behind = covered.next_offset < now.next_offset;
    let is_same = covered.next_offset == now.next_offset
        && (covered.last_record_crc.is_none()
            || now.last_record_crc.is_none()
            || covered.last_record_crc == now.last_record_crc);
    covered.topic == topic && (is_behind || is_same)
}

/// What the names of a partition's coverage objects begin with: the name but for its offset.
fn covered_prefix(key: CoveredKey) -> String {
    let mut name = key.to_string();
    name.truncate(name.rfind('-').map_or(name.len(), |dash| dash + 1));
    name
}

#[cfg(test)]
mod tests;
