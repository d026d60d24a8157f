//! The stack that a stream-level test runs on: the same tests, whichever it is.

use std::process::ExitStatus;

use wakelog_client::Connection;

use super::embedded::EmbeddedStack;
use super::native::NativeStack;
use super::process::get;

/// Which engines a test binary runs on. `WAKELOG_TEST_STACK` says `embedded`, `native` or `containers`; else it is what the
/// binary's root names as its own. Containers are the native stack, with the engines that tests share in containers.
fn is_native() -> bool {
    match std::env::var("WAKELOG_TEST_STACK").as_deref() {
        Ok("native" | "containers") => true,
        Ok("embedded") => false,
        Ok(other) => panic!("WAKELOG_TEST_STACK is {other:?}, it must be embedded, native or containers"),
        Err(_) => crate::RUNS_ON_NATIVE,
    }
}

/// Whether the engines that tests share are containers.
pub fn engines_run_in_containers() -> bool {
    std::env::var("WAKELOG_TEST_STACK").as_deref() == Ok("containers")
}

/// A stack of one of the kinds. Dropping it kills what still runs.
#[allow(clippy::large_enum_variant, reason = "a test has one or two")]
pub enum Stack {
    Embedded(EmbeddedStack),
    Native(NativeStack),
}

impl Stack {
    /// Starts a stack on a log and a database of its own.
    pub async fn start() -> Self {
        Self::start_with("").await
    }

    /// A stack that is not started yet.
    pub async fn prepare() -> Self {
        match is_native() {
            true => Self::Native(NativeStack::prepare().await),
            false => Self::Embedded(EmbeddedStack::prepare()),
        }
    }

    /// Sets from which size on deltas move to the archive, before the first start.
    pub fn set_valve_bytes(&mut self, bytes: u64) {
        let bytes = bytes.to_string();
        match self {
            Self::Embedded(stack) => {
                stack.set_up_args(&["--no-discovery", "--archive-valve-bytes", &bytes]);
            }
            Self::Native(stack) => stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", &bytes),
        }
    }

    /// Starts a stack with failpoints, as `name=action;name=action`.
    pub async fn start_with(failpoints: &str) -> Self {
        let mut stack = Self::prepare().await;
        stack.set_failpoints(failpoints);
        stack.up().await;
        stack
    }

    /// Starts a stack whose callers are these accounts with these tokens.
    pub async fn start_with_accounts(accounts: &[(&str, &str)]) -> Self {
        let lines = accounts
            .iter()
            .map(|(account, token)| format!("{account} {token}\n"));
        let file = format!("# who may call\n{}", lines.collect::<String>());
        let mut stack = match is_native() {
            true => {
                let stack = NativeStack::prepare().await;
                stack.set_callers(&file);
                Self::Native(stack)
            }
            false => {
                let mut stack = EmbeddedStack::prepare();
                let accounts = stack.folder().join("accounts");
                std::fs::write(&accounts, file).expect("a token file");
                let accounts = accounts.to_str().expect("a path");
                stack.set_up_args(&["--no-discovery", "--caller-token-file", accounts]);
                Self::Embedded(stack)
            }
        };
        stack.up().await;
        stack
    }

    /// The key that signs lifetime tokens.
    pub fn token_key(&self) -> Vec<u8> {
        let file = match self {
            Self::Embedded(stack) => stack.data_dir().join("lifetime-token.key"),
            Self::Native(stack) => stack.folder().join("token-key"),
        };
        std::fs::read(file).expect("the key")
    }

    /// A connection with this token, or none.
    pub async fn connect_as(&self, token: Option<&str>) -> Connection {
        let token = token.map(str::to_owned);
        let connection = Connection::connect(&self.endpoint(), token)
            .await
            .expect("a connection");
        match self {
            Self::Embedded(_) => connection,
            Self::Native(stack) => {
                let relays = stack.endpoints(super::native::Kind::Ingest);
                connection.with_relays(&relays).expect("endpoints")
            }
        }
    }

    /// Sets the failpoints of the next start; each process counts for itself.
    pub fn set_failpoints(&mut self, failpoints: &str) {
        match self {
            Self::Embedded(stack) => stack.set_failpoints(failpoints),
            Self::Native(stack) => stack.set("FAILPOINTS", failpoints),
        }
    }

    /// Starts what does not run, and waits until it is ready.
    pub async fn up(&mut self) {
        match self {
            Self::Embedded(stack) => stack.up().await,
            Self::Native(stack) => stack.up().await,
        }
    }

    /// `kill -9` of every process of ours.
    pub fn kill(&mut self) {
        match self {
            Self::Embedded(stack) => stack.kill(),
            Self::Native(stack) => stack.kill_all(),
        }
    }

    /// SIGTERM, and a bounded wait for the end.
    pub fn stop(&mut self) -> ExitStatus {
        match self {
            Self::Embedded(stack) => stack.stop(),
            Self::Native(stack) => stack.stop_all(),
        }
    }

    /// Where sessions are served.
    pub fn endpoint(&self) -> String {
        match self {
            Self::Embedded(stack) => stack.endpoint(),
            Self::Native(stack) => stack.endpoint(super::native::Kind::Reconstruct, 0),
        }
    }

    /// Where the log speaks the Kafka protocol.
    pub fn brokers(&self) -> String {
        match self {
            Self::Embedded(stack) => stack.brokers(),
            Self::Native(stack) => stack.brokers(),
        }
    }

    /// The transcript topic.
    pub fn topic(&self) -> String {
        match self {
            Self::Embedded(_) => "wakelog.transcript".to_owned(),
            Self::Native(stack) => stack.topic().to_owned(),
        }
    }

    /// The caller token.
    pub fn token(&self) -> String {
        match self {
            Self::Embedded(stack) => stack.token(),
            Self::Native(stack) => stack.token(),
        }
    }

    /// A connection with the caller token.
    pub async fn connect(&self) -> Connection {
        match self {
            Self::Embedded(stack) => stack.connect().await,
            Self::Native(stack) => stack.connect().await,
        }
    }

    /// The metrics of every process.
    pub async fn metrics(&self) -> String {
        match self {
            Self::Embedded(stack) => get(&stack.http(), "/metrics").await.expect("the metrics"),
            Self::Native(stack) => stack.metrics().await,
        }
    }

    /// What the stack has logged, the end of it.
    pub fn log(&self) -> String {
        match self {
            Self::Embedded(stack) => stack.log(),
            Self::Native(stack) => stack.log(),
        }
    }

    /// `wakelog verify` on the stopped stack: it must be clean.
    pub fn verify(&self) {
        self.verify_counting();
    }

    /// The same; returns how many records are in quarantine.
    pub fn verify_counting(&self) -> u64 {
        let stack = match self {
            Self::Embedded(stack) => return stack.verify_counting(),
            Self::Native(stack) => stack,
        };
        let report = stack.verify();
        let partitions = report["partitions"].as_array().expect("partitions");
        let counts = partitions
            .iter()
            .map(|partition| partition["quarantined"].as_u64().expect("a count"));
        counts.sum()
    }
}
