//! The data folder: created for its owner alone, locked for one stack, marked with a format number.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// The format number that this build writes, and the newest one it reads.
pub const DATA_DIR_VERSION: u64 = 1;

/// A stack does not start with less free space than this.
pub const NEEDED_FREE_BYTES: u64 = 64 * 1024 * 1024;

const LOCK_FILE: &str = "LOCK";
const LOG_FOLDER: &str = "log";
const HOT_TAIL_FOLDER: &str = "hot-tail";
const VERSION_FILE: &str = "VERSION";
const VERSION_FILE_BEING_WRITTEN: &str = "VERSION.new";
const PROBE_FILE: &str = "PROBE";
const PROBE_BYTES: usize = 64 * 1024;

/// A data folder held by this process. The operating system releases the lock when the value is dropped and when the
/// process ends in whatever way.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Creates the folder (mode 0700) if it is absent, locks it and checks that it can be used.
    pub fn lock(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = create_folder(path.as_ref())?;
        let lock_path = path.join(LOCK_FILE);
        // A folder that can't be written says so here, before anything is decided from its contents.
        let lock = open_private(&lock_path, OpenOptions::new().read(true).write(true).create(true))
            .map_err(|error| full_or(&path, Error::of_file(&lock_path, error)))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(Error::of_file(&lock_path, source)),
        }
        check_version(&path)?;
        check_space(&path)?;
        write_version(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// Whether a folder holds the log and the hot tail of a stack. Looks only: nothing is created. A folder of a format
    /// that this build does not know is [`DataDir::lock`]'s to refuse.
    pub fn holds_stack(path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        check_version(path).is_err()
            || [LOG_FOLDER, HOT_TAIL_FOLDER]
                .iter()
                .all(|name| path.join(name).is_dir())
    }

    /// The folder, as an absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says so if the disk has less free space than a start needs.
    pub(crate) fn lack_of_space(&self) -> Option<String> {
        let free = free_bytes(&self.path).ok()?;
        (free < NEEDED_FREE_BYTES).then(|| format!("the disk has {free} bytes left"))
    }

    /// The log's folder.
    pub fn log(&self) -> PathBuf {
        self.path.join(LOG_FOLDER)
    }

    /// The hot tail's folder.
    pub fn hot_tail(&self) -> PathBuf {
        self.path.join(HOT_TAIL_FOLDER)
    }

    /// The archive's folder.
    pub fn archive(&self) -> PathBuf {
        self.path.join("archive")
    }
}

/// Creates a folder with mode 0700 and gives its absolute path.
pub(crate) fn create_folder(path: &Path) -> Result<PathBuf, Error> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Ok(()) => {}
        // On a read-only file system `mkdir` of a folder that exists may say "read-only" first.
        Err(_) if path.is_dir() => {}
        Err(source) => return Err(Error::of_file(path, source)),
    }
    path.canonicalize().map_err(|source| Error::of_file(path, source))
}

fn open_private(path: &Path, options: &mut OpenOptions) -> std::io::Result<File> {
    options.mode(0o600).open(path)
}

fn check_version(folder: &Path) -> Result<(), Error> {
    let path = folder.join(VERSION_FILE);
    let mut text = String::new();
    match File::open(&path).and_then(|file| file.take(64).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            return Err(Error::UnreadableVersion {
                path: folder.to_path_buf(),
            });
        }
        Err(error) => return Err(Error::of_file(&path, error)),
    }
    let Ok(found) = text.trim().parse::<u64>() else {
        return Err(Error::UnreadableVersion {
            path: folder.to_path_buf(),
        });
    };
    if found > DATA_DIR_VERSION {
        return Err(Error::NewerVersion {
            path: folder.to_path_buf(),
            found,
            known: DATA_DIR_VERSION,
        });
    }
    Ok(())
}

/// Written under another name first: a process that dies here leaves no empty VERSION behind.
fn write_version(folder: &Path) -> Result<(), Error> {
    let path = folder.join(VERSION_FILE);
    if path.exists() {
        return Ok(());
    }
    let being_written = folder.join(VERSION_FILE_BEING_WRITTEN);
    write_synced(&being_written, format!("{DATA_DIR_VERSION}\n").as_bytes())
        .and_then(|()| std::fs::rename(&being_written, &path))
        .and_then(|()| File::open(folder)?.sync_all())
        .map_err(|error| full_or(folder, Error::of_file(&path, error)))
}

/// The number of free blocks alone does not tell of a quota, so a small file is written and synced as well.
fn check_space(folder: &Path) -> Result<(), Error> {
    let free = free_bytes(folder)?;
    if free < NEEDED_FREE_BYTES {
        return Err(Error::Full {
            path: folder.to_path_buf(),
            free,
            needed: NEEDED_FREE_BYTES,
        });
    }
    let probe = folder.join(PROBE_FILE);
    let written = write_synced(&probe, &vec![0xA5; PROBE_BYTES]);
    let removed = std::fs::remove_file(&probe);
    written
        .and(removed)
        .map_err(|error| full_or(folder, Error::of_file(&probe, error)))
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = open_private(path, OpenOptions::new().write(true).create(true).truncate(true))?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn free_bytes(folder: &Path) -> Result<u64, Error> {
    let space = rustix::fs::statvfs(folder).map_err(|error| Error::of_file(folder, error.into()))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// Puts the real amount of free space into [`Error::Full`].
fn full_or(folder: &Path, error: Error) -> Error {
    match error {
        Error::Full { needed, .. } => {
            let free = free_bytes(folder).unwrap_or(0);
            Error::Full {
                path: folder.to_path_buf(),
                free,
                needed,
            }
        }
        other => other,
    }
}
