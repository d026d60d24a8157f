//! Administration of the archive's objects.

use clap::{Args, Subcommand};

use super::{ArchiveArgs, DataDirArgs, EngineArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum SegmentsCommand {
    /// Lists segments, by session and entry
    Ls(SegmentsLsArgs),
    /// Prints the bytes of a segment's entries
    Cat(SegmentsCatArgs),
    /// Reads every segment and compares it with the manifest, and finds objects that nothing records
    Verify(SegmentsVerifyArgs),
    /// Forgets that states are in a bucket that is lost, or in another one: all are archived again, into the one that is named.
    /// Entries whose only segment was there are lost. Stop the archivers first
    BeginAnew(SegmentsBeginAnewArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SegmentsBeginAnewArgs {
    /// Do it: what the old bucket holds is of no use to a rebuild any more
    #[arg(long, required = true)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) place: ArchivePlaceArgs,
}

/// Which archive: that of --database-url and --s3-bucket, or that of the data folder of an embedded stack.
#[derive(Debug, Args)]
pub(crate) struct ArchivePlaceArgs {
    #[command(flatten)]
    pub(super) data_dir: DataDirArgs,
    #[command(flatten)]
    pub(super) engines: EngineArgs,
    #[command(flatten)]
    pub(super) archive: ArchiveArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SegmentsLsArgs {
    /// The session
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) session: Option<String>,
    /// Those of all sessions
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object per segment
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: ArchivePlaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SegmentsCatArgs {
    /// The segment's key, as `segments ls` prints it
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) place: ArchivePlaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SegmentsVerifyArgs {
    /// The session [default: all of them]
    pub(crate) session: Option<String>,
    /// Delete objects that nothing records and nothing needs
    #[arg(long)]
    pub(crate) delete: bool,
    /// Only those that are older, in seconds. Not less than an archiver may take from a PUT to its record
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, requires = "delete")]
    pub(crate) older_than: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: ArchivePlaceArgs,
}
