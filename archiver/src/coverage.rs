//! How far the states in the archive reach: below that, a rebuild needs no record of the topic.

use bytes::Bytes;
use wakelog_archive::{CoveredKey, ObjectName};

use crate::shared::Shared;
use crate::{Error, telemetry};

/// What a coverage object holds. Its name says everything.
const MARK: &[u8] = b"covered\n";

impl Shared {
    /// Writes down how far a partition is covered, if that has changed, and drops what was written before.
    pub(crate) async fn cover(&self, partition: i32) -> Result<(), Error> {
        let topic = &self.options.topic;
        let coverage = self.store.coverage(topic, partition).await?;
        telemetry::covered(partition, coverage.covered_offset);
        if self.store.recorded_coverage(topic, partition).await? == Some(coverage) {
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
        let name = ObjectName::Covered(key).to_string();
        self.objects.put_bytes(&name, Bytes::from_static(MARK)).await?;
        let recorded = self.store.record_coverage(topic, partition, coverage).await?;
        if recorded != coverage {
            // Another archiver has seen more.
            return Ok(());
        }
        // There is one, or a few that a death has left; what is left of more is dropped the next time.
        let page = self.objects.list_page(&covered_prefix(key), None).await?;
        for older in page.objects {
            match ObjectName::parse(&older.key) {
                ObjectName::Covered(found) if found.offset < key.offset => {
                    self.objects.delete(&older.key).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What the names of a partition's coverage objects begin with: the name but for its offset.
fn covered_prefix(key: CoveredKey) -> String {
    let mut name = key.to_string();
    name.truncate(name.rfind('-').map_or(name.len(), |dash| dash + 1));
    name
}
