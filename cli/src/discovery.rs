//! How the clients of a user find the stack that this user runs: a small file, written by `up`, removed at its clean end.
//!
//! One stack is announced at a time. A lock beside the file says whether the one that is announced still runs: the system
//! releases it with the process, whatever ended that.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::Error;

/// What `up` announces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    pub(crate) endpoint: String,
    pub(crate) caller_token_file: PathBuf,
    pub(crate) data_dir: PathBuf,
    pub(crate) pid: u32,
    /// Where its pages are served, as a URL.
    #[serde(default)]
    pub(crate) http_endpoint: Option<String>,
    /// Whether log and database are in its process; otherwise they are the user's own.
    #[serde(default)]
    pub(crate) embedded_log: bool,
    #[serde(default)]
    pub(crate) embedded_database: bool,
}

/// An announcement of this process, which holds the lock.
#[derive(Debug)]
pub(crate) struct Announced {
    path: PathBuf,
    _lock: File,
}

/// Whose announcement stands.
#[derive(Debug)]
pub(crate) enum Announcing {
    Ours(Announced),
    /// Another stack of this user runs and stays announced; what it says may be about to change.
    Theirs(Option<Announcement>),
}

/// The user's home folder.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
}

/// The folder for what this user's wakelog remembers between runs.
pub(crate) fn state_dir() -> Option<PathBuf> {
    // The XDG rules: a relative path is as good as none.
    let xdg = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    xdg.or_else(|| home().map(|home| home.join(".local/state")))
        .map(|base| base.join("wakelog"))
}

/// The discovery file in a state folder.
pub(crate) fn path_in(state_dir: &Path) -> PathBuf {
    state_dir.join("up.json")
}

/// Reads the announcement, if there is one.
pub(crate) fn read(path: &Path) -> Result<Option<Announcement>, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(format!("discovery file {}", path.display()), &error)),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        Error::failed(format!("discovery file {}: {error}", path.display()))
            .or_hint("remove the file, or name the server with --server")
    })
}

/// The announcement of this user's stack, if there is one.
pub(crate) fn find() -> Result<Option<Announcement>, Error> {
    state_dir().map_or(Ok(None), |state_dir| read(&path_in(&state_dir)))
}

/// Announces a stack, unless one that runs is announced already.
pub(crate) fn announce(state_dir: &Path, announcement: &Announcement) -> Result<Announcing, Error> {
    let lock_path = state_dir.join("up.lock");
    let wrong = |error: io::Error| Error::io(format!("discovery lock {}", lock_path.display()), &error);
    create_private_folder(state_dir).map_err(wrong)?;
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock_path)
        .map_err(wrong)?;
    let path = path_in(state_dir);
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Announcing::Theirs(read(&path).ok().flatten())),
        Err(TryLockError::Error(error)) => return Err(wrong(error)),
    }
    let bytes = serde_json::to_vec_pretty(announcement)
        .map_err(|error| Error::failed(format!("discovery file: {error}")))?;
    write_private(&path, &bytes)?;
    Ok(Announcing::Ours(Announced { path, _lock: lock }))
}

impl Announced {
    /// Removes the announcement; while the lock is held, nobody else's is there.
    pub(crate) fn withdraw(self) -> Result<(), Error> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(
                format!("discovery file {}", self.path.display()),
                &error,
            )),
            _ => Ok(()),
        }
    }
}

/// Writes a file that only its owner can read, in one step: readers see the old contents or the new.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let wrong = |error: io::Error| Error::io(path.display(), &error);
    let folder = path.parent().unwrap_or(Path::new("."));
    create_private_folder(folder).map_err(wrong)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(wrong)?;
    file.write_all(bytes).map_err(wrong)?;
    file.as_file().sync_all().map_err(wrong)?;
    file.persist(path).map_err(|error| wrong(error.error))?;
    Ok(())
}

/// Creates a folder, and what is missing above it, for its owner alone.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests;
