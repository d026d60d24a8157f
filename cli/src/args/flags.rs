//! Which settings a command line sets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::segments::ArchivePlaceArgs;
use super::{
    ArchiveArgs, BenchArgs, Cli, Command, DataDirArgs, EngineArgs, ListenArgs, ReplayArgs, SegmentsCommand,
    ServerArgs, SessionsCommand,
};

/// The values that flags set, by the key of the setting.
pub(crate) type Flags = BTreeMap<&'static str, String>;

impl Cli {
    /// The settings that this command line sets.
    pub(crate) fn flags(&self) -> Flags {
        let mut flags = Flags::new();
        set(&mut flags, "log", self.global.log.as_deref());
        set(&mut flags, "log_format", self.global.log_format.as_deref());
        match &self.command {
            Command::Up(args) => {
                args.data_dir.add_to(&mut flags);
                args.engines.add_to(&mut flags);
                args.listen.add_to(&mut flags);
                args.archive.add_to(&mut flags);
                set(&mut flags, "discovery", args.no_discovery.then_some("false"));
            }
            Command::Demo(args) => {
                args.data_dir.add_to(&mut flags);
                args.engines.add_to(&mut flags);
            }
            Command::DemoAgent => {}
            Command::Bench(args) => args.add_to(&mut flags),
            Command::Ingest(args) | Command::Persist(args) => {
                args.engines.add_to(&mut flags);
                args.listen.add_to(&mut flags);
            }
            Command::Reconstruct(args) | Command::Archive(args) => {
                args.engines.add_to(&mut flags);
                args.listen.add_to(&mut flags);
                args.archive.add_to(&mut flags);
            }
            Command::Migrate(args) => args.engines.add_to(&mut flags),
            Command::Import(args) => args.server.add_to(&mut flags),
            Command::Append(args) => args.server.add_to(&mut flags),
            Command::Tail(args) => args.server.add_to(&mut flags),
            Command::Sessions(SessionsCommand::Ls(args)) => args.server.add_to(&mut flags),
            Command::Sessions(SessionsCommand::Show(args)) => args.server.add_to(&mut flags),
            Command::Resume(args) => args.server.add_to(&mut flags),
            Command::Export(args) => args.server.add_to(&mut flags),
            Command::History(args) => args.server.add_to(&mut flags),
            Command::Erase(args) => args.server.add_to(&mut flags),
            Command::Segments(SegmentsCommand::Ls(args)) => args.place.add_to(&mut flags),
            Command::Segments(SegmentsCommand::Cat(args)) => args.place.add_to(&mut flags),
            Command::Segments(SegmentsCommand::Verify(args)) => args.place.add_to(&mut flags),
            Command::Segments(SegmentsCommand::BeginAnew(args)) => args.place.add_to(&mut flags),
            Command::Verify(args) => {
                args.data_dir.add_to(&mut flags);
                args.engines.add_to(&mut flags);
                args.archive.add_to(&mut flags);
            }
            Command::Replay(args) => args.add_to(&mut flags),
            Command::Doctor(args) => {
                args.data_dir.add_to(&mut flags);
                args.engines.add_to(&mut flags);
                args.listen.add_to(&mut flags);
                args.archive.add_to(&mut flags);
                args.server.add_to(&mut flags);
            }
            Command::Config(args) => {
                args.data_dir.add_to(&mut flags);
                args.engines.add_to(&mut flags);
                args.listen.add_to(&mut flags);
                args.archive.add_to(&mut flags);
                args.server.add_to(&mut flags);
                set(&mut flags, "discovery", args.no_discovery.then_some("false"));
            }
        }
        flags
    }
}

impl ServerArgs {
    fn add_to(&self, flags: &mut Flags) {
        set(flags, "server", self.server.as_deref());
        set(flags, "relay", self.relay.as_deref());
        set(flags, "token", self.token.as_deref());
        set_path(flags, "token_file", self.token_file.as_ref());
    }
}

impl EngineArgs {
    fn add_to(&self, flags: &mut Flags) {
        set(flags, "brokers", self.brokers.as_deref());
        set(flags, "database_url", self.database_url.as_deref());
        set(
            flags,
            "database_connections",
            self.database_connections.as_deref(),
        );
        set(flags, "topic", self.topic.as_deref());
        set(flags, "group", self.group.as_deref());
        set(flags, "partitions", self.partitions.as_deref());
        set(flags, "replication", self.replication.as_deref());
    }
}

impl ArchiveArgs {
    fn add_to(&self, flags: &mut Flags) {
        set(flags, "s3_endpoint", self.s3_endpoint.as_deref());
        set(flags, "s3_bucket", self.s3_bucket.as_deref());
        set(flags, "s3_region", self.s3_region.as_deref());
        set(flags, "s3_access_key", self.s3_access_key.as_deref());
        set(flags, "s3_prefix", self.s3_prefix.as_deref());
        set(flags, "s3_path_style", self.s3_path_style.as_deref());
        set_path(flags, "spool_dir", self.spool_dir.as_ref());
        set(flags, "archive_valve_bytes", self.archive_valve_bytes.as_deref());
        set(
            flags,
            "archive_resweep_seconds",
            self.archive_resweep_seconds.as_deref(),
        );
    }
}

impl ArchivePlaceArgs {
    fn add_to(&self, flags: &mut Flags) {
        self.data_dir.add_to(flags);
        self.engines.add_to(flags);
        self.archive.add_to(flags);
    }
}

impl ReplayArgs {
    fn add_to(&self, flags: &mut Flags) {
        set(flags, "brokers", self.brokers.as_deref());
        set(flags, "topic", self.topic.as_deref());
        self.data_dir.add_to(flags);
        self.archive.add_to(flags);
    }
}

impl BenchArgs {
    fn add_to(&self, flags: &mut Flags) {
        set(flags, "brokers", self.brokers.as_deref());
        set(flags, "database_url", self.database_url.as_deref());
        set(flags, "replication", self.replication.as_deref());
    }
}

impl DataDirArgs {
    fn add_to(&self, flags: &mut Flags) {
        set_path(flags, "data_dir", self.data_dir.as_ref());
    }
}

impl ListenArgs {
    fn add_to(&self, flags: &mut Flags) {
        set(flags, "listen", self.listen.as_deref());
        set(flags, "http_listen", self.http_listen.as_deref());
        set_path(flags, "token_key_file", self.token_key_file.as_ref());
        set_path(flags, "caller_token_file", self.caller_token_file.as_ref());
    }
}

fn set(flags: &mut Flags, key: &'static str, value: Option<&str>) {
    if let Some(value) = value {
        flags.insert(key, value.to_owned());
    }
}

fn set_path(flags: &mut Flags, key: &'static str, value: Option<&PathBuf>) {
    if let Some(value) = value {
        flags.insert(key, value.to_string_lossy().into_owned());
    }
}
