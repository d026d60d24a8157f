//! Tortures a whole native stack, and proves that nothing was lost, doubled or altered.
//!
//! Writers attach, write, resume, end, die and take over from each other (`workload`) while services, brokers, PostgreSQL and the
//! S3 server die, freeze, are cut off and lose answers (`faults`) as a seed says (`schedule`). Then everything is mended, the
//! stack is asked for every session in every way, its services are stopped, the store is built again from the topic, and that one
//! is asked too (`observe`, `campaign`). The checker (`checker`) knows only what was sent and acknowledged; that it can fail is
//! proved by bugs that are planted in a finished store (`planted`).
//!
//! | module | what it does |
//! |---|---|
//! | `schedule` | what fails, when and for how long, by a seed |
//! | `workload` | what the stack is asked to do, and what was acknowledged |
//! | `faults` | lets things fail, and mends them |
//! | `availability` | how long nothing was acknowledged, beside which faults |
//! | `observe` | what the stack says of a session in the end |
//! | `checker` | whether that is what was sent; pure |
//! | `planted` | bugs that the checker must find |
//! | `campaign` | one run |
//! | `report` | what runs have shown, for people and as JSON |
//! | `runner` | what `cargo test` expects of a test binary |
//!
//! `scripts/torture.sh` runs several seeds. One run alone, `--keep` keeps logs and data of one that is not good:
//! `cargo test --locked --workspace --test torture -- run --seed 7 --seconds 600 --keep DIR`

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod availability;
mod campaign;
mod checker;
mod faults;
mod observe;
mod planted;
mod report;
mod runner;
mod schedule;
mod workload;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand};
use futures::FutureExt as _;

use campaign::{Asked, torture};
use report::Report;
use runner::Case;
use schedule::Schedule;

/// Everything here needs services as processes of their own.
pub(crate) const RUNS_ON_NATIVE: bool = true;

/// Tortures a native stack.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// One run; exit code 1 if it is not good
    Run(RunArgs),
    /// Prints what would fail
    Schedule(ScheduleArgs),
    /// Adds reports up; exit code 1 if one of them is not good
    Sum {
        /// What `run --report` has written
        #[arg(required = true)]
        reports: Vec<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct ScheduleArgs {
    #[arg(long)]
    seed: u64,
    /// How long things fail
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// One or three
    #[arg(long, default_value = "3", value_parser = PossibleValuesParser::new(["1", "3"]).map(brokers))]
    brokers: usize,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    schedule: ScheduleArgs,
    /// Writers at a time
    #[arg(long, default_value_t = 6)]
    writers: usize,
    /// Sessions, each of one of the writers
    #[arg(long, default_value_t = 18)]
    sessions: usize,
    /// Writes the report to a file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Keeps logs and data of a run that is not good in a folder below this one
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// What `cargo test` runs: as long as a part of CI may take.
const CASES: &[Case] = &[
    Case {
        name: "schedule::the_same_seed_is_the_same_schedule",
        run: || async { schedule::the_same_seed_is_the_same_schedule() }.boxed_local(),
    },
    Case {
        name: "availability::a_gap_counts_for_the_faults_beside_it",
        run: || async { availability::a_gap_counts_for_the_faults_beside_it() }.boxed_local(),
    },
    Case {
        name: "checker::what_was_acknowledged_must_be_there_and_the_rest_may",
        run: || {
            async { checker::cases::what_was_acknowledged_must_be_there_and_the_rest_may() }.boxed_local()
        },
    },
    Case {
        name: "checker::each_fault_of_a_history_has_its_name",
        run: || async { checker::cases::each_fault_of_a_history_has_its_name() }.boxed_local(),
    },
    Case {
        name: "checker::each_fault_of_bodies_and_holdings_has_its_name",
        run: || async { checker::cases::each_fault_of_bodies_and_holdings_has_its_name() }.boxed_local(),
    },
    Case {
        name: "planted::every_planted_bug_is_found",
        run: || planted::every_planted_bug_is_found().boxed_local(),
    },
    Case {
        name: "acked_is_durable_exactly_once_fold_no_silent_gap_one_writer_byte_exact_under_torture",
        run: || a_short_run_is_good().boxed_local(),
    },
];

/// Invariants acked-is-durable, exactly-once-fold, no-silent-gap, one-writer, resume-is-current, byte-exact, put-before-prune,
/// archived-is-complete: a dozen faults of a fixed seed on three brokers.
async fn a_short_run_is_good() {
    let asked = Asked {
        seed: 8,
        length: Duration::from_secs(80),
        brokers: 3,
        writers: 6,
        sessions: 12,
        keep: None,
    };
    let report = Box::pin(torture(&asked)).await;
    eprintln!("{}", report.text());
    assert!(report.fault_count() >= 8, "{:?}", report.faults);
    for subject in [
        "ingest",
        "persist",
        "reconstruct",
        "archive",
        "broker",
        "database",
        "object store",
    ] {
        let is_hurt = report.faults.keys().any(|kind| kind.starts_with(subject));
        assert!(is_hurt, "this seed does not hurt {subject}: {:?}", report.faults);
    }
    assert!(report.entries.acknowledged > 500, "{:?}", report.entries);
    assert!(report.is_good(), "the run is not good");
}

fn brokers(count: String) -> usize {
    if count == "1" { 1 } else { 3 }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // A filter of `cargo test` may be called as a command is; that one has no arguments of its own.
    let is_command = matches!(args.first().map(String::as_str), Some("run" | "schedule" | "sum"));
    if !(is_command && args.len() > 1) {
        return runner::run(CASES, &args);
    }
    match Cli::parse().command {
        Command::Run(args) => run(&args),
        Command::Schedule(args) => {
            let schedule = Schedule::draw(args.seed, Duration::from_secs(args.seconds), args.brokers);
            print(&schedule);
            ExitCode::SUCCESS
        }
        Command::Sum { reports } => {
            let mut sum = Report::default();
            for file in reports {
                let report =
                    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                sum.add(serde_json::from_slice(&report).expect("a report"));
            }
            outcome(&sum)
        }
    }
}

fn print(schedule: &Schedule) {
    for strike in &schedule.strikes {
        println!("{strike}");
    }
    println!(
        "{} faults of {} kinds",
        schedule.strikes.len(),
        schedule.counts().len()
    );
}

fn run(args: &RunArgs) -> ExitCode {
    let asked = Asked {
        seed: args.schedule.seed,
        length: Duration::from_secs(args.schedule.seconds),
        brokers: args.schedule.brokers,
        writers: args.writers,
        sessions: args.sessions,
        keep: args.keep.clone(),
    };
    println!("seed {}", asked.seed);
    print(&Schedule::draw(asked.seed, asked.length, asked.brokers));
    let report = runner::runtime().block_on(Box::pin(torture(&asked)));
    if let Some(file) = &args.report {
        write(&report, file);
    }
    outcome(&report)
}

fn write(report: &Report, file: &Path) {
    let json = serde_json::to_vec_pretty(report).expect("a report is JSON");
    std::fs::write(file, json).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

fn outcome(report: &Report) -> ExitCode {
    println!("{}", report.text());
    match report.is_good() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
