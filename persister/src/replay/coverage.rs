//! How far the archive's states reach, by the names of its coverage objects.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use wakelog_archive::{COVERED_PREFIX, CoveredKey, ObjectName, ObjectStore};

use crate::Error;

/// The newest coverage of each partition, of the newest incarnation of the topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Newest {
    pub(super) incarnation: u32,
    offsets: BTreeMap<i32, i64>,
}

impl Default for Newest {
    /// Nothing is covered.
    fn default() -> Self {
        Self {
            incarnation: 1,
            offsets: BTreeMap::new(),
        }
    }
}

impl Newest {
    /// Below which offset the states hold everything of the partition.
    pub(super) fn offset(&self, partition: i32) -> i64 {
        self.offsets.get(&partition).copied().unwrap_or(0)
    }

    /// Offsets of an earlier incarnation say nothing about this one.
    fn take(&mut self, key: CoveredKey) {
        let (Ok(partition), Ok(offset)) = (i32::try_from(key.partition), i64::try_from(key.offset)) else {
            return;
        };
        if key.incarnation > self.incarnation {
            self.incarnation = key.incarnation;
            self.offsets.clear();
        }
        if key.incarnation == self.incarnation {
            let covered = self.offsets.entry(partition).or_default();
            *covered = offset.max(*covered);
        }
    }
}

/// Lists them.
pub(super) async fn newest(objects: &ObjectStore) -> Result<Newest, Error> {
    let mut newest = Newest::default();
    let listed = objects.list(COVERED_PREFIX, None);
    tokio::pin!(listed);
    while let Some(object) = listed.try_next().await? {
        if let ObjectName::Covered(key) = ObjectName::parse(&object.key) {
            newest.take(key);
        }
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_offset_of_the_newest_incarnation_counts() {
        let mut newest = Newest::default();
        let mut take = |incarnation, partition, offset| {
            newest.take(CoveredKey {
                incarnation,
                partition,
                offset,
            });
        };
        take(1, 0, 70);
        take(1, 0, 30);
        take(1, 1, 9);
        take(2, 0, 5);
        take(1, 0, 90);
        assert_eq!(newest.incarnation, 2);
        assert_eq!((newest.offset(0), newest.offset(1), newest.offset(7)), (5, 0, 0));
    }
}
