//! A file that is either there whole and checked, or not there.

use std::io;
use std::path::{Path, PathBuf};

use futures::{Stream, TryStreamExt as _};
use indicatif::ProgressBar;
use tempfile::NamedTempFile;
use tonic::Status;
use wakelog_client::{ReceivedBody, receive_body};
use wakelog_proto::v1::ResumeBody;

use crate::exit::Error;

/// A body on its way into a file, under another name until it is checked.
pub(crate) struct ReceivedFile {
    path: PathBuf,
    partial: NamedTempFile,
    force: bool,
}

impl ReceivedFile {
    /// Refuses a file that is there, unless it may be replaced, before anything is asked of the server.
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self, Error> {
        if !force && path.symlink_metadata().is_ok() {
            return Err(already_there(path));
        }
        if path.is_dir() {
            return Err(Error::refused(format!("{} is a folder", path.display())));
        }
        let Some(name) = path.file_name() else {
            return Err(Error::usage(format!(
                "{} is not the name of a file",
                path.display()
            )));
        };
        let mut prefix = name.to_os_string();
        prefix.push(".partial-");
        // A session is private: the file is for its owner alone.
        let partial = tempfile::Builder::new()
            .prefix(&prefix)
            .tempfile_in(folder_of(path))
            .map_err(|error| Error::io(path.display(), &error))?;
        Ok(Self {
            path: path.to_path_buf(),
            partial,
            force,
        })
    }

    /// The name that it gets.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the bytes wait until they are checked.
    pub(crate) fn partial_path(&self) -> &Path {
        self.partial.path()
    }

    /// Writes into the file by hand; [`Self::keep`] is the end of that.
    pub(crate) fn open_partial(&self) -> Result<std::fs::File, Error> {
        self.partial
            .reopen()
            .map_err(|error| Error::io(self.path.display(), &error))
    }

    /// Receives a body; the file gets its name only once length and digest are right and its bytes are on the disk.
    pub(crate) async fn receive(
        self,
        chunks: impl Stream<Item = Result<ResumeBody, Status>>,
        bar: &ProgressBar,
    ) -> Result<ReceivedBody, Error> {
        let wrong = |error: io::Error| Error::io(self.path.display(), &error);
        let file = tokio::fs::File::from_std(self.partial.reopen().map_err(wrong)?);
        let mut file = tokio::io::BufWriter::new(file);
        let chunks = chunks.inspect_ok(|chunk| bar.inc(chunk.session_body.len() as u64));
        let body = receive_body(chunks, &mut file).await?;
        drop(file);
        self.keep()?;
        Ok(body)
    }

    /// Gives the file its name, once its bytes are on the disk.
    pub(crate) fn keep(self) -> Result<(), Error> {
        let wrong = |error: io::Error| Error::io(self.path.display(), &error);
        self.partial.as_file().sync_all().map_err(wrong)?;
        let path = self.path;
        let named = if self.force {
            self.partial.persist(&path)
        } else {
            self.partial.persist_noclobber(&path)
        };
        named.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => already_there(&path),
            _ => Error::io(path.display(), &error.error),
        })?;
        // The name has to be on the disk as well.
        let synced = std::fs::File::open(folder_of(&path)).and_then(|folder| folder.sync_all());
        synced.map_err(|error| Error::io(path.display(), &error))
    }
}

fn already_there(path: &Path) -> Error {
    Error::refused(format!("{} is already there", path.display())).or_hint("--force replaces it")
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
