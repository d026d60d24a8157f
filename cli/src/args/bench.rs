//! The command line of `wakelog bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::config::S3Settings;

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
    /// The archiver on a backlog beside raw PUTs (needs an S3 bucket, as do the four below)
    Archive,
    /// Stored bytes per byte of an entry
    Stored,
    /// A resume of a body of which half is archived
    Spliced,
    /// A resume with a long archived history
    History,
    /// An agent that never writes a checkpoint
    Valve,
    /// A replay of the topic into a new database beside reading it
    Replay,
    /// The fold with more partitions and persisters
    Scale,
    /// Twenty minutes at half of what the pipeline can do: what grows? (needs an S3 bucket)
    Soak,
    /// Everything but the soak
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
    #[command(flatten)]
    pub(crate) place: BenchPlace,
    /// Rounds that count, after a warm-up
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) rounds: usize,
    /// How large everything is, against the sizes that the goals are about
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// The seed of the payload
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where bench.md and a folder bench/ with results and plots are written; results of measures that are not run stay
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object per figure
    #[arg(long)]
    pub(crate) json: bool,
}

/// The bucket of the measures of the archive, over what variables and the file say. Its secret key has no flag, since other
/// users of the machine could see it: WAKELOG_S3_SECRET_KEY, or the file.
#[derive(Debug, Args, Default)]
pub(crate) struct BenchPlace {
    /// Where an S3 server other than AWS is, http://host:port
    #[arg(long, value_name = "URL")]
    s3_endpoint: Option<String>,
    /// The bucket, which must exist; objects are put below a prefix of their own and deleted again
    #[arg(long, value_name = "NAME")]
    s3_bucket: Option<String>,
    /// The region
    #[arg(long, value_name = "NAME")]
    s3_region: Option<String>,
    /// The access key
    #[arg(long, value_name = "KEY")]
    s3_access_key: Option<String>,
    /// What that prefix begins with
    #[arg(long, value_name = "TEXT")]
    s3_prefix: Option<String>,
    /// Whether the bucket is named in the path, as servers other than AWS want it: true or false
    #[arg(long, value_name = "BOOL")]
    s3_path_style: Option<bool>,
}

impl BenchPlace {
    /// The settings, with what the flags say instead.
    pub(crate) fn over(&self, mut settings: S3Settings) -> S3Settings {
        let texts = [
            (&self.s3_endpoint, &mut settings.endpoint),
            (&self.s3_bucket, &mut settings.bucket),
            (&self.s3_access_key, &mut settings.access_key),
            (&self.s3_prefix, &mut settings.prefix),
        ];
        for (flag, setting) in texts {
            if flag.is_some() {
                setting.clone_from(flag);
            }
        }
        if let Some(region) = &self.s3_region {
            settings.region.clone_from(region);
        }
        settings.path_style = self.s3_path_style.unwrap_or(settings.path_style);
        settings
    }
}
