//! Faults that need real engines and services as processes of their own: each one named, triggered by progress or at a step,
//! never by the clock. What was acknowledged must come back, exactly, once, and `wakelog verify` must be clean.
//!
//! | module | what fails |
//! |---|---|
//! | `service_kills` | one service of several, by `kill -9` under load |
//! | `frozen_persister` | a persister that is frozen in the middle of a batch and wakes after its successor has worked |
//! | `handovers` | nothing: partitions go from one persister to another and back |
//! | `rival_containers` | a container that was superseded, and its supervisor does not believe it |
//! | `relay_failover` | the relay that a writer uses |
//! | `fence_window` | the persister is far behind while a session is resumed |
//! | `archive` | an archiver, the object store, an object |
//! | `archive_objects` | objects of the archive, and records of them: an administrator finds out |
//! | `archive_resumes` | nothing: resumes are read while the archiver prunes underneath |
//! | `archive_retention` | the topic drops its records |
//! | `store_faults` | the object store answers, and badly |
//! | `erasure` | an archiver, while a session is erased |
//! | `engine_outages` | the broker, the database, their disks |
//! | `three_brokers` | one broker of three, or two |
//! | `lost_commits` | the database, which forgets what it had confirmed |
//! | `lost_log` | the topic itself |
//! | `scaling` | nothing, or one: members of the groups come and go |
//! | `partitions_added` | nothing: the topic grows |
//! | `ten_thousand` | persisters, behind each COMMIT |
//! | `wrong_clocks` | the clock of one service, by a year |
//! | `wrong_engines` | the deployment: engines that are away, too old, refusing, or set up wrong |
//! | `rebuild` | the whole database, and the head of the topic |
//!
//! `holdings` asks the database and the bucket what they hold of a session.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod archive;
mod archive_objects;
mod archive_resumes;
mod archive_retention;
mod engine_outages;
mod erasure;
mod fence_window;
mod frozen_persister;
mod handovers;
mod holdings;
mod lost_commits;
mod lost_log;
mod partitions_added;
mod rebuild;
mod relay_failover;
mod rival_containers;
mod scaling;
mod service_kills;
mod store_faults;
mod ten_thousand;
mod three_brokers;
mod wrong_clocks;
mod wrong_engines;

/// Everything here needs services as processes of their own.
pub(crate) const RUNS_ON_NATIVE: bool = true;

use support::load::{Load, Loaded};
use support::native::NativeStack;

/// Ends the load, and checks every session, every end and the whole store.
pub(crate) async fn ends_well(stack: &mut NativeStack, load: Load, context: &str) {
    let sessions = load.finish().await;
    bodies_are_right(stack, &sessions, context).await;
    stops_and_verifies(stack, context);
}

/// Every session's export and resume hold what was acknowledged.
pub(crate) async fn bodies_are_right(stack: &NativeStack, sessions: &[Loaded], context: &str) {
    let connection = stack.connect().await;
    for session in sessions {
        session.check(&connection, context).await;
    }
}

/// Every service drains and ends well, and the store is the fold of the log.
pub(crate) fn stops_and_verifies(stack: &mut NativeStack, context: &str) {
    let status = stack.stop_all();
    assert!(
        status.success(),
        "{context}: a drained stop ends with {status}\n{}",
        stack.log()
    );
    stack.verify();
}
