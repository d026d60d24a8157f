//! Where the archive is.

use std::path::PathBuf;

use clap::Args;

use super::{EngineArgs, ListenArgs};

/// The object store that holds the archive. Its secret key has no flag, since other users of the machine could see it:
/// WAKELOG_S3_SECRET_KEY, or the file.
#[derive(Debug, Args, Default)]
pub(crate) struct ArchiveArgs {
    /// Where an S3 server other than AWS is, http://host:port
    #[arg(long, value_name = "URL")]
    pub(super) s3_endpoint: Option<String>,
    /// The bucket, which must exist
    #[arg(long, value_name = "NAME")]
    pub(super) s3_bucket: Option<String>,
    /// The region
    #[arg(long, value_name = "NAME")]
    pub(super) s3_region: Option<String>,
    /// The access key
    #[arg(long, value_name = "KEY")]
    pub(super) s3_access_key: Option<String>,
    /// What every object's name begins with, so that a bucket can be shared
    #[arg(long, value_name = "TEXT")]
    pub(super) s3_prefix: Option<String>,
    /// Whether the bucket is named in the path, as servers other than AWS want it: true or false
    #[arg(long, value_name = "BOOL")]
    pub(super) s3_path_style: Option<String>,
    /// Where large segments wait for their upload [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(super) spool_dir: Option<PathBuf>,
    /// Bytes of entries after the last checkpoint that stay in the database, at most
    #[arg(long, value_name = "BYTES")]
    pub(super) archive_valve_bytes: Option<String>,
    /// Seconds after which the objects of an erased session are deleted once more
    #[arg(long, value_name = "SECONDS")]
    pub(super) archive_resweep_seconds: Option<String>,
}

/// A service that has to do with the archive.
#[derive(Debug, Args)]
pub(crate) struct ArchiveServiceArgs {
    #[command(flatten)]
    pub(crate) engines: EngineArgs,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
}
