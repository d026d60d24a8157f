//! The data folder's lock, version and the errors of its file system.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wakelog_embedded::{DATA_DIR_VERSION, DataDir, Engines, Error, NEEDED_FREE_BYTES, Options};

const HOLD: &str = "WAKELOG_TEST_HOLD_DATA_DIR";

/// A tmpfs of its own, unmounted also when the test fails.
struct Mount {
    folder: TempDir,
}

impl Mount {
    fn new(options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "wakelog-test"])
            .arg(folder.path())
            .status()
            .expect("these tests mount a tmpfs: `mount` has to be there");
        assert!(
            mount.success(),
            "these tests mount a tmpfs: run them as root, or in a user and mount namespace"
        );
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn make_read_only(&self) {
        let status = Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg(self.folder.path())
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.folder.path()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("can't unmount {}", self.folder.path().display());
        }
    }
}

#[test]
fn a_new_folder_is_private_and_versioned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b");
    let held = DataDir::lock(&path).unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(
        std::fs::read_to_string(path.join("VERSION")).unwrap(),
        format!("{DATA_DIR_VERSION}\n")
    );
    let mut names: Vec<_> = std::fs::read_dir(held.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["LOCK", "VERSION"]);
}

#[test]
fn a_second_lock_in_the_same_process_is_refused_until_the_first_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let held = DataDir::lock(folder.path()).unwrap();
    let refused = DataDir::lock(folder.path()).unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    drop(held);
    DataDir::lock(folder.path()).unwrap();
}

#[test]
fn a_lock_of_another_process_is_refused_and_ends_with_that_process() {
    // This very test, run again as a child, holds the folder until it is killed.
    if let Some(path) = std::env::var_os(HOLD) {
        let held = DataDir::lock(PathBuf::from(path)).unwrap();
        std::fs::write(held.path().join("held"), b"").unwrap();
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "data_dir::a_lock_of_another_process_is_refused_and_ends_with_that_process",
        ])
        .env(HOLD, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !folder.path().join("held").exists() {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "the child does not hold the folder"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let refused = DataDir::lock(folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(refused, Err(Error::InUse { .. })), "{refused:?}");
    DataDir::lock(folder.path()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_stack_on_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        log: false,
        hot_tail: false,
        ..Options::new(folder.path())
    };
    let engines = Engines::start(options.clone()).await.unwrap();
    let refused = Engines::start(options).await.unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    engines.stop().await.unwrap();
}

#[test]
fn a_newer_or_unreadable_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let version = folder.path().join("VERSION");
    std::fs::write(&version, "7\n").unwrap();
    let refused = DataDir::lock(folder.path()).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::NewerVersion {
                found: 7,
                known: DATA_DIR_VERSION,
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(std::fs::read_to_string(&version).unwrap(), "7\n");
    for text in [&b"seven"[..], b"", b"\xff\xfe"] {
        std::fs::write(&version, text).unwrap();
        let refused = DataDir::lock(folder.path()).unwrap_err();
        assert!(matches!(refused, Error::UnreadableVersion { .. }), "{refused}");
    }
}

#[test]
fn a_file_is_not_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"").unwrap();
    for path in [file.clone(), file.join("below")] {
        let refused = DataDir::lock(&path).unwrap_err();
        assert!(
            matches!(refused, Error::NotAFolder { .. }),
            "{}: {refused}",
            path.display()
        );
    }
}

#[test]
fn a_read_only_file_system_is_not_writable() {
    let mount = Mount::new("size=128m");
    drop(DataDir::lock(mount.path().join("old")).unwrap());
    mount.make_read_only();
    for name in ["old", "new"] {
        let refused = DataDir::lock(mount.path().join(name)).unwrap_err();
        assert!(
            matches!(refused, Error::NotWritable { .. }),
            "{name}: {refused:?}"
        );
    }
}

#[test]
fn too_little_space_is_a_full_disk_and_marks_nothing() {
    let mount = Mount::new("size=2m");
    let refused = DataDir::lock(mount.path()).unwrap_err();
    let Error::Full { free, needed, .. } = refused else {
        panic!("{refused:?}")
    };
    assert!(free > 1024 * 1024 && free <= 2 * 1024 * 1024, "{free}");
    assert_eq!(needed, NEEDED_FREE_BYTES);
    assert!(!mount.path().join("VERSION").exists());
}

#[test]
fn a_disk_without_one_free_block_or_inode_is_full() {
    let mount = Mount::new("size=1m");
    std::fs::write(mount.path().join("ballast"), vec![0; 2 * 1024 * 1024]).unwrap_err();
    let refused = DataDir::lock(mount.path().join("data")).unwrap_err();
    assert!(matches!(refused, Error::Full { free: 0, .. }), "{refused:?}");

    let mount = Mount::new("size=128m,nr_inodes=2");
    std::fs::create_dir(mount.path().join("data")).unwrap();
    let refused = DataDir::lock(mount.path().join("data")).unwrap_err();
    assert!(matches!(refused, Error::Full { .. }), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_say_the_same_of_a_full_disk() {
    let mount = Mount::new("size=2m");
    let refused = Engines::start(Options::new(mount.path())).await.unwrap_err();
    assert!(matches!(refused, Error::Full { .. }), "{refused:?}");
}
