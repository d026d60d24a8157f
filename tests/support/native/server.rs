//! The process of an engine: there, gone, started again. Shared by tests, so it is changed behind a lock.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use super::on_a_lasting_thread;
use crate::support::process::{Process, end_of};

/// The process of one engine.
pub struct ServerProcess {
    name: &'static str,
    log: PathBuf,
    process: Mutex<Option<Process>>,
}

impl ServerProcess {
    /// One that is not started yet.
    pub fn new(name: &'static str, log: PathBuf) -> Self {
        Self {
            name,
            log,
            process: Mutex::new(None),
        }
    }

    /// Starts it.
    pub fn start(&self, command: Command) {
        assert!(!self.is_running(), "{} is up", self.name);
        let (name, log) = (self.name, self.log.clone());
        let process = on_a_lasting_thread(move || Process::start(name, &command, &log));
        *self.lock() = Some(process);
    }

    /// Whether it is there; one that ended by itself is forgotten.
    pub fn is_running(&self) -> bool {
        let mut process = self.lock();
        if process.as_mut().is_some_and(|process| process.ended().is_some()) {
            *process = None;
        }
        process.is_some()
    }

    /// It is there, and may still take a while to answer.
    pub fn assert_coming_up(&self, deadline: Instant) {
        assert!(
            self.is_running() && Instant::now() < deadline,
            "{} does not answer\n{}",
            self.name,
            end_of(&self.log)
        );
    }

    /// `kill -9`.
    pub fn kill(&self) {
        let process = self.take();
        process
            .unwrap_or_else(|| panic!("{} is not up", self.name))
            .kill();
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        let process = self.lock();
        process
            .as_ref()
            .unwrap_or_else(|| panic!("{} is not up", self.name))
            .pid()
    }

    /// The process, if there is one, to be ended in its own way.
    pub fn take(&self) -> Option<Process> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().expect("not poisoned")
    }
}
