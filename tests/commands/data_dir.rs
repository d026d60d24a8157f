//! The data folder: who holds it, which version it has, and disks that can't take it.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rand::Rng as _;
use sha2::{Digest as _, Sha256};

use crate::ran::{DEPENDENCY, DONE, NOT_FOUND, Running, client, import, resume, run};
use crate::support::embedded::EmbeddedStack as Stack;
use crate::support::mount::SmallDisk;
use crate::support::{PATIENCE, seed, within};

/// One stack holds a folder; every other process is told so, and changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_folder_is_refused() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"held\n", "kind=held");
    let mut second = Stack::prepare();
    second.set_data_dir(stack.data_dir());
    run(&mut second.up_command())
        .with(DEPENDENCY)
        .saying(&["is in use by another wakelog process", "--data-dir"]);
    let verify = |stack: &Stack| {
        run(stack
            .command()
            .args(["verify", "--data-dir"])
            .arg(stack.data_dir()))
    };
    verify(&stack)
        .with(DEPENDENCY)
        .saying(&["is in use by another wakelog process"]);
    run(stack.command().args(["demo", "--data-dir"]).arg(stack.data_dir()))
        .with(DEPENDENCY)
        .saying(&["is in use by another wakelog process"]);
    assert_eq!(resume(&stack, &session), b"held\n", "the holder goes on");
    // `kill -9` leaves no lock behind.
    stack.kill();
    verify(&stack).with(DONE);
}

/// A folder of a newer wakelog is left exactly as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_folder_is_left_alone() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"newer\n", "kind=newer");
    assert!(stack.stop().success());
    let version = stack.data_dir().join("VERSION");
    let ours = std::fs::read(&version).unwrap();
    std::fs::write(&version, "2\n").unwrap();
    let before = snapshot(&stack.data_dir());
    run(&mut stack.up_command())
        .with(DEPENDENCY)
        .saying(&["has format 2", "knows up to 1"]);
    run(stack
        .command()
        .args(["verify", "--data-dir"])
        .arg(stack.data_dir()))
    .with(DEPENDENCY)
    .saying(&["has format 2"]);
    assert_eq!(snapshot(&stack.data_dir()), before, "nothing was changed");

    std::fs::write(&version, "garbage").unwrap();
    run(&mut stack.up_command())
        .with(DEPENDENCY)
        .saying(&["no readable format number"]);
    std::fs::write(&version, ours).unwrap();
    stack.up().await;
    assert_eq!(resume(&stack, &session), b"newer\n");
    assert!(stack.stop().success());
}

/// A path that can't be a folder, and a folder that is not there.
#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_no_folder_is_refused() {
    let mut stack = Stack::prepare();
    let file = stack.folder().join("file");
    std::fs::write(&file, b"mine").unwrap();
    for path in [file.clone(), file.join("below")] {
        stack.set_data_dir(path);
        run(&mut stack.up_command())
            .with(DEPENDENCY)
            .saying(&["is not a folder", "--data-dir"]);
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    run(stack.command().args(["verify", "--data-dir", "absent"]))
        .with(NOT_FOUND)
        .saying(&["does not exist"]);
    assert!(
        !stack.folder().join("absent").exists(),
        "verify creates no folder"
    );
    let empty = tempfile::tempdir_in(stack.folder()).unwrap();
    run(stack.command().args(["verify", "--data-dir"]).arg(empty.path()))
        .with(NOT_FOUND)
        .saying(&["holds no embedded stack"]);
    let files = std::fs::read_dir(empty.path()).unwrap().count();
    assert_eq!(files, 0, "verify creates nothing in it");
}

/// A port that somebody has is named, before anything is created.
#[tokio::test(flavor = "multi_thread")]
async fn a_taken_port_is_refused() {
    for (address, flag) in [(0, "--listen"), (1, "--http-listen")] {
        let stack = Stack::prepare();
        let grpc = stack.endpoint().trim_start_matches("http://").to_owned();
        let taken = [grpc, stack.http()][address].clone();
        let _holder = TcpListener::bind(&taken).unwrap();
        run(&mut stack.up_command())
            .with(DEPENDENCY)
            .saying(&[&taken, "is taken by another process", flag]);
        assert!(!stack.data_dir().exists());
    }
}

