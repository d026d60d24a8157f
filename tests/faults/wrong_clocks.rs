//! The clock of one service is wrong by a year: what was acknowledged, and who may write, depends on no service's clock.

use std::path::{Path, PathBuf};
use std::time::Duration;

use wakelog_proto::v1::AckLevel;

use crate::engine_outages::RECOVERY;
use crate::support::load::{Load, Loaded};
use crate::support::native::{Kind, NativeStack};
use crate::{bodies_are_right, ends_well};

/// Invariants acked-is-durable, exactly-once-fold, archived-is-complete: the service in question is the first that clients come
/// to. A token that it takes for expired, or makes so, is renewed, elsewhere if need be.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_a_clock_is_wrong_by_a_year() {
    let library = faketime();
    let mut stack = NativeStack::prepare().await;
    // Both archivers have something to do all the time.
    stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "50000");
    stack.up().await;
    let connection = stack.connect().await;
    let load = Load::start(&connection, "clocks", 1, 4, Duration::from_millis(10)).await;
    let mut sessions = Vec::new();
    for kind in Kind::ALL {
        for clock in ["+365d", "-365d"] {
            let context = format!("{kind:?} at {clock}");
            assert!(stack.stop(kind, 0).success(), "{context}");
            let preloaded = library.to_str().expect("a path");
            stack.set_of(kind, 0, "LD_PRELOAD", preloaded);
            stack.set_of(kind, 0, "FAKETIME", clock);
            // Time-outs are not what is wrong.
            stack.set_of(kind, 0, "FAKETIME_DONT_FAKE_MONOTONIC", "1");
            stack.start(kind, 0).await;
            if kind == Kind::Archive {
                // It alone, so that it does sign requests.
                assert!(stack.stop(kind, 1).success(), "{context}");
            }
            load.advance_within(50, &context, RECOVERY).await;
            let connection = stack.connect().await;
            let mut session = Loaded::open(&connection, &context, AckLevel::Store).await;
            session.send_seeded(1, 40).await;
            session.drain().await;
            if kind == Kind::Archive {
                archives(&stack, &session, &context).await;
                stack.start(kind, 1).await;
            }
            session.check(&connection, &context).await;
            sessions.push(session);
        }
        assert!(stack.stop(kind, 0).success(), "{kind:?}");
        stack.set_of(kind, 0, "FAKETIME", "+0");
        stack.start(kind, 0).await;
    }
    bodies_are_right(&stack, &sessions, "clocks are right again").await;
    ends_well(&mut stack, load, "clocks are right again").await;
}

/// Waits until the archiver has moved something of the session.
async fn archives(stack: &NativeStack, session: &Loaded, context: &str) {
    let prefix = format!("sessions/{}/", session.lifetime.session_id);
    let moved = async {
        while stack.objects(&prefix).is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    crate::support::within(&format!("{context}: a segment"), moved).await;
}

/// The library that lies about the time; `scripts/engines/install.sh` installs it.
fn faketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").expect("a folder").flatten();
    let mut found = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    let found = found.find(|library| Path::new(library).exists());
    found.expect("libfaketime is installed")
}
