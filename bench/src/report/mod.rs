//! What was measured, and how it is shown.
//!
//! | module | decision |
//! |---|---|
//! | [`json`] | one object a line, stable names |
//! | [`merge`] | results of an earlier run, as far as they were not measured anew |
//! | [`page`] | the table, and the page with the figures and the plots |
//! | [`plot`] | the plots |

pub mod json;
pub mod merge;
pub mod page;
pub mod plot;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::stats::{median, median_ratio};

/// Peak memory of each service process, at most, in bytes.
pub const MEMORY_GOAL: u64 = 100 * 1024 * 1024;

/// A name: one that is written here, or one that was read.
pub type Name = Cow<'static, str>;

/// What a figure should come to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum Goal {
    /// Ours divided by the baseline's, at least.
    RatioAtLeast(f64),
    /// Ours divided by the baseline's, at most.
    RatioAtMost(f64),
    /// Ours, at most.
    AtMost(f64),
}

/// One side of a figure: a value of each round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The median of the rounds.
    pub median: f64,
    /// The rounds.
    pub rounds: Vec<f64>,
}

impl Side {
    fn new(rounds: Vec<f64>) -> Self {
        Self {
            median: median(&rounds).unwrap_or(f64::NAN),
            rounds,
        }
    }
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The measure that it belongs to.
    pub measure: Name,
    /// What it is.
    pub what: Name,
    /// Its unit.
    pub unit: Name,
    /// What the baseline came to; absent if there is none.
    pub baseline: Option<Side>,
    /// What Wakelog came to.
    pub ours: Side,
    /// The median over the rounds of ours divided by the baseline's.
    pub ratio: Option<f64>,
    /// What it should come to; absent if nothing is said about it.
    pub goal: Option<Goal>,
    /// Whether it does.
    pub met: Option<bool>,
}

impl Figure {
    /// A figure with a baseline, round by round.
    pub fn beside(
        measure: &'static str,
        what: &'static str,
        unit: &'static str,
        ours: Vec<f64>,
        baseline: Vec<f64>,
        goal: Option<Goal>,
    ) -> Self {
        let ratio = median_ratio(&ours, &baseline);
        Self::of(measure, what, unit, ours, Some(baseline), ratio, goal)
    }

    /// A figure that stands alone.
    pub fn alone(
        measure: &'static str,
        what: &'static str,
        unit: &'static str,
        ours: Vec<f64>,
        goal: Option<Goal>,
    ) -> Self {
        Self::of(measure, what, unit, ours, None, None, goal)
    }

    fn of(
        measure: &'static str,
        what: &'static str,
        unit: &'static str,
        ours: Vec<f64>,
        baseline: Option<Vec<f64>>,
        ratio: Option<f64>,
        goal: Option<Goal>,
    ) -> Self {
        let ours = Side::new(ours);
        let met = goal.map(|goal| match goal {
            Goal::RatioAtLeast(least) => ratio.is_some_and(|ratio| ratio >= least),
            Goal::RatioAtMost(most) => ratio.is_some_and(|ratio| ratio <= most),
            Goal::AtMost(most) => ours.median <= most,
        });
        Self {
            measure: measure.into(),
            what: what.into(),
            unit: unit.into(),
            baseline: baseline.map(Side::new),
            ours,
            ratio,
            goal,
            met,
        }
    }
}

/// A session at one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GrowthPoint {
    /// Bytes of the session's body.
    pub body_bytes: u64,
    /// Median of a window of appends, ack by the log, in milliseconds.
    pub log_append_ms: f64,
    /// Median of a window of appends, ack by the hot tail, in milliseconds.
    pub store_append_ms: f64,
    /// Median of the resumes, from the call to the checked body, in milliseconds.
    pub resume_ms: f64,
    /// The same to the body's first byte.
    pub first_byte_ms: f64,
}

/// The most memory that a service process had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// During which measure.
    pub measure: Name,
    /// Which service.
    pub service: Name,
    /// Its `VmHWM`, in bytes.
    pub peak_bytes: u64,
    /// Whether that is below 100 MB.
    pub met: bool,
}

/// Latencies to be drawn, in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The measure.
    pub measure: &'static str,
    /// Whose they are.
    pub name: &'static str,
    /// All of them.
    pub values: Vec<f64>,
}

/// Where and when some measures were run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The measures. Results that were written before they were named have none here until they are read.
    #[serde(default)]
    pub measures: Vec<Name>,
    /// The day, by the database's clock in UTC, YYYY-MM-DD; `None`: nobody wrote it down.
    #[serde(default)]
    pub day: Option<String>,
    /// Processors.
    pub processors: usize,
    /// Load average over a minute before the first measure, when the engines were idle; others' work, that is. `None`: the
    /// system does not say.
    pub load_before: Option<f64>,
    /// The database server's version.
    pub postgres: String,
    /// Replicas of the topic, each on a broker of its own. One in results that were written before it was asked.
    #[serde(default = "one")]
    pub replicas: i32,
    /// Rounds that count.
    pub rounds: usize,
    /// Against the sizes that the goals are about.
    pub scale: f64,
    /// The payload's seed.
    pub seed: u64,
}

fn one() -> i32 {
    1
}

/// Everything that was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Where and when: once for each run that measured some of it.
    pub machines: Vec<Machine>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// A session as it grows.
    pub growth: Vec<GrowthPoint>,
    /// Memory by measure and service.
    pub memory: Vec<Memory>,
    /// Latencies to be drawn.
    pub curves: Vec<Curve>,
}

/// What one measure adds to the report.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) figures: Vec<Figure>,
    pub(crate) growth: Vec<GrowthPoint>,
    pub(crate) curves: Vec<Curve>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_or_not_by_the_ratio_or_by_the_value() {
        let beside = |goal| Figure::beside("m", "w", "u", vec![5.0, 6.0], vec![10.0, 10.0], Some(goal));
        assert_eq!(beside(Goal::RatioAtLeast(0.5)).met, Some(true));
        assert_eq!(beside(Goal::RatioAtLeast(0.6)).met, Some(false));
        assert_eq!(beside(Goal::RatioAtMost(0.6)).met, Some(true));
        assert_eq!(beside(Goal::AtMost(5.4)).met, Some(false));
        assert_eq!(Figure::alone("m", "w", "u", vec![1.0], None).met, None);
        let no_ratio = Figure::alone("m", "w", "u", vec![1.0], Some(Goal::RatioAtMost(2.0)));
        assert_eq!(no_ratio.met, Some(false));
    }
}
