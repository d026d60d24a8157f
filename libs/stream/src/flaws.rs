//! Which settings of the topic weaken a guarantee, and which break it.

use std::collections::HashMap;

use crate::error::Error;
use crate::options::Options;
use crate::reader::Layout;

#[cfg(test)]
mod tests;

/// The largest record that services publish: a part of 512 KiB, its key and what the encoding adds.
const LARGEST_RECORD: i64 = (512 + 64) << 10;

/// From so many replicas on a record is to be on two brokers before it is acknowledged, and one may fail.
pub(crate) const REPLICAS_THAT_MAY_LOSE_ONE: i32 = 3;

/// What is wrong with the topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// What it is and what it should be, in a sentence.
    pub what: String,
    /// What to do about it.
    pub mend: &'static str,
    /// What was acknowledged may be lost, although the topic was to keep it: it must not be used as it is.
    pub breaks_durability: bool,
}

impl Flaw {
    fn weak(what: impl Into<String>, mend: &'static str) -> Self {
        Self {
            what: what.into(),
            mend,
            breaks_durability: false,
        }
    }

    fn broken(what: impl Into<String>, mend: &'static str) -> Self {
        Self {
            breaks_durability: true,
            ..Self::weak(what, mend)
        }
    }
}

const SET_IT: &str =
    "change the topic's setting at the broker, with kafka-configs.sh --alter or what your provider has";

pub(crate) fn unreadable(error: &Error) -> Flaw {
    Flaw::weak(
        format!("the settings of the topic can't be read: {error}"),
        "allow this client to describe the topic's settings",
    )
}

/// What of the topic's replicas is less than was asked for, or than the cluster could have.
pub(crate) fn of_layout(options: &Options, layout: Layout) -> Vec<Flaw> {
    let Layout {
        replicas, brokers, ..
    } = layout;
    if replicas < options.replication {
        let wanted = options.replication;
        return vec![Flaw::broken(
            format!("a partition of the topic has {replicas} replicas, --replication asks for {wanted}"),
            "add replicas with kafka-reassign-partitions.sh; or, if fewer will do, say so with --replication",
        )];
    }
    if replicas == 1 && brokers > 1 {
        return vec![Flaw::weak(
            format!(
                "a partition of the topic has 1 replica on a cluster of {brokers} brokers: an acknowledged record is on \
                 one broker only and lost with it"
            ),
            "add replicas with kafka-reassign-partitions.sh, and then ask for as many with --replication",
        )];
    }
    Vec::new()
}

/// What of these settings is wrong. A setting that the broker does not report is not judged.
pub(crate) fn of_settings(options: &Options, settings: &HashMap<String, String>) -> Vec<Flaw> {
    let text = |name: &str| settings.get(name).map(String::as_str);
    let number = |name: &str| text(name).and_then(|value| value.parse::<i64>().ok());
    let mut flaws = Vec::new();
    if let Some(policy) = text("cleanup.policy").filter(|policy| *policy != "delete") {
        flaws.push(Flaw::broken(
            format!("cleanup.policy is {policy:?}: compaction deletes entries, it must be \"delete\""),
            SET_IT,
        ));
    }
    if let Some(kind) = text("message.timestamp.type").filter(|kind| *kind != "LogAppendTime") {
        flaws.push(Flaw::weak(
            format!(
                "message.timestamp.type is {kind:?}: retention then depends on producers' clocks, it should be \
                 \"LogAppendTime\""
            ),
            SET_IT,
        ));
    }
    if let Some(bytes) = number("retention.bytes").filter(|bytes| *bytes >= 0) {
        flaws.push(Flaw::weak(
            format!(
                "retention.bytes is {bytes}: a busy partition loses records before their time, it should be -1"
            ),
            SET_IT,
        ));
    }
    if number("min.insync.replicas") == Some(1) {
        let what = "min.insync.replicas is 1: an acknowledged record may exist on one broker only and be lost with it";
        flaws.push(match options.replication >= REPLICAS_THAT_MAY_LOSE_ONE {
            true => Flaw::broken(
                format!("{what}, although --replication asks for {}; it must be 2", options.replication),
                SET_IT,
            ),
            false => Flaw::weak(
                what,
                "a cluster of three brokers, --replication 3 and min.insync.replicas=2 lose nothing with one broker",
            ),
        });
    }
    if let Some(bytes) = number("max.message.bytes").filter(|bytes| *bytes < LARGEST_RECORD) {
        flaws.push(Flaw::weak(
            format!(
                "max.message.bytes is {bytes}: a full part does not fit, it must be at least {LARGEST_RECORD}"
            ),
            SET_IT,
        ));
    }
    flaws
}
