//! The archive's tables: flushes, staged objects, states, coverage, erasures.

mod coverage;
mod due;
mod erasures;
mod flushes;
mod hot_tails;
mod manifest;
mod orphans;
mod races;
mod recorded_objects;
mod snapshots;
