//! What can go wrong.

use wakelog_model::SessionId;

/// Everything that this crate reports. What fails one session's work is no error of the service: that session is tried again
/// later.
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
    /// The archive failed.
    #[error("the archive failed")]
    Archive(#[from] wakelog_archive::Error),
    /// The log failed.
    #[error("the log failed")]
    Stream(#[from] wakelog_stream::Error),
    /// What the hot tail holds of a session does not fit together; nothing of it is archived or pruned.
    #[error("the hot tail of session {session} does not fit together: {what}")]
    Corrupt {
        /// The session.
        session: SessionId,
        /// What does not fit.
        what: String,
    },
    /// A stored state can't be read.
    #[error("the state of session {session} can't be read")]
    State {
        /// The session.
        session: SessionId,
        /// Why.
        #[source]
        error: wakelog_fold::Error,
    },
    /// The object is being deleted, and may be put again only after that.
    #[error("object {key} is being deleted")]
    Condemned {
        /// The object.
        key: String,
    },
    /// The database has recorded no coverage, and the bucket has some of more than was folded, or of other records.
    #[error(
        "{key} covers more than this database does, which has folded {folded} records: it is still on its way there, or the bucket is \
         the archive of another log"
    )]
    OtherLog {
        /// The object.
        key: String,
        /// The first offset that is not folded.
        folded: u64,
    },
    /// A newer version wrote the object.
    #[error("{key} has format {format}, which this version does not know")]
    NewerCoverage {
        /// The object.
        key: String,
        /// Its format.
        format: u32,
    },
    /// The database has recorded coverage that the bucket does not hold.
    #[error(
        "the archive of this database covers partition {partition} up to {covered}, and the bucket holds no such coverage: it is \
         another bucket, or it has lost objects"
    )]
    OtherBucket {
        /// The partition.
        partition: i32,
        /// The first offset that is not covered.
        covered: u64,
    },
    /// What the session holds changed while it was read. Read it again.
    #[error("session {session} changed while it was read")]
    Changed {
        /// The session.
        session: SessionId,
    },
    /// A task of this process ended without an answer.
    #[error("a task of the archiver ended without an answer")]
    TaskDied,
    /// A failure that a test asked for.
    #[error("failpoint {name}")]
    Failpoint {
        /// The failpoint.
        name: &'static str,
    },
}
