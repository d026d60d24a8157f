//! Engines that are set up to refuse: besides their open door they have others, and users who may do little.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};

use super::old_server;
use crate::support::native::Engines;
use crate::support::native::kafka::Doors;

/// What the broker and the database ask of who knows it.
pub(super) const PASSWORD: &str = "the-right-password-of-the-tests";
/// What nobody may find in what is said.
pub(super) const WRONG_SECRET: &str = "a-wrong-secret-that-is-never-shown";

/// Every user of the database, besides its owner.
const USERS: &str = "
    CREATE ROLE with_password LOGIN PASSWORD 'the-right-password-of-the-tests';
    CREATE ROLE tls_only LOGIN SUPERUSER;
    CREATE ROLE nobody LOGIN;
    CREATE ROLE reader LOGIN;
    GRANT pg_read_all_data TO reader;
    CREATE ROLE stuck LOGIN SUPERUSER;
    ALTER ROLE stuck SET default_transaction_read_only = on";

const WHO_MAY_CONNECT: &str = "
    hostssl all tls_only      127.0.0.1/32 trust
    host    all tls_only      127.0.0.1/32 reject
    host    all with_password 127.0.0.1/32 scram-sha-256
    host    all all           127.0.0.1/32 trust
";

/// A database of this name has the tables, and nobody connects to it.
const TEMPLATE: &str = "migrated";

/// The engines, and what else listens.
pub(super) struct Site {
    pub(super) engines: Arc<Engines>,
    pub(super) doors: Doors,
    /// Takes connections and says nothing.
    pub(super) silent: u16,
    /// PostgreSQL that says to be of an older version.
    pub(super) old_postgres: u16,
    creating: Mutex<()>,
    _folder: TempDir,
}

impl Site {
    /// The one of this test binary.
    pub(super) async fn shared() -> Arc<Self> {
        static SHARED: OnceCell<Arc<Site>> = OnceCell::const_new();
        let start = || async { Arc::new(Site::start().await) };
        Arc::clone(SHARED.get_or_init(start).await)
    }

    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        make_certificate(path);
        std::fs::write(path.join("hba.conf"), WHO_MAY_CONNECT).expect("a file");
        let setting = |name: &str, file: &str| format!("{name}={}", path.join(file).display());
        let settings = [
            "ssl=on".to_owned(),
            setting("hba_file", "hba.conf"),
            setting("ssl_cert_file", "certificate.pem"),
            setting("ssl_key_file", "database-key.pem"),
        ];
        let mut engines = Engines::prepare(&[], &settings.each_ref().map(String::as_str));
        let doors = engines.kafka.add_doors(&path.join("broker.pem"), PASSWORD);
        engines.start().await;
        let site = Self {
            silent: silent(),
            old_postgres: old_server::before(engines.postgres.port()),
            engines: Arc::new(engines),
            doors,
            creating: Mutex::new(()),
            _folder: folder,
        };
        execute(&site.engines.postgres.url("postgres"), USERS).await;
        site.engines.postgres.create_database(TEMPLATE).await;
        let store =
            wakelog_store::Store::connect(wakelog_store::Options::new(site.engines.postgres.url(TEMPLATE)));
        let store = store.await.expect("the database answers");
        store.migrate().await.expect("it is migrated");
        store.close().await;
        site
    }

    /// Creates a database, with the tables or without.
    pub(super) async fn create_database(&self, name: &str, with_tables: bool) {
        let template = if with_tables { TEMPLATE } else { "template1" };
        // A template may have one copier at a time.
        let _alone = self.creating.lock().await;
        let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
        execute(&self.engines.postgres.url("postgres"), &create).await;
    }
}

/// Runs statements.
pub(super) async fn execute(url: &str, statements: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap_or_else(|error| panic!("{statements}: {error}"));
    connection.close().await.ok();
}

/// A key and a certificate for 127.0.0.1, as each engine wants to have them.
fn make_certificate(folder: &Path) {
    let in_folder = |program: &str| {
        let mut command = Command::new(program);
        command.current_dir(folder);
        command
    };
    let made = in_folder("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{made:?}");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    let both = read("key.pem") + &read("certificate.pem");
    std::fs::write(folder.join("broker.pem"), both).expect("a file");
    std::fs::write(folder.join("database-key.pem"), read("key.pem")).expect("a file");
    let readable = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(folder.join("certificate.pem"), readable).expect("a mode");
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(folder.join("database-key.pem"), private).expect("a mode");
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt as _;
        own.uid() == 0
    });
    if is_root {
        // The server runs as another user.
        let given = in_folder("chown").args(["postgres", "database-key.pem"]).status();
        assert!(given.expect("chown runs").success());
    }
}

/// Takes connections, reads what comes, and says nothing, for as long as this process lives.
fn silent() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || swallow(&mut stream));
        }
    });
    port
}

fn swallow(stream: &mut TcpStream) {
    let mut bytes = [0; 4096];
    while matches!(stream.read(&mut bytes), Ok(1..)) {}
    stream.flush().ok();
}
