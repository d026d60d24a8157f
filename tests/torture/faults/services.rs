//! One service, by signals and failpoints.

use std::time::{Duration, Instant};

use super::Place;
use crate::schedule::{Fault, ServiceFault, Strike};
use crate::support::native::{Kind, NativeStack};
use crate::support::process::is_stopped;

/// How long a service may take to come up, over several starts: what it needs may be away itself.
const UP_WITHIN: Duration = Duration::from_secs(150);

/// How long a service may take to drain.
const STOPPED_WITHIN: Duration = Duration::from_secs(60);

/// How long a service may take to get to its step; it may have nothing to do there.
const STEP_WITHIN: Duration = Duration::from_secs(12);

const FREEZE: &str = "WAKELOG_TEST_FREEZE";
const FAILPOINTS: &str = "FAILPOINTS";

/// Where a service can be hurt: each with the most passes that it makes in a few seconds.
fn steps(kind: Kind) -> &'static [(&'static str, u32)] {
    match kind {
        Kind::Ingest => &[
            ("stream::publish", 20),
            ("stream::publish_after", 20),
            ("ingest::before_ack", 20),
            ("ingest::watcher", 3),
        ],
        Kind::Persist => &[
            ("persister::after_claim", 1),
            ("persister::before_batch", 8),
            ("persister::after_fold", 8),
            ("persister::before_write", 8),
            ("persister::before_commit", 8),
            ("persister::after_commit", 8),
            ("store::before_begin", 8),
            ("store::after_lock", 8),
            ("store::after_write", 8),
            ("store::before_commit", 8),
            ("store::after_commit", 8),
        ],
        Kind::Reconstruct => &[
            ("reconstructor::after_raise", 3),
            ("reconstructor::after_bind_publish", 3),
            ("reconstructor::after_bind_applied", 3),
            ("reconstructor::before_close", 1),
            ("stream::publish", 3),
            ("stream::publish_after", 3),
        ],
        Kind::Archive => &[
            ("archiver::before_stage", 2),
            ("archiver::after_stage", 2),
            ("archiver::after_put", 2),
            ("archiver::before_state", 1),
            ("archiver::after_state", 1),
            ("archive::before_put", 2),
            ("archive::after_put", 2),
            ("archive::after_verify", 2),
            ("store::flush_after_delete", 2),
            ("store::flush_before_commit", 2),
            ("store::flush_after_commit", 2),
        ],
    }
}

/// One of so many, by the draw of a strike. `digit` tells choices of the same strike apart.
pub fn one_of(strike: &Strike, digit: u32, count: usize) -> usize {
    (strike.draw / 1_000_u32.pow(digit)) as usize % count
}

pub(super) async fn strike_all(
    stack: &mut NativeStack,
    place: &Place,
    strikes: Vec<Strike>,
    length: Duration,
) {
    for strike in strikes {
        if !place.is_due(&strike, length).await {
            break;
        }
        let Fault::Service(kind, fault) = strike.fault else {
            continue;
        };
        nobody_has_ended(stack, place);
        let number = one_of(&strike, 0, stack.count(kind));
        let from = place.availability.now();
        let note = hurt(stack, place, &strike, (kind, number), fault).await;
        bring_up(stack, place, kind, number).await;
        place.mended(&strike, from, format!("number {number}{note}"));
    }
}

async fn hurt(
    stack: &mut NativeStack,
    place: &Place,
    strike: &Strike,
    (kind, number): (Kind, usize),
    fault: ServiceFault,
) -> String {
    let steps = steps(kind);
    let (step, most) = steps[one_of(strike, 1, steps.len())];
    let pass = one_of(strike, 2, most as usize) + 1;
    if fault != ServiceFault::Frozen {
        place.set_armed(kind, number, fault == ServiceFault::FailsAtStep);
    }
    match fault {
        ServiceFault::Killed => {
            stack.kill(kind, number);
            tokio::time::sleep(strike.lasts).await;
            String::new()
        }
        ServiceFault::Restarted => match stack.stop_within(kind, number, STOPPED_WITHIN).await {
            Some(status) => format!(", ended with {status}"),
            None => {
                let name = kind.command();
                place.fail(format!("{name} {number} does not end within {STOPPED_WITHIN:?}"));
                stack.kill(kind, number);
                String::new()
            }
        },
        ServiceFault::Frozen => {
            stack.signal(kind, number, "STOP");
            tokio::time::sleep(strike.lasts).await;
            stack.signal(kind, number, "CONT");
            String::new()
        }
        ServiceFault::DiesAtStep | ServiceFault::WakesAtStep => {
            stack.kill(kind, number);
            stack.set_of(kind, number, FREEZE, &format!("{step}:{pass}"));
            stack.spawn(kind, number);
            stack.unset_of(kind, number, FREEZE);
            if !freezes(stack, kind, number).await {
                // It might get there later, when nobody wakes it.
                stack.kill(kind, number);
                return format!(", did not get to pass {pass} of {step}");
            }
            if fault == ServiceFault::DiesAtStep {
                stack.kill(kind, number);
                return format!(" at pass {pass} of {step}");
            }
            tokio::time::sleep(strike.lasts).await;
            stack.signal(kind, number, "CONT");
            format!(" at pass {pass} of {step}")
        }
        ServiceFault::FailsAtStep => {
            stack.kill(kind, number);
            let failpoint = format!("{step}={pass}*off->2*return->off");
            stack.set_of(kind, number, FAILPOINTS, &failpoint);
            stack.spawn(kind, number);
            stack.unset_of(kind, number, FAILPOINTS);
            tokio::time::sleep(strike.lasts).await;
            match stack.take_ended(kind, number) {
                Some(status) => format!(" at {failpoint}, ended with {status}"),
                None => format!(" at {failpoint}"),
            }
        }
    }
}

/// Waits until a service freezes at its step; no if it does not get there.
async fn freezes(stack: &mut NativeStack, kind: Kind, number: usize) -> bool {
    let deadline = Instant::now() + STEP_WITHIN;
    while Instant::now() < deadline && stack.is_alive(kind, number) {
        if is_stopped(stack.pid(kind, number)) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

/// A service that is not being hurt has no reason to end, whatever else is away.
fn nobody_has_ended(stack: &mut NativeStack, place: &Place) {
    for kind in Kind::ALL {
        for number in 0..stack.count(kind) {
            if let Some(status) = stack.take_ended(kind, number) {
                let name = kind.command();
                if !place.is_armed(kind, number) {
                    place.fail(format!("{name} {number} has ended by itself with {status}"));
                }
                place.set_armed(kind, number, false);
                stack.spawn(kind, number);
            }
        }
    }
}

/// Starts a service, as its supervisor would, until it is ready: what it needs to start may be away.
async fn bring_up(stack: &mut NativeStack, place: &Place, kind: Kind, number: usize) {
    let deadline = Instant::now() + UP_WITHIN;
    while !stack.is_ready(kind, number).await {
        stack.take_ended(kind, number);
        if !stack.is_running(kind, number) {
            stack.spawn(kind, number);
        }
        if Instant::now() > deadline {
            let name = kind.command();
            return place.fail(format!("{name} {number} is not ready within {UP_WITHIN:?}"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Everything is mended: every service must be there and become ready.
pub async fn bring_all_up(stack: &mut NativeStack, place: &Place) {
    nobody_has_ended(stack, place);
    for kind in Kind::ALL {
        for number in 0..stack.count(kind) {
            bring_up(stack, place, kind, number).await;
        }
    }
}
