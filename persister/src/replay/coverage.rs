//! How far the archive's states reach, and whether they are states of this log (archived-is-complete).

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use futures::TryStreamExt as _;
use prost::Message as _;
use wakelog_archive::{
    COVERED_FORMAT, COVERED_PREFIX, CoveredKey, Failure, MARK_LIMIT, ObjectName, ObjectStore,
};
use wakelog_proto::v1::CoveredPartition;
use wakelog_store::Progress;
use wakelog_stream::LogReader;

use super::state::damage;
use crate::Error;
use crate::log_fits::log_fits;
use crate::status::StopReason;

/// How often the objects are listed anew because archivers have replaced what was listed.
const ROUNDS: u32 = 4;

/// The archive is that of another log than the one it was compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveMisfit {
    /// The object that says so.
    pub key: String,
    /// What does not fit.
    pub what: String,
}

impl fmt::Display for ArchiveMisfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.key, self.what)
    }
}

/// Compares the archive's coverage with a log: the record before the one that was folded next must be the one that was folded.
/// `None` if they fit, as far as the log still has those records.
pub async fn archive_fits(
    objects: &ObjectStore,
    reader: &LogReader,
    topic: &str,
) -> Result<Option<ArchiveMisfit>, Error> {
    newest(objects).await?.misfit(reader, topic).await
}

/// What a coverage object says besides its name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Covered {
    topic: String,
    /// How far the partition was folded then.
    next_offset: i64,
    last_record_crc: Option<u32>,
}

/// The newest coverage of each partition, of the newest incarnation of the topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Newest {
    pub(super) incarnation: u32,
    /// With what is wrong with an object that can't be read.
    covered: BTreeMap<i32, (CoveredKey, Result<Covered, String>)>,
}

impl Newest {
    /// Below which offset the states hold everything of the partition.
    pub(super) fn offset(&self, partition: i32) -> i64 {
        let covered = self.covered.get(&partition);
        covered.map_or(0, |(key, _)| i64::try_from(key.offset).unwrap_or(i64::MAX))
    }

    /// Whether the partition's object can be read; only then is it known of which log it is.
    pub(super) fn check_readable(&self, partition: i32) -> Result<(), Error> {
        match self.covered.get(&partition) {
            Some((key, Err(reason))) => Err(Error::Coverage {
                key: key.to_string(),
                reason: reason.clone(),
            }),
            Some((_, Ok(_))) | None => Ok(()),
        }
    }

    /// The first thing that does not fit the log, among what can be read.
    pub(super) async fn misfit(
        &self,
        reader: &LogReader,
        topic: &str,
    ) -> Result<Option<ArchiveMisfit>, Error> {
        let partitions = match reader.partition_count().await {
            Err(wakelog_stream::Error::NoTopic { .. }) => 0,
            counted => counted?,
        };
        for (partition, (key, covered)) in &self.covered {
            let Ok(covered) = covered else {
                continue;
            };
            let what = match covered.topic == topic {
                false => Some(format!("it is of topic {}", covered.topic)),
                true if partitions == 0 => Some("the topic does not exist".to_owned()),
                true if *partition >= partitions => Some(format!("the topic has no partition {partition}")),
                true => differs(*partition, covered, reader).await?,
            };
            if let Some(what) = what {
                let key = key.to_string();
                return Ok(Some(ArchiveMisfit { key, what }));
            }
        }
        Ok(None)
    }
}

async fn differs(partition: i32, covered: &Covered, reader: &LogReader) -> Result<Option<String>, Error> {
    let folded = Progress {
        partition,
        epoch: 0,
        next_offset: covered.next_offset,
        last_record_crc: covered.last_record_crc,
    };
    Ok(match log_fits(&folded, reader).await? {
        // Whether the archive covers what the log has dropped is another question.
        None | Some(StopReason::RetentionHole { .. }) => None,
        Some(reason) => Some(reason.to_string()),
    })
}

/// The newest object of each partition, by name. Offsets of an earlier incarnation say nothing about a later one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Names {
    incarnation: u32,
    newest: BTreeMap<i32, CoveredKey>,
}

impl Names {
    fn none() -> Self {
        Self {
            incarnation: 1,
            newest: BTreeMap::new(),
        }
    }

    fn take(&mut self, key: CoveredKey) {
        let Ok(partition) = i32::try_from(key.partition) else {
            return;
        };
        if key.incarnation > self.incarnation {
            self.incarnation = key.incarnation;
            self.newest.clear();
        }
        if key.incarnation == self.incarnation {
            let newest = self.newest.entry(partition).or_insert(key);
            *newest = key.max(*newest);
        }
    }
}

/// Lists and reads them.
pub(super) async fn newest(objects: &ObjectStore) -> Result<Newest, Error> {
    for _ in 0..ROUNDS {
        if let Some(newest) = read(objects, names(objects).await?).await? {
            return Ok(newest);
        }
    }
    Err(Error::Coverage {
        key: COVERED_PREFIX.to_owned(),
        reason: format!("the objects were replaced {ROUNDS} times while they were read"),
    })
}

async fn names(objects: &ObjectStore) -> Result<Names, Error> {
    let mut names = Names::none();
    let listed = objects.list(COVERED_PREFIX, None);
    tokio::pin!(listed);
    while let Some(object) = listed.try_next().await? {
        if let ObjectName::Covered(key) = ObjectName::parse(&object.key) {
            names.take(key);
        }
    }
    Ok(names)
}

/// `None` if one of them is not there any more.
async fn read(objects: &ObjectStore, names: Names) -> Result<Option<Newest>, Error> {
    let mut covered = BTreeMap::new();
    for (partition, key) in names.newest {
        let bytes = match objects.get_bytes(&key.to_string(), MARK_LIMIT).await {
            Ok(bytes) => bytes,
            Err(error) if error.failure() == Some(Failure::NotFound) => return Ok(None),
            Err(error) => {
                let reason = damage(error)?;
                covered.insert(partition, (key, Err(reason)));
                continue;
            }
        };
        covered.insert(partition, (key, decode(key, bytes)));
    }
    Ok(Some(Newest {
        incarnation: names.incarnation,
        covered,
    }))
}

/// What is wrong with it, else.
fn decode(key: CoveredKey, bytes: Bytes) -> Result<Covered, String> {
    let read = CoveredPartition::decode(bytes).map_err(|error| error.to_string())?;
    if read.format != COVERED_FORMAT {
        return Err(format!(
            "its format has version {}, this build knows {COVERED_FORMAT}",
            read.format
        ));
    }
    let is_named_so = read.incarnation == key.incarnation
        && u32::try_from(read.partition).ok() == Some(key.partition)
        && read.covered_offset == key.offset
        && read.next_offset >= read.covered_offset;
    if !is_named_so {
        return Err("it does not say what its name says".to_owned());
    }
    Ok(Covered {
        topic: read.topic,
        next_offset: i64::try_from(read.next_offset)
            .map_err(|_| format!("its next offset {} is larger than any log", read.next_offset))?,
        last_record_crc: read.last_record_crc,
    })
}

#[cfg(test)]
mod tests;
