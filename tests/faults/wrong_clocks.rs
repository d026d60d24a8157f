//! The clock of one service is wrong by a year: what was acknowledged, and who may write, depends on no service's clock.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use wakelog_proto::v1::AckLevel;

use crate::engine_outages::RECOVERY;
use crate::support::load::{Load, Loaded};
use crate::support::native::{Kind, NativeStack};
use crate::support::within;
use crate::{bodies_are_right, ends_well};

/// A year ahead and a year behind, in seconds.
const WRONG: [i64; 2] = [31_536_000, -31_536_000];

/// Invariants acked-is-durable, exactly-once-fold, one-writer: the service in question is the first that clients come to, its
/// clock jumps while it works and is wrong when it starts. A token that it takes for expired, or makes so, is renewed, elsewhere
/// if need be.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_a_clock_is_wrong_by_a_year() {
    let mut stack = NativeStack::prepare().await;
    let clock = Clock::new(stack.folder());
    let kinds = [Kind::Ingest, Kind::Persist, Kind::Reconstruct];
    stack.up().await;
    let connection = stack.connect().await;
    let load = Load::start(&connection, "clocks", 1, 4, Duration::from_millis(10)).await;
    let mut sessions = Vec::new();
    for kind in kinds {
        restart(&mut stack, kind, Some(&clock)).await;
        for seconds in WRONG {
            for starts in [false, true] {
                let context = format!("{kind:?} at {seconds} s, starts: {starts}");
                clock.set(seconds);
                if starts {
                    restart(&mut stack, kind, Some(&clock)).await;
                }
                load.advance_within(50, &context, RECOVERY).await;
                let connection = stack.connect().await;
                let mut session = Loaded::open(&connection, &context, AckLevel::Store).await;
                session.send_seeded(1, 40).await;
                session.drain().await;
                session.check(&connection, &context).await;
                sessions.push(session);
            }
        }
        clock.set(0);
        restart(&mut stack, kind, None).await;
    }
    bodies_are_right(&stack, &sessions, "clocks are right again").await;
    ends_well(&mut stack, load, "clocks are right again").await;
}

/// Invariants put-before-prune, archived-is-complete: an object store refuses what was signed at another time, and tells its own.
/// The archiver goes on by that.
#[tokio::test(flavor = "multi_thread")]
async fn put_before_prune_while_the_archivers_clock_is_wrong_by_a_year() {
    let mut stack = NativeStack::prepare().await;
    let clock = Clock::new(stack.folder());
    stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", "20000");
    stack.up_without(Kind::Archive, 1).await;
    let connection = stack.connect().await;
    let load = Load::start(&connection, "archive", 1, 4, Duration::from_millis(10)).await;
    restart(&mut stack, Kind::Archive, Some(&clock)).await;
    for seconds in WRONG {
        for starts in [false, true] {
            let context = format!("archiver at {seconds} s, starts: {starts}");
            clock.set(seconds);
            if starts {
                restart(&mut stack, Kind::Archive, Some(&clock)).await;
            }
            load.advance_within(50, &context, RECOVERY).await;
            archives(&stack, &context).await;
        }
    }
    clock.set(0);
    archives(&stack, "the clock is right again").await;
    ends_well(&mut stack, load, "the clock is right again").await;
}

/// Waits until the archiver has moved something.
async fn archives(stack: &NativeStack, context: &str) {
    let before = stack.objects("sessions/");
    let moved = async {
        while stack.objects("sessions/") == before {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within(&format!("{context}: a segment"), moved).await;
}

/// Stops the first of a kind and starts it with this clock, or with that of the machine.
async fn restart(stack: &mut NativeStack, kind: Kind, clock: Option<&Clock>) {
    assert!(stack.stop(kind, 0).success(), "{kind:?}");
    for name in [PRELOAD, FILE] {
        stack.unset_of(kind, 0, name);
    }
    for (name, value) in clock.iter().flat_map(|clock| clock.variables()) {
        stack.set_of(kind, 0, name, &value);
    }
    stack.start(kind, 0).await;
}

const PRELOAD: &str = "LD_PRELOAD";
const FILE: &str = "WRONG_CLOCK_FILE";

/// A wall clock that lies, of every process that has its variables.
struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// It is right until it is set.
    fn new(folder: &Path) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/faults/wrong_clocks/clock.c");
        let clock = Self {
            library: folder.join("wrong-clock.so"),
            file: folder.join("wrong-clock"),
        };
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&clock.library, &source])
            .output()
            .expect("a C compiler");
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{said}");
        clock.set(0);
        clock
    }

    /// How many seconds it is ahead from now on.
    fn set(&self, seconds: i64) {
        let next = self.file.with_extension("next");
        std::fs::write(&next, seconds.to_string()).expect("a file");
        std::fs::rename(next, &self.file).expect("a file in its place");
    }

    fn variables(&self) -> [(&'static str, String); 2] {
        let text = |path: &Path| path.to_str().expect("a path").to_owned();
        [(PRELOAD, text(&self.library)), (FILE, text(&self.file))]
    }
}
