//! An S3 server on a folder: started, killed, frozen; what its bucket holds.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::server::ServerProcess;
use super::{container, script};
use crate::support::PATIENCE;
use crate::support::process::{free_port, signal};

/// The bucket.
pub const BUCKET: &str = "wakelog";

/// The keys of the server.
pub const ACCESS_KEY: &str = "tests";
pub const SECRET_KEY: &str = "a-secret-key-of-the-tests-only";

/// One server.
pub struct S3 {
    folder: PathBuf,
    port: u16,
    in_container: bool,
    process: ServerProcess,
}

impl S3 {
    /// A server that is not started yet.
    pub fn prepare(folder: PathBuf) -> Self {
        Self {
            process: ServerProcess::new("s3", folder.with_extension("log")),
            folder,
            port: free_port(),
            in_container: false,
        }
    }

    /// Has it run in a container; its objects stay in the folder.
    pub fn set_in_container(&mut self) {
        self.in_container = true;
    }

    /// Starts it and waits until it answers.
    pub fn start(&self) {
        self.spawn();
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            self.process.assert_coming_up(deadline);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn spawn(&self) {
        let mut command = match self.in_container {
            true => {
                std::fs::create_dir_all(self.bucket_folder()).expect("a folder");
                let mut command = container("s3");
                command.arg(self.port.to_string()).arg(self.folder.join("data"));
                command
            }
            false => {
                let mut command = script("s3.sh");
                command.arg(&self.folder).arg(self.port.to_string()).arg(BUCKET);
                command
            }
        };
        command
            .env("ROOT_ACCESS_KEY", ACCESS_KEY)
            .env("ROOT_SECRET_KEY", SECRET_KEY);
        self.process.start(command);
    }

    /// `kill -9`.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Whether its process is there.
    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// A signal to its process.
    pub fn signal(&self, name: &str) {
        signal(name, self.process.pid());
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it is.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Where it keeps the objects of its bucket, by their keys.
    pub fn bucket_folder(&self) -> PathBuf {
        self.folder.join("data").join(BUCKET)
    }

    /// The keys of the objects below `prefix`, in order.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let root = self.bucket_folder();
        let mut keys = Vec::new();
        collect(&root, &root, &mut keys);
        keys.retain(|key| key.starts_with(prefix));
        keys.sort_unstable();
        keys
    }
}

fn collect(root: &Path, folder: &Path, keys: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            // The server keeps what is not committed yet in folders of this name.
            if !entry.file_name().to_string_lossy().starts_with(".sgwtmp") {
                collect(root, &path, keys);
            }
            continue;
        }
        let key = path.strip_prefix(root).expect("below the bucket");
        keys.push(key.to_string_lossy().into_owned());
    }
}
