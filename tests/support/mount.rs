//! A small file system of a test's own, in memory: full and read-only disks without touching the machine's.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A mounted tmpfs; unmounted when dropped, also by a panic.
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts one, or says why it can't: only root may mount.
    pub fn mount(size: &str) -> Option<Self> {
        let id = Command::new("id").arg("-u").output().expect("id runs");
        if id.stdout.trim_ascii() != b"0" {
            assert!(
                std::env::var_os("CI").is_none(),
                "only root may mount a file system, and CI must"
            );
            eprintln!("NOT RUN: only root may mount a file system");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        // A database server runs as another user.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), mode).expect("the folder's mode");
        let disk = Self { folder };
        disk.run(Command::new("mount").args([
            "-t",
            "tmpfs",
            "-o",
            &format!("size={size},mode=755"),
            "tmpfs",
        ]));
        Some(disk)
    }

    /// Mounts it again with other options: `ro`, `size=...`.
    pub fn remount(&self, options: &str) {
        self.run(Command::new("mount").args(["-o", &format!("remount,{options}")]));
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn run(&self, command: &mut Command) {
        let status = command.arg(self.path()).status().expect("mount runs");
        assert!(status.success(), "{command:?} failed");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that was just killed may still hold a file.
        Command::new("umount").arg("-l").arg(self.path()).status().ok();
    }
}
