//! How the clients of a user find the stack that this user runs: a small file, written by `up`, removed at its clean end.

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

/// Writes the announcement.
pub(crate) fn write(path: &Path, announcement: &Announcement) -> Result<(), Error> {
    let bytes = serde_json::to_vec_pretty(announcement)
        .map_err(|error| Error::failed(format!("discovery file: {error}")))?;
    write_private(path, &bytes)
}

/// Removes the announcement if it is still the one of `pid`: a later `up` may have replaced it.
pub(crate) fn remove(path: &Path, pid: u32) -> Result<(), Error> {
    match read(path)? {
        Some(announcement) if announcement.pid == pid => std::fs::remove_file(path)
            .map_err(|error| Error::io(format!("discovery file {}", path.display()), &error)),
        _ => Ok(()),
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
