//! How the persister is set up.

use std::time::Duration;

use crate::Error;
use crate::undecodable_limit::UndecodableLimit;

/// How the persister is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The log and the consumer group.
    pub stream: wakelog_stream::Options,
    /// Records of a batch, at most. One batch is one transaction.
    pub max_batch_records: usize,
    /// Bytes of a batch's records, at most, but at least one record.
    pub max_batch_bytes: usize,
    /// Session states that each partition keeps between batches.
    pub cached_sessions: usize,
    /// When records that this build can't decode stop a partition.
    pub undecodable_limit: UndecodableLimit,
    /// How long a log that ends below what was folded is waited for, before its partition stops.
    pub end_wait: Duration,
    /// How often its end is looked at meanwhile.
    pub end_poll: Duration,
    /// How long giving a partition back waits for the batch that is in flight. It holds up the poll thread. A batch
    /// that takes longer is fenced by the next owner's claim.
    pub revoke_wait: Duration,
    /// How long a shutdown waits for the batches that are in flight, and then for leaving the group.
    pub drain_wait: Duration,
    /// How often the lag is measured.
    pub lag_interval: Duration,
    /// The first pause before a batch is tried again, or before the group is joined again.
    pub first_pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
}

impl Options {
    /// The defaults, for a log.
    pub fn new(stream: wakelog_stream::Options) -> Self {
        Self {
            stream,
            max_batch_records: 500,
            max_batch_bytes: 4 * 1024 * 1024,
            cached_sessions: 10_000,
            undecodable_limit: UndecodableLimit::default(),
            end_wait: Duration::from_secs(60),
            end_poll: Duration::from_secs(1),
            revoke_wait: Duration::from_secs(4),
            drain_wait: Duration::from_secs(10),
            lag_interval: Duration::from_secs(10),
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(5),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        at_least_one("max_batch_records", self.max_batch_records)?;
        at_least_one("max_batch_bytes", self.max_batch_bytes)?;
        at_least_one("undecodable_limit.window", self.undecodable_limit.window)?;
        at_least_one("undecodable_limit.records", self.undecodable_limit.records)?;
        not_zero("end_poll", self.end_poll)?;
        not_zero("lag_interval", self.lag_interval)?;
        not_zero("first_pause", self.first_pause)?;
        if self.undecodable_limit.records > self.undecodable_limit.window {
            return Err(Error::Options {
                option: "undecodable_limit.records",
                value: self.undecodable_limit.records.to_string(),
                expected: "not more than undecodable_limit.window",
            });
        }
        if self.revoke_wait >= self.stream.session_timeout / 2 {
            return Err(Error::Options {
                option: "revoke_wait",
                value: format!("{:?}", self.revoke_wait),
                expected: "shorter than half the session time-out, which is what a rebalance may take",
            });
        }
        if self.longest_pause < self.first_pause {
            return Err(Error::Options {
                option: "longest_pause",
                value: format!("{:?}", self.longest_pause),
                expected: "not shorter than first_pause",
            });
        }
        Ok(())
    }
}

fn at_least_one(option: &'static str, value: usize) -> Result<(), Error> {
    if value == 0 {
        return Err(Error::Options {
            option,
            value: value.to_string(),
            expected: "at least 1",
        });
    }
    Ok(())
}

fn not_zero(option: &'static str, value: Duration) -> Result<(), Error> {
    if value.is_zero() {
        return Err(Error::Options {
            option,
            value: format!("{value:?}"),
            expected: "more than no time",
        });
    }
    Ok(())
}
