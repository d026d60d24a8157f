//! Whether members run, and how they end: by signals, by themselves, one by one or all.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::{Kind, NativeStack};
use crate::support::process::{Process, ready, signal};

impl NativeStack {
    /// Whether a member was started and neither killed nor stopped.
    pub fn is_running(&self, kind: Kind, number: usize) -> bool {
        self.member(kind, number).process.is_some()
    }

    /// Whether a member's process is still there.
    pub fn is_alive(&mut self, kind: Kind, number: usize) -> bool {
        let process = self.member_mut(kind, number).process.as_mut();
        process.is_some_and(|process| process.ended().is_none())
    }

    /// `kill -9` of one member.
    pub fn kill(&mut self, kind: Kind, number: usize) {
        self.take(kind, number).kill();
    }

    /// SIGTERM to one member, and its end.
    pub fn stop(&mut self, kind: Kind, number: usize) -> ExitStatus {
        self.take(kind, number).stop()
    }

    /// SIGTERM to one member; how it ended, or nothing if it is still there after `bound`.
    pub async fn stop_within(&mut self, kind: Kind, number: usize, bound: Duration) -> Option<ExitStatus> {
        self.signal(kind, number, "TERM");
        let deadline = Instant::now() + bound;
        loop {
            let ended = self.take_ended(kind, number);
            if ended.is_some() || Instant::now() > deadline {
                return ended;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How a member ended by itself, if it has; it may be started again then.
    pub fn take_ended(&mut self, kind: Kind, number: usize) -> Option<ExitStatus> {
        let process = &mut self.member_mut(kind, number).process;
        let ended = process.as_mut().and_then(Process::ended)?;
        *process = None;
        Some(ended)
    }

    /// Whether a member is ready now.
    pub async fn is_ready(&self, kind: Kind, number: usize) -> bool {
        ready(&self.http(kind, number)).await
    }

    /// A signal to one member.
    pub fn signal(&self, kind: Kind, number: usize, name: &str) {
        signal(name, self.pid(kind, number));
    }

    /// A member's process id.
    pub fn pid(&self, kind: Kind, number: usize) -> u32 {
        let process = self.member(kind, number).process.as_ref();
        process.expect("the member is up").pid()
    }

    /// `kill -9` of everything that runs.
    pub fn kill_all(&mut self) {
        for (kind, number) in self.all() {
            if self.is_running(kind, number) {
                self.kill(kind, number);
            }
        }
    }

    /// SIGTERM to everything, relays first; the first bad end, or a good one.
    pub fn stop_all(&mut self) -> ExitStatus {
        let mut outcome = ExitStatus::default();
        for (kind, number) in self.all() {
            if self.is_running(kind, number) {
                let status = self.stop(kind, number);
                outcome = if outcome.success() { status } else { outcome };
            }
        }
        outcome
    }
}
