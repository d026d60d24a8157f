//! What `cargo test` expects of a test binary: filters and flags of libtest, one line a case, and the line that
//! `scripts/run-tests.sh` adds up. Cases run one after the other on the main thread, which outlives every process that they start.

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::runtime::Runtime;

/// One test.
pub struct Case {
    pub name: &'static str,
    pub run: fn() -> LocalBoxFuture<'static, ()>,
}

/// Flags of libtest that have a value after them.
const WITH_VALUE: [&str; 7] = [
    "--test-threads",
    "--format",
    "--color",
    "--logfile",
    "--shuffle-seed",
    "-Z",
    "--report-time",
];

/// What of libtest's command line matters here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    filters: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    list: bool,
    /// Only tests that are ignored by default, of which there are none.
    ignored_only: bool,
}

impl Wanted {
    fn of(args: &[String]) -> Self {
        let mut wanted = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--exact" => wanted.exact = true,
                "--list" => wanted.list = true,
                "--ignored" => wanted.ignored_only = true,
                "--skip" => wanted.skipped.extend(args.next().cloned()),
                flag if WITH_VALUE.contains(&flag) => {
                    args.next();
                }
                flag if flag.starts_with('-') => {}
                filter => wanted.filters.push(filter.to_owned()),
            }
        }
        wanted
    }

    fn has(&self, name: &str) -> bool {
        let is_meant = |filter: &String| match self.exact {
            true => name == filter,
            false => name.contains(filter.as_str()),
        };
        let is_wanted = self.filters.is_empty() || self.filters.iter().any(is_meant);
        is_wanted && !self.ignored_only && !self.skipped.iter().any(is_meant)
    }
}

/// A runtime with threads to spare: what waits for a process may hold one up.
pub fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(6)
        .enable_all()
        .build();
    runtime.expect("a runtime")
}

/// Runs what the command line names.
pub fn run(cases: &[Case], args: &[String]) -> ExitCode {
    let wanted = Wanted::of(args);
    let chosen: Vec<&Case> = cases.iter().filter(|case| wanted.has(case.name)).collect();
    if wanted.list {
        for case in &chosen {
            println!("{}: test", case.name);
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let since = Instant::now();
    let mut failed = Vec::new();
    for case in &chosen {
        let ran = runtime().block_on(AssertUnwindSafe((case.run)()).catch_unwind());
        let outcome = if ran.is_ok() { "ok" } else { "FAILED" };
        println!("test {} ... {outcome}", case.name);
        if ran.is_err() {
            failed.push(case.name);
        }
    }
    for name in &failed {
        println!("    {name}");
    }
    let outcome = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {outcome}. {} passed; {} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        chosen.len() - failed.len(),
        failed.len(),
        cases.len() - chosen.len(),
        since.elapsed().as_secs_f64()
    );
    match failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
