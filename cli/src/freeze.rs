//! Where a test lets this process freeze: `WAKELOG_TEST_FREEZE=store::after_lock:3` stops it by SIGSTOP at the third pass of
//! that failpoint, with whatever it holds, until somebody sends SIGCONT. Only with the feature `failpoints`.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::exit::Error;

const VARIABLE: &str = "WAKELOG_TEST_FREEZE";

/// Takes the place and the pass from the environment. A failpoint scenario must have been set up.
pub(crate) fn set_up() -> Result<(), Error> {
    let Ok(wanted) = std::env::var(VARIABLE) else {
        return Ok(());
    };
    let wrong = || Error::usage(format!("{VARIABLE} is {wanted:?}, it must be FAILPOINT:PASS"));
    let (failpoint, pass) = wanted.rsplit_once(':').ok_or_else(wrong)?;
    let pass: u64 = pass.parse().map_err(|_| wrong())?;
    let passes = AtomicU64::new(0);
    let freeze = move || {
        if passes.fetch_add(1, Ordering::Relaxed) + 1 == pass {
            stop_this_process();
        }
    };
    fail::cfg_callback(failpoint, freeze).map_err(|_| wrong())
}

/// Stops the process it is given, and ends once that is seen: a signal that was sent is not a signal that has come, and the thread
/// that waits for this must not go on in between. Who lets the process go on at once is not waited for for ever.
const STOP: &str = r#"kill -STOP "$1"; tries=0
until grep -q '^State:.T' "/proc/$1/status" || [ "$tries" -ge 500 ]; do tries=$((tries + 1)); sleep 0.01; done"#;

fn stop_this_process() {
    let stopped = Command::new("sh")
        .args(["-c", STOP, "sh", &std::process::id().to_string()])
        .status();
    if let Err(error) = stopped {
        tracing::error!(%error, "this process could not be frozen");
    }
}
