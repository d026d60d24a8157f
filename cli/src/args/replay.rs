//! Building a database again.

use clap::Args;

use super::{ArchiveArgs, DataDirArgs};

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The database that is built: empty, or left by the same replay when it was interrupted. Other users of this machine may
    /// see it; a password may stand in PGPASSWORD instead
    #[arg(long, value_name = "URL")]
    pub(crate) into: String,
    /// Take states and segments of the archive where the topic has lost its head
    #[arg(long)]
    pub(crate) from_archive: bool,
    /// Go on however many records this build can't read: they are put aside. Without it many of them, of many sessions, are taken for
    /// those of a newer version
    #[arg(long)]
    pub(crate) accept_undecodable: bool,
    /// Kafka brokers, host:port,host:port [default: the log in the data folder of a stopped embedded stack]
    #[arg(long, value_name = "LIST")]
    pub(super) brokers: Option<String>,
    /// The transcript topic
    #[arg(long, value_name = "NAME")]
    pub(super) topic: Option<String>,
    #[command(flatten)]
    pub(super) data_dir: DataDirArgs,
    #[command(flatten)]
    pub(super) archive: ArchiveArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
