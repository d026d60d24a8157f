//! Runs a command to its end and keeps everything that it said.

use std::collections::BTreeSet;
use std::io::{Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::PATIENCE;
use crate::support::embedded::EmbeddedStack as Stack;

/// The exit codes that users and their scripts rely on.
pub(crate) const DONE: i32 = 0;
pub(crate) const FAILED: i32 = 1;
pub(crate) const USAGE: i32 = 2;
pub(crate) const NOT_FOUND: i32 = 3;
pub(crate) const REFUSED: i32 = 4;
pub(crate) const DEPENDENCY: i32 = 5;
pub(crate) const DIFFERENCE: i32 = 6;

/// A command that has ended.
pub(crate) struct Ran {
    what: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    /// The exit code must be this one.
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.everything());
        self
    }

    /// What went to the standard error must hold each of these.
    #[track_caller]
    pub(crate) fn saying(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(
                self.stderr.contains(text),
                "{text:?} is missing\n{}",
                self.everything()
            );
        }
        self
    }

    /// The standard output as text.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("text")
    }

    /// The standard output, one JSON object a line.
    #[track_caller]
    pub(crate) fn objects(&self) -> Vec<Value> {
        let text = self.text();
        let parse = |line: &str| match serde_json::from_str(line) {
            Ok(object @ Value::Object(_)) => object,
            other => panic!("{line:?} is no JSON object: {other:?}\n{}", self.everything()),
        };
        text.lines().map(parse).collect()
    }

    /// The standard output, one JSON object.
    #[track_caller]
    pub(crate) fn object(&self) -> Value {
        let mut objects = self.objects();
        assert_eq!(objects.len(), 1, "one object\n{}", self.everything());
        objects.remove(0)
    }

    fn everything(&self) -> String {
        let stdout = String::from_utf8_lossy(&self.stdout[..self.stdout.len().min(4000)]);
        format!(
            "{} ended with {:?}\nstdout: {stdout}\nstderr: {}",
            self.what, self.code, self.stderr
        )
    }
}

/// Runs a command with nothing on its standard input.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Ran {
    Running::start(command, Stdio::null()).end_within(PATIENCE)
}

/// Runs a client command of a stack.
#[track_caller]
pub(crate) fn client(stack: &Stack, args: &[&str]) -> Ran {
    run(&mut stack.client(args))
}

/// Runs a command with these bytes on its standard input.
#[track_caller]
pub(crate) fn run_with_input(command: &mut Command, input: &[u8]) -> Ran {
    let mut running = Running::start(command, Stdio::piped());
    let mut stdin = running.stdin();
    // A command that ends early closes its side: what it says then is what counts.
    stdin.write_all(input).ok();
    drop(stdin);
    running.end_within(PATIENCE)
}

/// A command that runs. Dropping it kills it.
pub(crate) struct Running {
    what: String,
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    #[track_caller]
    pub(crate) fn start(command: &mut Command, stdin: Stdio) -> Self {
        let what = format!("{command:?}");
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{what} did not start: {error}"));
        let stdout = child.stdout.take().map(read);
        let stderr = child.stderr.take().map(read);
        Self {
            what,
            child,
            stdout,
            stderr,
        }
    }

    /// Its standard input, which ends when this is dropped.
    #[track_caller]
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("a pipe")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it can be waited for").is_some()
    }

    #[track_caller]
    pub(crate) fn end_within(mut self, bound: Duration) -> Ran {
        let deadline = Instant::now() + bound;
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let in_time = self.has_ended();
        if !in_time {
            self.child.kill().ok();
        }
        let status = self.child.wait().expect("it ends");
        let ran = self.gather(status);
        assert!(in_time, "it did not end within {bound:?}: {}", ran.everything());
        ran
    }

    #[track_caller]
    pub(crate) fn kill(mut self) -> Ran {
        self.child.kill().expect("it can be killed");
        let status = self.child.wait().expect("it ends");
        self.gather(status)
    }

    fn gather(&mut self, status: ExitStatus) -> Ran {
        let join =
            |reader: Option<JoinHandle<Vec<u8>>>| reader.map_or(Vec::new(), |it| it.join().expect("read"));
        Ran {
            what: self.what.clone(),
            code: status.code(),
            stdout: join(self.stdout.take()),
            stderr: String::from_utf8_lossy(&join(self.stderr.take())).into_owned(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn read(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).ok();
        bytes
    })
}

/// Imports bytes as a new session with this label.
#[track_caller]
pub(crate) fn import(stack: &Stack, bytes: &[u8], label: &str) -> String {
    let file = tempfile::NamedTempFile::new_in(stack.folder()).unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let path = file.path().to_str().unwrap();
    let ran = client(stack, &["import", path, "--label", label]).with(DONE);
    ran.text().trim().to_owned()
}

/// Resumes a session and gives its file.
#[track_caller]
pub(crate) fn resume(stack: &Stack, session: &str) -> Vec<u8> {
    let folder = tempfile::tempdir_in(stack.folder()).unwrap();
    let out = folder.path().join("session.jsonl");
    client(stack, &["resume", session, "--out", out.to_str().unwrap()]).with(DONE);
    std::fs::read(out).unwrap()
}

/// What `sessions show --json` says.
#[track_caller]
pub(crate) fn show(stack: &Stack, session: &str) -> Value {
    client(stack, &["sessions", "show", session, "--json"])
        .with(DONE)
        .object()
}

/// The names in a JSON object.
#[track_caller]
pub(crate) fn keys(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

/// Waits, with a bound, until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
