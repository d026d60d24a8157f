//! What a deployment can set.

use std::time::Duration;

use tokio::sync::Semaphore;
use wakelog_model::limits::PART_SIZE;

use crate::Error;

/// Options of the sessions service.
#[derive(Debug, Clone)]
pub struct Options {
    /// The transcript topic, as the persister's progress names it.
    pub topic: String,
    /// How long a call waits for a record to be applied, and for the persister to pass a partition's end.
    pub apply_timeout: Duration,
    /// The producer's message time-out. Shorter than `apply_timeout`: a bind that was not delivered by then never
    /// will be, while its caller still waits.
    pub message_timeout: Duration,
    /// How long a lifetime token lives.
    pub token_ttl: Duration,
    /// Unary calls in flight.
    pub max_calls: usize,
    /// Resume bodies and exports in flight.
    pub max_bodies: usize,
    /// Tails in flight.
    pub max_tails: usize,
    /// Plain bytes of a page of parts. A body holds at most four pages.
    pub page_bytes: usize,
    /// How long a receiver may take nothing before its stream is ended.
    pub receiver_timeout: Duration,
    /// How long a shutdown waits for calls and bodies in flight.
    pub drain_timeout: Duration,
    /// How old the known partition count may be. New sessions only.
    pub partition_count_max_age: Duration,
}

impl Options {
    /// The defaults, for `topic`.
    pub fn new(topic: impl Into<String>) -> Self {
        Self {
            topic: topic.into(),
            apply_timeout: Duration::from_secs(15),
            message_timeout: Duration::from_secs(5),
            token_ttl: Duration::from_secs(60 * 60),
            max_calls: 256,
            max_bodies: 32,
            max_tails: 128,
            page_bytes: 4 * PART_SIZE,
            receiver_timeout: Duration::from_secs(120),
            drain_timeout: Duration::from_secs(10),
            partition_count_max_age: Duration::from_secs(10),
        }
    }

    /// Refuses what could not work.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.topic.is_empty() {
            return Err(Error::Options("the topic has no name".to_owned()));
        }
        if self.apply_timeout <= self.message_timeout {
            return Err(Error::Options(format!(
                "the apply time-out ({:?}) must be longer than the message time-out ({:?})",
                self.apply_timeout, self.message_timeout
            )));
        }
        let bounds = [
            ("max calls", self.max_calls as u128),
            ("max bodies", self.max_bodies as u128),
            ("max tails", self.max_tails as u128),
            ("page bytes", self.page_bytes as u128),
            ("token ttl", self.token_ttl.as_millis()),
            ("receiver time-out", self.receiver_timeout.as_millis()),
        ];
        let most = Semaphore::MAX_PERMITS;
        if [self.max_calls, self.max_bodies, self.max_tails]
            .iter()
            .any(|limit| *limit > most)
        {
            return Err(Error::Options(format!(
                "no limit on calls, bodies or tails may be above {most}"
            )));
        }
        match bounds.iter().find(|(_, value)| *value == 0) {
            Some((name, _)) => Err(Error::Options(format!("{name} must not be 0"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_accepted() {
        Options::new("wakelog.transcript").check().unwrap();
    }

    #[test]
    fn an_apply_timeout_within_the_message_timeout_is_refused() {
        let mut options = Options::new("wakelog.transcript");
        options.apply_timeout = options.message_timeout;
        assert!(matches!(options.check(), Err(Error::Options(_))));
    }

    #[test]
    fn what_could_not_work_is_refused() {
        assert!(matches!(Options::new("").check(), Err(Error::Options(_))));
        for broken in [
            Options {
                max_calls: 0,
                ..Options::new("t")
            },
            Options {
                max_bodies: 0,
                ..Options::new("t")
            },
            Options {
                max_tails: 0,
                ..Options::new("t")
            },
            Options {
                max_calls: usize::MAX,
                ..Options::new("t")
            },
            Options {
                page_bytes: 0,
                ..Options::new("t")
            },
            Options {
                token_ttl: Duration::ZERO,
                ..Options::new("t")
            },
            Options {
                receiver_timeout: Duration::ZERO,
                ..Options::new("t")
            },
        ] {
            assert!(matches!(broken.check(), Err(Error::Options(_))), "{broken:?}");
        }
    }
}
