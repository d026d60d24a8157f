//! The command line of `wakelog bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchMeasure {
    /// Pipelined commits beside a raw producer
    Commits,
    /// One commit at a time beside a raw producer
    Unary,
    /// The persister on a backlog beside raw UNNEST
    Persist,
    /// A resume beside a streamed SELECT
    Resume,
    /// Appending and resuming as a session grows
    Growth,
    /// From the call of a resume to its first byte
    Barrier,
    /// Everything
    All,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// What is measured
    #[arg(value_enum, default_value_t = BenchMeasure::All)]
    pub(crate) measure: BenchMeasure,
    /// Kafka brokers, host:port,host:port; a topic is made there and deleted again
    #[arg(long, value_name = "LIST")]
    pub(super) brokers: Option<String>,
    /// A PostgreSQL server, by the URL of one of its databases; another database is made there and dropped again
    #[arg(long, value_name = "URL")]
    pub(super) database_url: Option<String>,
    /// Replicas of the topic
    #[arg(long, value_name = "N")]
    pub(super) replication: Option<String>,
    /// Rounds that count, after a warm-up
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: usize,
    /// How large everything is, against the sizes that the goals are about
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// The seed of the payload
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where bench.md and a folder bench/ with results and plots are written
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object per figure
    #[arg(long)]
    pub(crate) json: bool,
}
