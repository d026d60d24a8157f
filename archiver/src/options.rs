//! How the archiver is set up.

use std::path::PathBuf;
use std::time::Duration;

use crate::Error;

/// Whose sessions an archiver looks after.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "a process has one or two")]
pub enum Share {
    /// Its share of a consumer group's partitions; the topic also wakes it.
    Group(wakelog_stream::Options),
    /// All partitions: nobody shares the work. The database is looked at often instead, since nothing wakes it.
    All {
        /// How many partitions there are.
        partitions: i32,
    },
}

/// How the archiver is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The transcript topic, as the persister's progress names it.
    pub topic: String,
    /// Whose sessions it looks after.
    pub share: Share,
    /// Plain bytes of deltas after the last checkpoint that may stay in the hot tail: above it the oldest of them move to the
    /// archive, until half of it is left.
    pub valve_bytes: u64,
    /// How long the topic keeps its records; `None`: for ever. A session is archived as a whole before half of it has passed.
    pub retention: Option<Duration>,
    /// Where segments larger than a few MB wait for their upload; `None`: the system's folder for such files.
    pub spool_folder: Option<PathBuf>,
    /// Plain bytes of a page of parts.
    pub page_bytes: usize,
    /// How long a session that is written to is left alone before it is looked at.
    pub settle: Duration,
    /// How often all sessions are looked at, whatever woke the archiver.
    pub sweep_interval: Duration,
    /// Sessions that are worked on at a time.
    pub concurrent_jobs: usize,
    /// Sessions that may wait; more are found by the next sweep.
    pub waiting_jobs: usize,
    /// The pause after a session's work has failed; it doubles with each further failure.
    pub first_pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
    /// How long after the objects of an erased session were deleted they are deleted once more, each time.
    pub resweep_after: Duration,
    /// How often they are.
    pub sweeps_of_erased: u32,
    /// How long a shutdown waits for the work in flight.
    pub drain_timeout: Duration,
}

impl Options {
    /// The defaults, for `topic`.
    pub fn new(topic: impl Into<String>, share: Share) -> Self {
        Self {
            topic: topic.into(),
            sweep_interval: match &share {
                Share::Group(_) => Duration::from_secs(10),
                Share::All { .. } => Duration::from_secs(1),
            },
            share,
            valve_bytes: 64 * 1024 * 1024,
            retention: None,
            spool_folder: None,
            page_bytes: 2 * 1024 * 1024,
            settle: Duration::from_millis(500),
            concurrent_jobs: 2,
            waiting_jobs: 10_000,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
            resweep_after: Duration::from_secs(10 * 60),
            sweeps_of_erased: 3,
            drain_timeout: Duration::from_secs(20),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |option, value: String, expected| {
            Err(Error::Options {
                option,
                value,
                expected,
            })
        };
        if self.topic.is_empty() {
            return refuse("topic", "empty".to_owned(), "the name of a topic");
        }
        let numbers = [
            ("valve_bytes", self.valve_bytes),
            ("page_bytes", self.page_bytes as u64),
            ("concurrent_jobs", self.concurrent_jobs as u64),
            ("waiting_jobs", self.waiting_jobs as u64),
            ("sweeps_of_erased", u64::from(self.sweeps_of_erased)),
        ];
        if let Some((option, value)) = numbers.into_iter().find(|(_, value)| *value == 0) {
            return refuse(option, value.to_string(), "at least 1");
        }
        let durations = [
            ("sweep_interval", self.sweep_interval),
            ("first_pause", self.first_pause),
            ("resweep_after", self.resweep_after),
        ];
        if let Some((option, value)) = durations.into_iter().find(|(_, value)| value.is_zero()) {
            return refuse(option, format!("{value:?}"), "longer than nothing");
        }
        if self.longest_pause < self.first_pause {
            return refuse(
                "longest_pause",
                format!("{:?}", self.longest_pause),
                "not shorter than first_pause",
            );
        }
        Ok(())
    }
}
