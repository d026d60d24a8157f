//! What goes into a rebuild and comes out of it.

use std::collections::BTreeMap;

use wakelog_model::SessionId;

use crate::rows::{AccessWrite, LifetimeWrite, SessionWrite};

/// What is built, from what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuildPlan {
    /// The topic.
    pub topic: String,
    /// Whether states of the archive go in first.
    pub from_archive: bool,
    /// The incarnation of the topic.
    pub incarnation: u32,
    /// Where each partition starts.
    pub starts: Vec<RebuildStart>,
}

/// Where the folding of a partition starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebuildStart {
    /// The partition.
    pub partition: i32,
    /// The first offset that is folded. 0: the topic has everything. Above it, states of the archive hold what comes before.
    pub start_offset: i64,
    /// CRC-32 of the record before it, if the topic still has that one.
    pub last_record_crc: Option<u32>,
}

/// How far a rebuild has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuild {
    /// The topic.
    pub topic: String,
    /// Whether states of the archive go in first.
    pub from_archive: bool,
    /// The incarnation of the topic.
    pub incarnation: u32,
    /// Fences whoever was at it before.
    pub epoch: i64,
    /// Whether all of them are in.
    pub states_loaded: bool,
    /// Whether services may use the store.
    pub finished: bool,
    /// Where each partition starts or started, by partition.
    pub starts: Vec<(i32, i64)>,
}

impl Rebuild {
    /// The starts of those partitions of which states of the archive hold what comes before.
    pub fn starts_above_zero(&self) -> BTreeMap<i32, i64> {
        let starts = self.starts.iter().copied();
        starts.filter(|(_, start_offset)| *start_offset > 0).collect()
    }
}

/// A session as a state of the archive has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredSession {
    /// The session's row.
    pub session: SessionWrite,
    /// Every lifetime that was bound.
    pub lifetimes: Vec<LifetimeWrite>,
    /// Who may see it besides its owner.
    pub access: Vec<AccessWrite>,
    /// The incarnation of the topic that the offset belongs to.
    pub incarnation: u32,
    /// The state holds every record of the session below this offset.
    pub next_offset: u64,
}

/// A session without a row, of which records were put aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownSession {
    /// The session.
    pub session: SessionId,
    /// The first of those records.
    pub first_offset: i64,
    /// The last one.
    pub last_offset: i64,
}
