//! How far the states in the archive reach: below that, a rebuild needs no record of the topic.

use bytes::Bytes;
use prost::Message as _;
use wakelog_archive::{COVERED_FORMAT, CoveredKey, Failure, MARK_LIMIT, ObjectName};
use wakelog_proto::v1::CoveredPartition;
use wakelog_store::CoverageNow;

use crate::shared::Shared;
use crate::{Error, telemetry};

impl Shared {
    /// Writes down how far a partition is covered, and of which log, if that has changed, and drops what was written before.
    pub(crate) async fn cover(&self, partition: i32) -> Result<(), Error> {
        let topic = &self.options.topic;
        let now = self.store.coverage(topic, partition).await?;
        let coverage = now.coverage;
        telemetry::covered(partition, coverage.covered_offset);
        let before = self.store.recorded_coverage(topic, partition).await?;
        if before == Some(coverage) {
            return Ok(());
        }
        let Ok(number) = u32::try_from(partition) else {
            return Ok(());
        };
        let key = CoveredKey {
            incarnation: coverage.incarnation,
            partition: number,
            offset: coverage.covered_offset,
        };
        if before.is_none() {
            self.check_earlier_coverage(key, &now).await?;
        }
        let covered = covered_partition(topic, partition, &now).encode_to_vec();
        let name = ObjectName::Covered(key).to_string();
        self.objects.put_bytes(&name, Bytes::from(covered)).await?;
        let recorded = self.store.record_coverage(topic, partition, coverage).await?;
        if recorded != coverage {
            // Another archiver has seen more.
            return Ok(());
        }
        for older in self.earlier_coverage(key).await? {
            if older.offset < key.offset {
                self.objects
                    .delete(&ObjectName::Covered(older).to_string())
                    .await?;
            }
        }
        Ok(())
    }

    /// A database that has recorded no coverage, and a bucket that has: that is a rebuilt one, which has folded what the bucket
    /// knows of, or one that is still on its way there. Or the bucket is another log's, and what this one writes down would be
    /// taken for that one's.
    async fn check_earlier_coverage(&self, key: CoveredKey, now: &CoverageNow) -> Result<(), Error> {
        for earlier in self.earlier_coverage(key).await? {
            let name = ObjectName::Covered(earlier).to_string();
            let covered = match self.objects.get_bytes(&name, MARK_LIMIT).await {
                Ok(bytes) => CoveredPartition::decode(bytes).ok(),
                // Another archiver has written down more since.
                Err(error) if error.failure() == Some(Failure::NotFound) => continue,
                Err(error) => return Err(error.into()),
            };
            let covered = covered.filter(|covered| covered.format == COVERED_FORMAT);
            let fits = covered.is_some_and(|covered| is_of_this_log(&covered, &self.options.topic, now));
            if !fits {
                return Err(Error::OtherLog {
                    key: name,
                    folded: now.next_offset,
                });
            }
        }
        Ok(())
    }

    /// What is written down of the partition; there is one, or a few that a death has left. What is more is found the next time.
    async fn earlier_coverage(&self, key: CoveredKey) -> Result<Vec<CoveredKey>, Error> {
        let page = self.objects.list_page(&covered_prefix(key), None).await?;
        let names = page.objects.iter().map(|object| ObjectName::parse(&object.key));
        Ok(names
            .filter_map(|name| match name {
                ObjectName::Covered(found) => Some(found),
                _ => None,
            })
            .collect())
    }
}

fn covered_partition(topic: &str, partition: i32, now: &CoverageNow) -> CoveredPartition {
    CoveredPartition {
        format: COVERED_FORMAT,
        topic: topic.to_owned(),
        incarnation: now.coverage.incarnation,
        partition,
        covered_offset: now.coverage.covered_offset,
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
