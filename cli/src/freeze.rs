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

fn stop_this_process() {
    let kill = Command::new("kill")
        .args(["-STOP", &std::process::id().to_string()])
        .status();
    if let Err(error) = kill {
        tracing::error!(%error, "this process could not be frozen");
    }
}
