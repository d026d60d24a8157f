//! A real PostgreSQL for the tests: one server for a test binary, one database for a test.
//!
//! The server runs below a shell that waits for the end of its standard input. That is a pipe which this process
//! holds, so the server ends with the process, however that ends. A missing PostgreSQL fails the tests.

#![allow(dead_code, unreachable_pub)]

pub mod archive;
pub mod proxy;
pub mod rows;

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use wakelog_store::{Options, Store};

const START_TRIES: u32 = 5;
const START_BOUND: Duration = Duration::from_secs(30);

/// Runs as the shell's script: `$1` is the folder of the programs, `$2` the server's folder, `$3` the port.
const SERVE: &str = r#"
"$1/postgres" -D "$2/data" -p "$3" -k "$2" -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=100 \
    </dev/null >"$2/log" 2>&1 &
server=$!
cat >/dev/null
kill -INT $server 2>/dev/null
wait $server
rm -rf "$2"
"#;

pub struct Server {
    port: u16,
    databases: AtomicU32,
    /// Closed when this process ends; see the module.
    _alive: ChildStdin,
}

/// The server of this test binary.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let programs = find_programs();
        (0..START_TRIES)
            .find_map(|_| start(&programs))
            .expect("PostgreSQL did not start")
    })
}

/// A database of its own for one test.
pub struct Database {
    pub url: String,
    single_connection: bool,
}

impl Database {
    /// An empty database, for a pool as a server has it.
    pub async fn empty() -> Self {
        let server = server();
        let name = format!(
            "wakelog_test_{}",
            server.databases.fetch_add(1, Ordering::Relaxed)
        );
        let mut admin = PgConnection::connect(&server.url("postgres")).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut admin)
            .await
            .unwrap();
        admin.close().await.unwrap();
        Self {
            url: server.url(&name),
            single_connection: false,
        }
    }

    /// The same, for a pool of one connection.
    pub async fn empty_single() -> Self {
        Self {
            single_connection: true,
            ..Self::empty().await
        }
    }

    /// Short bounds: a test that waits for one should not wait long.
    pub fn options(&self) -> Options {
        let options = match self.single_connection {
            true => Options::single_connection(&self.url),
            false => Options::new(&self.url),
        };
        Options {
            acquire_timeout: Duration::from_secs(5),
            lock_timeout: Duration::from_millis(300),
            ..options
        }
    }

    pub async fn connect(&self) -> Store {
        Store::connect(self.options()).await.unwrap()
    }

    /// A store on the current schema.
    pub async fn store(&self) -> Store {
        let store = self.connect().await;
        store.migrate().await.unwrap();
        store
    }

    /// A store on the current schema for whoever builds it again.
    pub async fn unguarded(&self) -> Store {
        let options = Options {
            guarded: false,
            ..self.options()
        };
        let store = Store::connect(options).await.unwrap();
        store.migrate().await.unwrap();
        store
    }

    /// A store on the current schema that waits long for a lock: for a test that decides when it is let go.
    pub async fn patient_store(&self) -> Store {
        self.store().await.close().await;
        let options = Options {
            lock_timeout: START_BOUND,
            ..self.options()
        };
        Store::connect(options).await.unwrap()
    }

    /// A connection that the store knows nothing of.
    pub async fn raw(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// Ends every connection of the stores, as a server that restarts does.
    pub async fn end_connections(&self) {
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = 'wakelog'",
        )
        .await;
    }

    /// One number, read on a connection that the store knows nothing of.
    pub async fn number(&self, sql: &'static str) -> i64 {
        let mut connection = self.raw().await;
        let number = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        number
    }

    /// Runs statements on a connection that the store knows nothing of.
    pub async fn execute(&self, sql: &'static str) {
        let mut connection = self.raw().await;
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    /// Rows of all tables but the progress.
    pub async fn rows(&self) -> i64 {
        self.number(
            "SELECT (SELECT count(*) FROM agent_sessions) + (SELECT count(*) FROM session_pins)
                  + (SELECT count(*) FROM session_lifetimes) + (SELECT count(*) FROM session_subscribers)
                  + (SELECT count(*) FROM agent_session_transcript_entries)
                  + (SELECT count(*) FROM quarantined_records)",
        )
        .await
    }

    /// Returns once somebody on this database waits for a lock that a test holds.
    pub async fn wait_until_somebody_waits(&self) {
        let give_up = Instant::now() + START_BOUND;
        let mut connection = self.raw().await;
        loop {
            let waiting: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'",
            )
            .fetch_one(&mut connection)
            .await
            .unwrap();
            if waiting > 0 {
                return;
            }
            assert!(Instant::now() < give_up, "nobody waits for a lock");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Transactions that somebody left open on this database.
    pub async fn open_transactions(&self) -> i64 {
        self.number(
            "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'",
        )
        .await
    }
}

impl Server {
    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

/// The newest PostgreSQL that is installed, or the one that the environment names.
fn find_programs() -> PathBuf {
    if let Some(folder) = std::env::var_os("WAKELOG_TEST_POSTGRES_BIN") {
        return folder.into();
    }
    let mut installed: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version: u32 = path.file_name()?.to_str()?.parse().ok()?;
            path.join("bin/initdb")
                .is_file()
                .then(|| (version, path.join("bin")))
        })
        .filter(|(version, _)| *version >= 15)
        .collect();
    installed.sort();
    let (_, newest) = installed.pop().expect(
        "no PostgreSQL 15 or newer in /usr/lib/postgresql: install one or set WAKELOG_TEST_POSTGRES_BIN",
    );
    newest
}

/// `None` if somebody took the port meanwhile.
fn start(programs: &Path) -> Option<Server> {
    // Ours until the shell runs, which deletes it when the server has ended.
    let temporary = tempfile::Builder::new()
        .prefix("wakelog-postgres-")
        .tempdir()
        .unwrap();
    let folder = temporary.path().to_owned();
    if is_root() {
        run(Command::new("chown").arg("postgres").arg(&folder));
    }
    run(as_postgres(&programs.join("initdb"))
        .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "-D"])
        .arg(folder.join("data")));
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut shell = as_postgres(Path::new("/bin/sh"));
    shell
        .args(["-c", SERVE, "serve"])
        .arg(programs)
        .arg(&folder)
        .arg(port.to_string());
    let mut child = shell.current_dir("/").stdin(Stdio::piped()).spawn().unwrap();
    let alive = child.stdin.take().unwrap();
    assert_eq!(temporary.keep(), folder);
    if !wait_until_ready(programs, &folder, port, &mut child) {
        return None;
    }
    Some(Server {
        port,
        databases: AtomicU32::new(0),
        _alive: alive,
    })
}

fn wait_until_ready(programs: &Path, folder: &Path, port: u16, child: &mut Child) -> bool {
    let give_up = Instant::now() + START_BOUND;
    while Instant::now() < give_up && child.try_wait().unwrap().is_none() {
        let ready = Command::new(programs.join("pg_isready"))
            .arg("-q")
            .arg("-h")
            .arg(folder)
            .args(["-p", &port.to_string()])
            .status()
            .unwrap();
        if ready.success() {
            return true;
        }
        sleep(Duration::from_millis(50));
    }
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    eprintln!("PostgreSQL on port {port} did not start:\n{log}");
    false
}

/// PostgreSQL refuses to run as root.
fn as_postgres(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}

fn run(command: &mut Command) {
    let output = command
        .current_dir("/")
        .stdin(File::open("/dev/null").unwrap())
        .output()
        .unwrap_or_else(|error| panic!("{command:?} did not run: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
