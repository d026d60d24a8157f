//! What a record of the topic says about work to come. Pure. The topic only wakes: what is due is read from the database.

use prost::Message as _;
use wakelog_model::SessionId;
use wakelog_proto::v1::SessionRecord;
use wakelog_proto::v1::session_record::Record as Payload;
use wakelog_store::SnapshotCause;
use wakelog_stream::Record;

use crate::job::Job;

/// The job that the record may have made due; `None` if it can't have, or can't be read.
pub(crate) fn wakes(record: &Record) -> Option<Job> {
    let session: SessionId = std::str::from_utf8(&record.key).ok()?.parse().ok()?;
    match SessionRecord::decode(record.value.clone()).ok()?.record? {
        // An entry counts once it is complete.
        Payload::EntryPart(part) => part.last.then_some(Job::Tail(session)),
        Payload::LifetimeEnded(_) => Some(Job::Snapshot(session, SnapshotCause::SessionEnd)),
        Payload::SessionErased(_) => Some(Job::Erasure(session)),
        Payload::SessionOpened(_) | Payload::AccessChanged(_) | Payload::LifetimeBound(_) => None,
    }
}

#[cfg(test)]
mod tests;
