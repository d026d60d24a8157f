//! What a run, or several, have shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::checker::{Finding, Verdict};

/// One run, or the sum of several.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub seeds: Vec<u64>,
    pub brokers: usize,
    pub writers: usize,
    pub sessions: u64,
    /// How long things failed.
    pub seconds: u64,
    /// Faults that happened, by kind.
    pub faults: BTreeMap<String, u64>,
    pub entries: Entries,
    /// What writers did, by name.
    pub deeds: BTreeMap<String, u64>,
    /// Bodies that were compared in the end.
    pub bodies_checked: u64,
    /// The longest times without an acknowledged entry beside each kind of fault, in milliseconds.
    pub unavailable: BTreeMap<String, Unavailable>,
    /// What the checker found: the session and what is wrong with it.
    pub findings: Vec<String>,
    /// What no fault explains, and what `wakelog` itself finds in the end.
    pub failures: Vec<String>,
    /// Where the first part of it was kept.
    pub kept: Vec<String>,
}

/// Counts of entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    pub sent: u64,
    pub acknowledged: u64,
    pub found: u64,
    pub lost: u64,
    pub doubled: u64,
    pub altered: u64,
    pub out_of_order: u64,
    pub gaps: u64,
    pub binds_ignored: u64,
}

/// The longest times without an acknowledged entry, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// None of any session.
    pub all: u64,
    /// None of one session's writer.
    pub one: u64,
    /// None of one session's writer, beside no fault of another kind.
    pub one_alone: u64,
}

impl Report {
    pub fn is_good(&self) -> bool {
        self.findings.is_empty() && self.failures.is_empty()
    }

    pub fn fault_count(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Adds what the checker says of a session.
    pub fn add_verdict(&mut self, session: &str, verdict: &Verdict) {
        self.sessions += 1;
        self.entries.sent += verdict.sent;
        self.entries.acknowledged += verdict.acked;
        self.entries.found += verdict.found;
        self.bodies_checked += verdict.bodies;
        for finding in &verdict.findings {
            self.count(finding);
            self.findings.push(format!("{session}: {finding}"));
        }
    }

    fn count(&mut self, finding: &Finding) {
        let entries = &mut self.entries;
        match finding {
            Finding::Lost { .. } => entries.lost += 1,
            Finding::PrunedWithoutSegment { first, last } => entries.lost += last - first + 1,
            Finding::Doubled { .. } => entries.doubled += 1,
            Finding::Altered { .. } => entries.altered += 1,
            Finding::OutOfOrder { .. } => entries.out_of_order += 1,
            Finding::Gap { .. } | Finding::Miscounted { .. } => entries.gaps += 1,
            Finding::BindIgnored { .. } => entries.binds_ignored += 1,
            Finding::Unreadable { .. }
            | Finding::OtherBody { .. }
            | Finding::AckedTooMuch { .. }
            | Finding::Unexplained => {}
        }
    }

    /// Adds another run.
    pub fn add(&mut self, other: Self) {
        self.seeds.extend(other.seeds);
        self.brokers = self.brokers.max(other.brokers);
        self.writers = self.writers.max(other.writers);
        self.sessions += other.sessions;
        self.seconds += other.seconds;
        for (kind, count) in other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        for (deed, count) in other.deeds {
            *self.deeds.entry(deed).or_default() += count;
        }
        for (kind, longest) in other.unavailable {
            let entry = self.unavailable.entry(kind).or_default();
            entry.all = entry.all.max(longest.all);
            entry.one = entry.one.max(longest.one);
            entry.one_alone = entry.one_alone.max(longest.one_alone);
        }
        self.entries.add(other.entries);
        self.bodies_checked += other.bodies_checked;
        self.findings.extend(other.findings);
        self.failures.extend(other.failures);
        self.kept.extend(other.kept);
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write_to(&mut text).expect("a string takes everything");
        text
    }

    fn write_to(&self, text: &mut String) -> std::fmt::Result {
        let per_minute = self.fault_count() as f64 * 60.0 / self.seconds.max(1) as f64;
        writeln!(
            text,
            "\nseeds {:?}: {} s, {} brokers, {} writers, {} sessions",
            self.seeds, self.seconds, self.brokers, self.writers, self.sessions
        )?;
        writeln!(text, "{} faults, {per_minute:.1} a minute", self.fault_count())?;
        writeln!(text, "\nlongest time without an acknowledged entry:")?;
        writeln!(
            text,
            "{:<28} {:>6} {:>13} {:>12} {:>21}",
            "fault", "times", "all sessions", "one session", "one, no other fault"
        )?;
        for (kind, longest) in &self.unavailable {
            let times = self.faults.get(kind).copied().unwrap_or_default();
            let seconds = |millis: u64| format!("{:.1} s", millis as f64 / 1e3);
            writeln!(
                text,
                "{kind:<28} {times:>6} {:>13} {:>12} {:>21}",
                seconds(longest.all),
                seconds(longest.one),
                seconds(longest.one_alone)
            )?;
        }
        let entries = self.entries;
        writeln!(
            text,
            "\nentries: {} sent, {} acknowledged, {} found; lost {}, doubled {}, altered {}, out of order {}, gaps {}, binds ignored {}",
            entries.sent,
            entries.acknowledged,
            entries.found,
            entries.lost,
            entries.doubled,
            entries.altered,
            entries.out_of_order,
            entries.gaps,
            entries.binds_ignored
        )?;
        let deeds: Vec<String> = self
            .deeds
            .iter()
            .map(|(deed, count)| format!("{deed} {count}"))
            .collect();
        writeln!(text, "{}", deeds.join(", "))?;
        writeln!(text, "bodies compared in the end: {}", self.bodies_checked)?;
        for finding in &self.findings {
            writeln!(text, "FOUND {finding}")?;
        }
        for failure in &self.failures {
            writeln!(text, "FAILED {failure}")?;
        }
        for kept in &self.kept {
            writeln!(text, "kept in {kept}")?;
        }
        let outcome = if self.is_good() { "good" } else { "NOT GOOD" };
        writeln!(text, "torture: {outcome}")
    }
}

impl Entries {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.found += other.found;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.altered += other.altered;
        self.out_of_order += other.out_of_order;
        self.gaps += other.gaps;
        self.binds_ignored += other.binds_ignored;
    }
}
