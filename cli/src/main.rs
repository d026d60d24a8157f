//! The binary `wakelog`.
//!
//! | module | decision |
//! |---|---|
//! | `args` | the command line |
//! | `config` | which value of a setting counts |
//! | `exit` | exit codes, error texts, hints |
//! | `output` | JSON lines, tables, progress |
//! | `discovery` | how clients find a stack |
//! | `commands` | what a user does |
//! | `freeze` | where a test lets the process freeze |
//! | `demo` | a recorded session loses its writer and comes back |
//! | `services` | what a process needs to run services |
//! | `up` | everything in one process |

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod args;
mod commands;
mod config;
mod demo;
mod discovery;
mod exit;
#[cfg(feature = "failpoints")]
mod freeze;
mod logs;
mod output;
mod services;
mod up;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use wakelog_contract::Exit;

use args::{Cli, Command};
use config::Settings;
use exit::Error;

/// How long a runtime may take to end: a read of the standard input can't be interrupted.
const RUNTIME_WAIT: Duration = Duration::from_millis(200);

fn main() -> anyhow::Result<ExitCode> {
    // Takes failpoints from the variable FAILPOINTS; without it there are none.
    #[cfg(feature = "failpoints")]
    let _failpoints = fail::FailScenario::setup();
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime did not start")?;
    let outcome = runtime.block_on(async { Box::pin(run(&cli)).await });
    runtime.shutdown_timeout(RUNTIME_WAIT);
    Ok(match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("error: {}", error.message);
            if let Some(hint) = &error.hint {
                eprintln!("hint: {hint}");
            }
            error.exit.into()
        }
    })
}

async fn run(cli: &Cli) -> Result<Exit, Error> {
    let settings = Settings::load(&cli.flags(), cli.global.config.as_deref())?;
    logs::start(&settings, usual_logs(&cli.command))?;
    #[cfg(feature = "failpoints")]
    freeze::set_up()?;
    match &cli.command {
        Command::Up(_) => up::run(&settings).await,
        Command::Ingest(_) => services::alone::ingest(&settings).await,
        Command::Persist(_) => services::alone::persist(&settings).await,
        Command::Reconstruct(_) => services::alone::reconstruct(&settings).await,
        Command::Archive(_) => services::alone::archive(&settings).await,
        // It drains before it ends.
        Command::Append(args) => commands::append::run(&settings, args).await,
        // It ends with a batch, and goes on there the next time.
        Command::Replay(args) => Box::pin(commands::replay::run(&settings, args)).await,
        // It stops what it started and drops what it made.
        Command::Bench(args) => Box::pin(commands::bench::run(&settings, args)).await,
        command => tokio::select! {
            outcome = Box::pin(run_briefly(&settings, command)) => outcome,
            // Dropping the command removes what it left half done.
            asked = services::signals::asked_to_stop() => asked.and(Err(Error::failed("interrupted"))),
        },
    }
}

async fn run_briefly(settings: &Settings, command: &Command) -> Result<Exit, Error> {
    match command {
        Command::Migrate(_) => commands::migrate::run(settings).await,
        Command::Import(args) => commands::import::run(settings, args).await,
        Command::Tail(args) => commands::tail::run(settings, args).await,
        Command::Sessions(command) => commands::sessions::run(settings, command).await,
        Command::Resume(args) => commands::resume::run(settings, args).await,
        Command::Export(args) => commands::export::run(settings, args).await,
        Command::History(args) => commands::history::run(settings, args).await,
        Command::Erase(args) => commands::erase::run(settings, args).await,
        Command::Segments(command) => Box::pin(commands::segments::run(settings, command)).await,
        Command::Verify(args) => commands::verify::run(settings, args).await,
        Command::Doctor(args) => commands::doctor::run(settings, args).await,
        Command::Config(_) => commands::config::run(settings),
        Command::Demo(_) => demo::run(settings).await,
        Command::DemoAgent => demo::agent::run().await,
        Command::Up(_)
        | Command::Ingest(_)
        | Command::Persist(_)
        | Command::Reconstruct(_)
        | Command::Archive(_)
        | Command::Append(_)
        | Command::Replay(_)
        | Command::Bench(_) => Err(Error::failed("this command does not run briefly")),
    }
}

/// Services tell what they do; other commands only what is wrong. The demo kills things on purpose and tells so itself.
fn usual_logs(command: &Command) -> &'static str {
    match command {
        Command::Up(_)
        | Command::Ingest(_)
        | Command::Persist(_)
        | Command::Reconstruct(_)
        | Command::Archive(_) => "info",
        Command::Demo(_) | Command::DemoAgent => "off",
        // Its topics have one replica on purpose; what it can't measure is an error of its own.
        Command::Bench(_) => "error",
        _ => "warn",
    }
}
