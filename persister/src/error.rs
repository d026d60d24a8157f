//! What can go wrong for the service and for `verify`.

use crate::replay::ArchiveMisfit;
use crate::status::StopReason;

/// Everything that this crate reports.
///
/// What stops one partition is no error of the service: it is in [`crate::StatusHandle`], in the log and in a gauge.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option makes no sense.
    #[error("option {option} is {value}: {expected}")]
    Options {
        /// The option.
        option: &'static str,
        /// What it is.
        value: String,
        /// What it must be, in words.
        expected: &'static str,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] wakelog_store::Error),
    /// The log failed.
    #[error("the log failed")]
    Stream(#[from] wakelog_stream::Error),
    /// The archive failed.
    #[error("the archive failed")]
    Archive(#[from] wakelog_archive::Error),
    /// The store was begun by a replay of something else.
    #[error(
        "the database is being built from {}topic {topic} by a replay that was interrupted",
        if *.from_archive { "the archive and " } else { "" }
    )]
    OtherReplay {
        /// Its topic.
        topic: String,
        /// Whether it takes states of the archive.
        from_archive: bool,
    },
    /// A coverage object can't be read.
    #[error("{key} can't be read: {reason}")]
    Coverage {
        /// The object.
        key: String,
        /// Why.
        reason: String,
    },
    /// The archive is that of another log.
    #[error("the archive is not that of this log: {0}")]
    OtherLog(ArchiveMisfit),
    /// Records that a replay was about to fold were dropped from the topic, and a new replay would not need them: the archive covers
    /// them by now.
    #[error(
        "the topic has dropped records {from} to {} of partition {partition} since this database was begun; the archive covers \
         them by now",
        to - 1
    )]
    DroppedMeanwhile {
        /// The partition.
        partition: i32,
        /// The first record that was to be folded.
        from: i64,
        /// The first one that the topic still has.
        to: i64,
    },
    /// A persister, or another replay, has claimed a partition that is being folded.
    #[error("another process has claimed partition {partition}")]
    OtherOwner {
        /// The partition.
        partition: i32,
    },
    /// The database has less than it had confirmed: it was replaced by a copy that was behind, or does not wait for its disk. The
    /// same replay goes on from what it has.
    #[error("the database has lost commits that it had confirmed: {detail}")]
    LostCommits {
        /// What it had, and what it has.
        detail: String,
    },
    /// A replay was interrupted. What it did is kept: the same one goes on.
    #[error("interrupted")]
    Interrupted,
    /// A stored state can't be read.
    #[error("a stored session state can't be read")]
    Fold(#[from] wakelog_fold::Error),
    /// `verify` can't fold what the log no longer has.
    #[error(
        "partition {partition} of the log starts at {low}: its head is gone, so it can't be folded from the start"
    )]
    LogHeadEaten {
        /// The partition.
        partition: i32,
        /// The log's first offset.
        low: i64,
    },
    /// The log ends below what was folded, so `verify` can't fold it.
    #[error("partition {partition} was folded up to {next_offset} but its log ends at {high}")]
    LogTooShort {
        /// The partition.
        partition: i32,
        /// The next offset to fold.
        next_offset: i64,
        /// The log's end.
        high: i64,
    },
    /// A partition would be stopped for this.
    #[error("partition {partition} is stopped")]
    Stopped {
        /// The partition.
        partition: i32,
        /// Why.
        #[source]
        reason: StopReason,
    },
    /// Something that must not be able to happen.
    #[error("bug: {detail}")]
    Bug {
        /// What it was.
        detail: String,
    },
    /// A failpoint ended the process, so to say. Tests only.
    #[error("a failpoint ended the service")]
    Failpoint,
}
