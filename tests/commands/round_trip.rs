//! `import`, then `resume` and `export`: the same bytes, whatever they are and however many.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rand::Rng as _;
use sha2::{Digest as _, Sha256};

use crate::ran::{DONE, NOT_FOUND, REFUSED, Running, client};
use crate::support::embedded::EmbeddedStack as Stack;
use crate::support::seed;

const BIG: usize = 100_000_000;

/// The client's peak of resident memory while it sends or receives a file of any size.
const FLAT_MEMORY_BYTES: u64 = 100_000_000;

/// Invariant byte-exact, for every file that the SDK's versions wrote and every damaged one.
#[tokio::test(flavor = "multi_thread")]
async fn byte_exact_for_every_recorded_file() {
    let mut stack = Stack::start().await;
    let files = recorded_files();
    assert!(files.len() >= 28, "the recordings are there: {files:?}");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        if bytes.is_empty() {
            is_refused_and_opens_nothing(&stack, &file);
            continue;
        }
        round_trip(&stack, &file, &bytes);
    }
    assert!(stack.stop().success());
    stack.verify();
}

/// Invariant byte-exact, where a text tool would tidy up.
#[tokio::test(flavor = "multi_thread")]
async fn byte_exact_for_bytes_that_are_no_lines() {
    let mut stack = Stack::start().await;
    let part = 512 * 1024;
    let mut random = vec![0; 3 * part + 1];
    seed::rng(3).fill(&mut random[..]);
    let cases: [(&str, Vec<u8>); 8] = [
        ("one byte", b"x".to_vec()),
        ("one newline", b"\n".to_vec()),
        ("no final newline", b"{\"a\":1}\n{\"b\":2}".to_vec()),
        ("many final newlines", b"{\"a\":1}\n\n\n\n".to_vec()),
        ("NUL and no UTF-8", b"\0\xff\xfe\xed\xa0\x80\r\n\x1a\0".to_vec()),
        ("exactly one part", vec![b'a'; part]),
        ("one byte more than one part", vec![b'a'; part + 1]),
        ("random bytes of several parts", random),
    ];
    for (name, bytes) in cases {
        let file = stack.folder().join(name);
        std::fs::write(&file, &bytes).unwrap();
        round_trip(&stack, &file, &bytes);
    }
    assert!(stack.stop().success());
    stack.verify();
}

/// A file with nothing in it could only come back as a fresh start: it is refused before anything is opened.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_opened_for_a_file_that_holds_nothing() {
    let mut stack = Stack::start().await;
    let empty = stack.folder().join("empty");
    std::fs::write(&empty, b"").unwrap();
    is_refused_and_opens_nothing(&stack, &empty);
    let folder = stack.folder().to_str().unwrap().to_owned();
    client(&stack, &["import", &folder])
        .with(REFUSED)
        .saying(&["is not a file"]);
    client(&stack, &["import", "absent"])
        .with(NOT_FOUND)
        .saying(&["absent does not exist"]);
    assert_eq!(sessions(&stack), 0);
    assert!(stack.stop().success());
}

/// Invariant byte-exact for 100 MB, in flat memory at the client.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_100_mb_goes_and_comes_in_flat_memory() {
    let mut stack = Stack::start().await;
    let file = stack.folder().join("big");
    let bytes = big_file(100);
    std::fs::write(&file, &bytes).unwrap();

    let (imported, peak) = client_with_peak(&stack, &["import", file.to_str().unwrap(), "--json"]);
    assert!(peak < FLAT_MEMORY_BYTES, "import took {peak} bytes of memory");
    assert_eq!(imported["length"], BIG);
    let session = imported["session_id"].as_str().unwrap();

    let out = stack.folder().join("out");
    let args = ["resume", session, "--json", "--out", out.to_str().unwrap()];
    let (resumed, peak) = client_with_peak(&stack, &args);
    assert!(peak < FLAT_MEMORY_BYTES, "resume took {peak} bytes of memory");
    assert_eq!(resumed["sha256"], sha256(&bytes));
    assert_eq!(resumed["length"], BIG);
    assert!(std::fs::read(&out).unwrap() == bytes, "the file differs");
    assert!(stack.stop().success());
}

#[track_caller]
fn round_trip(stack: &Stack, file: &Path, bytes: &[u8]) {
    let imported = client(stack, &["import", file.to_str().unwrap(), "--json"])
        .with(DONE)
        .object();
    assert_eq!(imported["length"], bytes.len(), "{}", file.display());
    let session = imported["session_id"].as_str().unwrap();
    let folder = tempfile::tempdir_in(stack.folder()).unwrap();
    for command in ["resume", "export"] {
        let out = folder.path().join(command);
        let args = [command, session, "--json", "--out", out.to_str().unwrap()];
        let received = client(stack, &args).with(DONE).object();
        assert_eq!(
            received["sha256"],
            sha256(bytes),
            "{command} of {}",
            file.display()
        );
        assert_eq!(received["length"], bytes.len(), "{command} of {}", file.display());
        assert!(
            std::fs::read(&out).unwrap() == bytes,
            "{command} of {} differs",
            file.display()
        );
    }
}

#[track_caller]
fn is_refused_and_opens_nothing(stack: &Stack, file: &Path) {
    let before = sessions(stack);
    client(stack, &["import", file.to_str().unwrap()])
        .with(REFUSED)
        .saying(&["is empty"]);
    assert_eq!(sessions(stack), before, "nothing was opened");
}

#[track_caller]
fn sessions(stack: &Stack) -> usize {
    client(stack, &["sessions", "ls", "--json", "--limit", "0"])
        .with(DONE)
        .objects()
        .len()
}

/// Runs a client to its end; its object, and the most resident memory that it ever had.
#[track_caller]
fn client_with_peak(stack: &Stack, args: &[&str]) -> (serde_json::Value, u64) {
    let mut running = Running::start(&mut stack.client(args), Stdio::null());
    let status = format!("/proc/{}/status", running.pid());
    let mut peak = 0;
    while !running.has_ended() {
        // The kernel keeps the peak itself, so that the reading may come late.
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        peak = kilobytes.map_or(peak, |kilobytes| kilobytes * 1024);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(peak > 0, "the peak was read");
    (
        running.end_within(Duration::from_secs(1)).with(DONE).object(),
        peak,
    )
}

fn recorded_files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/omp");
    let folders = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = folders
        .filter(|path| path.is_dir())
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    files
}

/// Text that compresses about as transcripts do; no newline at its end.
fn big_file(seed: u64) -> Vec<u8> {
    const WORDS: [&[u8]; 8] = [
        b"the ", b"file ", b"was ", b"not ", b"found ", b"error ", b"in ", b"line\n",
    ];
    let mut rng = seed::rng(seed);
    let mut bytes = Vec::with_capacity(BIG + 16);
    while bytes.len() < BIG {
        let random: u64 = rng.random();
        bytes.extend_from_slice(&random.to_ne_bytes());
        for shift in 0..8 {
            bytes.extend_from_slice(WORDS[(random >> (shift * 8)) as usize % WORDS.len()]);
        }
    }
    bytes.truncate(BIG - 1);
    bytes.push(b'}');
    bytes
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
