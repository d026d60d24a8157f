//! The command line.

mod archive;
mod bench;
mod flags;
mod replay;
mod segments;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use archive::{ArchiveArgs, ArchiveServiceArgs};
pub(crate) use bench::{BenchArgs, BenchMeasure};
pub(crate) use replay::ReplayArgs;
pub(crate) use segments::{SegmentsCatArgs, SegmentsCommand, SegmentsLsArgs, SegmentsVerifyArgs};

/// Makes the session transcript of an AI agent outlive the container that wrote it.
#[derive(Debug, Parser)]
#[command(name = "wakelog", version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 usage, 3 not found or not allowed, 4 refused (fenced, aborted, \
conflict), 5 a dependency is unreachable or wrong, 6 verification found a difference, or a replay something that nobody has.\n\
Every option can also be set by a variable (WAKELOG_BROKERS for --brokers) or in the configuration file (brokers = \"...\").";

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    /// The configuration file [default: ./wakelog.toml if it is there] [env: WAKELOG_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What is logged, as a filter: `info`, `wakelog_ingest=debug,warn` ... [env: WAKELOG_LOG]
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
    /// How logs are written: text or json
    #[arg(long, global = true, value_name = "FORMAT")]
    log_format: Option<String>,
}

/// Which server, and who is asking.
#[derive(Debug, Args, Default)]
pub(crate) struct ServerArgs {
    /// The server, or several as URL,URL: the first that can be reached [default: what `wakelog up` announced, else
    /// http://127.0.0.1:7420]
    #[arg(long, value_name = "URLS")]
    server: Option<String>,
    /// Where entries are sent, if `wakelog ingest` runs alone; several as URL,URL: if one breaks, the next is used
    /// [default: the same as --server]
    #[arg(long, value_name = "URLS")]
    relay: Option<String>,
    /// The caller token. Other users of this machine may see it; prefer --token-file
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,
    /// The file that holds the caller token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// The log and the database.
#[derive(Debug, Args, Default)]
pub(crate) struct EngineArgs {
    /// Kafka brokers, host:port,host:port
    #[arg(long, value_name = "LIST")]
    brokers: Option<String>,
    /// The PostgreSQL database, postgres://user@host/db
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Connections to the database, at most
    #[arg(long, value_name = "N")]
    database_connections: Option<String>,
    /// The transcript topic
    #[arg(long, value_name = "NAME")]
    topic: Option<String>,
    /// The persister's consumer group
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Partitions of the topic, if it has to be created
    #[arg(long, value_name = "N")]
    partitions: Option<String>,
    /// Replicas of the topic, if it has to be created
    #[arg(long, value_name = "N")]
    replication: Option<String>,
}

/// The data folder.
#[derive(Debug, Args, Default)]
pub(crate) struct DataDirArgs {
    /// The data folder of the embedded stack [default: ~/.local/share/wakelog]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Where a service listens, and its secrets.
#[derive(Debug, Args, Default)]
pub(crate) struct ListenArgs {
    /// Where gRPC is served
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Where /healthz, /readyz and /metrics are served
    #[arg(long, value_name = "ADDRESS")]
    http_listen: Option<String>,
    /// The file with the key that signs lifetime tokens, at least 32 bytes
    #[arg(long, value_name = "FILE")]
    token_key_file: Option<PathBuf>,
    /// The file with the caller tokens, lines of `account token`
    #[arg(long, value_name = "FILE")]
    caller_token_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs everything in one process
    Up(UpArgs),
    /// Shows a recorded agent session lose its writer and come back byte for byte
    Demo(DemoArgs),
    /// The demo's agent
    #[command(hide = true)]
    DemoAgent,
    /// Runs the relay's server half alone
    Ingest(ServiceArgs),
    /// Runs the persister alone
    Persist(ServiceArgs),
    /// Runs the reconstructor alone
    Reconstruct(ArchiveServiceArgs),
    /// Runs the archiver alone
    Archive(ArchiveServiceArgs),
    /// Brings a database's schema up to date
    Migrate(MigrateArgs),
    /// Opens a session that holds a whole file
    Import(ImportArgs),
    /// Appends lines to a session, each line one entry
    Append(AppendArgs),
    /// Prints a session's entries as they are applied
    Tail(TailArgs),
    /// Lists and shows sessions
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Takes a session over and writes its file; with --at, forks it as it was
    Resume(ResumeArgs),
    /// Writes a session's file and leaves the session alone
    Export(ExportArgs),
    /// Writes every entry that a session ever had, those that checkpoints have superseded as well
    History(HistoryArgs),
    /// Erases a session and its sub-sessions, for good
    Erase(EraseArgs),
    /// Lists, prints and checks the objects of the archive
    #[command(subcommand)]
    Segments(SegmentsCommand),
    /// Compares the hot tail with a fold of the whole log
    Verify(VerifyArgs),
    /// Builds an empty database again, from the topic or from the archive and the rest of the topic
    Replay(ReplayArgs),
    /// Looks at everything that Wakelog depends on
    Doctor(DoctorArgs),
    /// Prints the effective configuration, secrets hidden
    Config(ConfigArgs),
    /// Measures the pipeline beside what its engines do raw, on a topic and a database of its own
    Bench(BenchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArgs,
    #[command(flatten)]
    pub(crate) engines: EngineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArgs,
    #[command(flatten)]
    pub(crate) engines: EngineArgs,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
    /// Do not announce this stack to the clients of this user
    #[arg(long)]
    pub(crate) no_discovery: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    #[command(flatten)]
    pub(crate) engines: EngineArgs,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    pub(crate) engines: EngineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file; it becomes one checkpoint, byte for byte
    pub(crate) file: PathBuf,
    /// A label of the new session, may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Names this import: the same name again is the same session, which must hold the file or nothing
    #[arg(long, value_name = "NAME")]
    pub(crate) request_id: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AppendArgs {
    /// The session
    pub(crate) session: String,
    /// Where the lines come from
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Bind over whatever writer holds the session
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TailArgs {
    /// The session
    pub(crate) session: String,
    /// Wait for more
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The first entry wanted; 0 is the start of the body as of now
    #[arg(long, value_name = "ENTRY", default_value_t = 0)]
    pub(crate) from: u64,
    /// Print one JSON object per entry, without its bytes
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Lists sessions, newest first
    Ls(SessionsLsArgs),
    /// Shows one session and its lifetimes
    Show(SessionsShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SessionsLsArgs {
    /// Only sessions with this label, may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// At most so many; 0 is all
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: u64,
    /// Print one JSON object per session
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsShowArgs {
    /// The session
    pub(crate) session: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The session
    pub(crate) session: String,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Leave the session alone, and put its body as it was after this entry into a new session
    #[arg(long, value_name = "ENTRY", conflicts_with = "container")]
    pub(crate) at: Option<u64>,
    /// The container that resumes
    #[arg(long, value_name = "NAME", default_value = "wakelog-cli")]
    pub(crate) container: String,
    /// Names this resume: the same name again is the same resume, with --at the same new session
    #[arg(long, value_name = "NAME")]
    pub(crate) request_id: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The session
    pub(crate) session: String,
    /// The file to write, or - for the standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The session
    pub(crate) session: String,
    /// The file to write [default: the standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Print one JSON object per entry; its bytes go to --out, if that is given
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EraseArgs {
    /// The session
    pub(crate) session: String,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArgs,
    #[command(flatten)]
    pub(crate) engines: EngineArgs,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArgs,
    #[command(flatten)]
    pub(crate) engines: EngineArgs,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Print one JSON object per check
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArgs,
    #[command(flatten)]
    pub(crate) engines: EngineArgs,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    #[command(flatten)]
    pub(crate) archive: ArchiveArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Do not announce the stack
    #[arg(long)]
    pub(crate) no_discovery: bool,
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests;
