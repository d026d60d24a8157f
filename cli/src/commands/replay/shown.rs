//! How a replay is shown: while it runs, and in the end.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::json;
use wakelog_persister::replay::{Missing, ReplayPhase, ReplayProgress, ReplayReport};

use crate::output::Table;

/// How often a line is printed where there is no terminal for a bar.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// A bar that sums over the partitions that are folded side by side.
pub(super) struct Shown {
    bar: ProgressBar,
    /// When the next line is due.
    next_line: Mutex<Instant>,
    /// Done and total by partition.
    folding: Mutex<BTreeMap<i32, (u64, u64)>>,
}

impl Shown {
    pub(super) fn on(bar: ProgressBar) -> Self {
        Self {
            bar,
            next_line: Mutex::new(Instant::now() + BETWEEN_LINES),
            folding: Mutex::default(),
        }
    }

    pub(super) fn hear(&self, at: &ReplayProgress) {
        let counted = |what: &str| format!("{what}, {} sessions", at.done);
        let message = match at.phase {
            ReplayPhase::Listing => counted("listing the archive"),
            ReplayPhase::Restoring => counted("restoring from the archive"),
            ReplayPhase::Checking => counted("checking"),
            ReplayPhase::Folding { partition } => {
                let mut folding = self.folding.lock().unwrap_or_else(PoisonError::into_inner);
                folding.insert(partition, (at.done, at.total.unwrap_or(at.done)));
                let (done, total) = folding
                    .values()
                    .fold((0, 0), |(done, total), of| (done + of.0, total + of.1));
                format!(
                    "folding, {done} of {total} records in {} partitions",
                    folding.len()
                )
            }
        };
        if self.bar.is_hidden() {
            self.print_now_and_then(&message);
        }
        self.bar.set_message(message);
        self.bar.tick();
    }

    fn print_now_and_then(&self, message: &str) {
        let mut due = self.next_line.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now >= *due {
            *due = now + BETWEEN_LINES;
            eprintln!("{message}");
        }
    }
}

pub(super) fn json_of(report: &ReplayReport) -> serde_json::Value {
    let partitions: Vec<_> = report
        .partitions
        .iter()
        .map(|partition| {
            json!({
                "partition": partition.partition,
                "from": partition.from,
                "next_offset": partition.next_offset,
                "records": partition.records,
                "skipped": partition.skipped,
            })
        })
        .collect();
    let missing: Vec<_> = report
        .missing
        .iter()
        .map(|missing| {
            json!({
                "kind": missing.name(),
                "partition": missing.partition(),
                "session_id": missing.session().map(|session| session.to_string()),
                "first": missing.range().map(|range| range.0),
                "last": missing.range().map(|range| range.1),
                "what": missing.to_string(),
            })
        })
        .collect();
    json!({
        "complete": report.is_complete(),
        "finished": report.finished,
        "restored_sessions": report.restored_sessions,
        "restored_segments": report.restored_segments,
        "erased_sessions": report.erased_sessions,
        "partitions": partitions,
        "missing_count": report.missing_count,
        "missing": missing,
    })
}

pub(super) fn text_of(report: &ReplayReport, from_archive: bool) -> String {
    let mut table = Table::new(&["PARTITION", "FROM", "OFFSET", "RECORDS", "SKIPPED"]);
    for partition in &report.partitions {
        table.row([
            partition.partition.to_string(),
            partition.from.to_string(),
            partition.next_offset.to_string(),
            partition.records.to_string(),
            partition.skipped.to_string(),
        ]);
    }
    let mut text = table.render();
    if report.restored_sessions + report.erased_sessions > 0 {
        text.push_str(&format!(
            "\nfrom the archive, in this run: sessions {}, their segments {}, erased sessions {}\n",
            report.restored_sessions, report.restored_segments, report.erased_sessions
        ));
    }
    if report.missing_count > 0 {
        let mut table = Table::new(&["PARTITION", "SESSION", "WHAT IS MISSING"]);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        for missing in &report.missing {
            table.row([
                or_dash(missing.partition().map(|partition| partition.to_string())),
                or_dash(missing.session().map(|session| session.to_string())),
                missing.to_string(),
            ]);
        }
        let listed = report.missing.len();
        text.push_str(&format!(
            "\n{} missing, {listed} shown\n{}",
            report.missing_count,
            table.render()
        ));
    }
    let lost_its_head = report
        .missing
        .iter()
        .any(|missing| matches!(missing, Missing::Records { .. }));
    if lost_its_head && !from_archive {
        text.push_str(
            "\nthe topic has lost its head: --from-archive takes what came before from the archive\n",
        );
    }
    text.push_str(match (report.finished, report.missing_count) {
        (true, 0) => "\nthe database is built: services may use it\n",
        (true, _) => {
            "\nthe database is built: services may use it, a body that needs what is missing is an error\n"
        }
        (false, _) => "\nthe database is not built, and no service starts on it\n",
    });
    text
}