/// A read-only disk and a full one are told from each other, and nothing is half made.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_takes_nothing_is_refused() {
    let Some(disk) = SmallDisk::mount("200m") else {
        return;
    };
    let mut stack = Stack::prepare();
    stack.set_data_dir(disk.join("data"));
    disk.remount("ro");
    run(&mut stack.up_command())
        .with(DEPENDENCY)
        .saying(&["is not writable", "Read-only file system"]);
    disk.remount("rw");
    let hog = disk.join("hog");
    fill(&hog);
    run(&mut stack.up_command())
        .with(DEPENDENCY)
        .saying(&["is full", "bytes are free", "needed"]);
    std::fs::remove_file(hog).unwrap();

    stack.up().await;
    let session = import(&stack, b"kept\n", "kind=disk");
    assert!(stack.stop().success());
    // The same for a folder that is in use already.
    disk.remount("ro");
    run(&mut stack.up_command())
        .with(DEPENDENCY)
        .saying(&["is not writable"]);
    disk.remount("rw");
    fill(&disk.join("hog"));
    run(&mut stack.up_command()).with(DEPENDENCY).saying(&["is full"]);
    std::fs::remove_file(disk.join("hog")).unwrap();
    stack.up().await;
    assert_eq!(resume(&stack, &session), b"kept\n");
    assert!(stack.stop().success());
    stack.verify();
}

/// Invariant acked-is-durable on a disk that becomes full: the stack says that it is, what was acknowledged is there once
/// there is room again, and the client that was cut off finishes its work by itself.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_the_disk_becomes_full() {
    becomes_full("128m", None).await;
}

/// The same where only the log is on that disk.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_when_the_disk_of_the_log_becomes_full() {
    let database = crate::postgres::Database::empty().await;
    becomes_full("80m", Some(&database.url)).await;
}

async fn becomes_full(size: &str, database_url: Option<&str>) {
    let Some(disk) = SmallDisk::mount(size) else {
        return;
    };
    let mut stack = Stack::prepare();
    stack.set_data_dir(disk.join("data"));
    if let Some(url) = database_url {
        stack.set_up_args(&["--no-discovery", "--database-url", url]);
    }
    stack.up().await;
    let mut kept: Vec<(String, Vec<u8>)> = Vec::new();
    let waiting = loop {
        let number = kept.len() as u64;
        assert!(number < 10, "the disk does not become full");
        let bytes = noise(number, 12_000_000);
        let file = stack.folder().join(format!("file-{number}"));
        std::fs::write(&file, &bytes).unwrap();
        let request = format!("full-{number}");
        let args = ["import", file.to_str().unwrap(), "--request-id", &request];
        let mut import = Running::start(&mut stack.client(&args), Stdio::null());
        let deadline = Instant::now() + 3 * PATIENCE;
        let ended = loop {
            let status = stack.ended();
            if status.is_some() || import.has_ended() {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "neither an end nor an answer\n{}",
                stack.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        };
        if let Some(status) = ended {
            assert_eq!(status.code(), Some(DEPENDENCY), "{}", stack.log());
            says(&stack, "error: embedded ").await;
            says(&stack, "bytes left").await;
            break Some(import);
        }
        let ran = import.end_within(PATIENCE);
        if ran.code != Some(DONE) {
            ran.with(DEPENDENCY);
            stack.stop();
            break None;
        }
        kept.push((ran.text().trim().to_owned(), bytes));
    };
    assert!(!kept.is_empty(), "something was kept before the disk was full");

    disk.remount("size=600m");
    stack.up().await;
    if let Some(import) = waiting {
        let ran = import.end_within(2 * PATIENCE).with(DONE);
        kept.push((ran.text().trim().to_owned(), noise(kept.len() as u64, 12_000_000)));
    }
    for (session, bytes) in &kept {
        assert!(resume(&stack, session) == *bytes, "session {session} differs");
    }
    let after = import(&stack, b"goes on\n", "kind=after");
    assert_eq!(client(&stack, &["tail", &after]).with(DONE).stdout, b"goes on\n");
    if let Some(url) = database_url {
        let brokers = stack.brokers();
        let mut verify = stack.command();
        run(verify.args(["verify", "--brokers", &brokers, "--database-url", url])).with(DONE);
    }
    assert!(stack.stop().success(), "{}", stack.log());
    if database_url.is_none() {
        stack.verify();
    }
}

/// What a stack says at its end may still be on its way into the log.
async fn says(stack: &Stack, text: &str) {
    let said = async {
        while !stack.whole_log().contains(text) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within(text, said).await;
}

/// Bytes that don't compress.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    seed::rng(seed + 1).fill(&mut bytes[..]);
    bytes
}

/// Writes until the disk takes no more.
fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    while file.write_all(&[0xA5; 64 * 1024]).is_ok() {}
    while file.write_all(&[0xA5]).is_ok() {}
}

/// Every file with its digest and time of change.
fn snapshot(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let digest = hex::encode(Sha256::digest(std::fs::read(entry.path()).unwrap()));
            let changed = entry.metadata().unwrap().modified().unwrap();
            files.push((
                entry.path().display().to_string(),
                format!("{digest} {changed:?}"),
            ));
        }
    }
    files.sort();
    files
}
