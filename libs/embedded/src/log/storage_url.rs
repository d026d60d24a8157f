//! The storage URL that makes Tansu open the very file that is meant.
//!
//! Tansu joins the working folder with the URL's path, less *one* leading slash, as it stands in the URL, that is with
//! everything that a URL has to escape still escaped. So `sqlite:////abs/file` is an absolute path, and a path with a space or an
//! umlaut has no URL at all: such a folder is reached through a link with a plain name. (SQLite resolves links before it
//! opens a file, so its `-wal` lies beside the real one.)

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use url::Url;

use crate::{Engine, Error};

const LINK: &str = "log";
/// Tried when the usual temporary folder has a name that needs escaping itself.
const LAST_RESORT: &str = "/tmp";

#[derive(Debug)]
pub(crate) struct StorageUrl {
    url: Url,
    _link: Option<TempDir>,
}

impl StorageUrl {
    /// `file` is absolute; its folder exists.
    pub(crate) fn of_file(file: &Path) -> Result<Self, Error> {
        if let Some(url) = plain_url(file) {
            return Ok(Self { url, _link: None });
        }
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
            return Err(Error::NotAFolder {
                path: file.to_path_buf(),
            });
        };
        for place in [std::env::temp_dir(), PathBuf::from(LAST_RESORT)] {
            let Ok(link_folder) = tempfile::Builder::new().prefix("wakelog-").tempdir_in(place) else {
                continue;
            };
            let link = link_folder.path().join(LINK);
            if std::os::unix::fs::symlink(folder, &link).is_err() {
                continue;
            }
            if let Some(url) = plain_url(&link.join(name)) {
                return Ok(Self {
                    url,
                    _link: Some(link_folder),
                });
            }
        }
        Err(Error::not_started(
            Engine::Log,
            format!(
                "no temporary folder with a plain name for a link to {}",
                folder.display()
            ),
        ))
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }
}

fn plain_url(file: &Path) -> Option<Url> {
    let path = file.to_str().filter(|path| path.starts_with('/'))?;
    let url = Url::parse(&format!("sqlite:///{path}")).ok()?;
    let is_unescaped = url.path() == format!("/{path}") && url.host().is_none();
    let has_nothing_more = url.query().is_none() && url.fragment().is_none();
    (is_unescaped && has_nothing_more).then_some(url)
}

#[cfg(test)]
mod tests;
