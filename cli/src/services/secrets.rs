//! The files with keys and tokens.

use std::io::{self, Write as _};
use std::path::Path;

use rand::RngCore as _;
use wakelog_contract::{CallerTokens, TokenSigner};

use crate::exit::Error;

/// The account of the token that `up` draws.
const LOCAL_ACCOUNT: &str = "local";

/// Reads the key that signs lifetime tokens.
pub(crate) fn signer(path: &Path) -> Result<TokenSigner, Error> {
    let key = std::fs::read(path)
        .map_err(|error| Error::usage(format!("token key file {}: {error}", path.display())))?;
    warn_if_shared(path);
    TokenSigner::new(&key)
        .map_err(|error| Error::usage(format!("token key file {}: {error}", path.display())))
}

/// Reads the key, drawing one if there is none yet.
pub(crate) fn signer_or_new(path: &Path) -> Result<TokenSigner, Error> {
    create_if_absent(path, &TokenSigner::generate_key())?;
    signer(path)
}

/// Reads the caller tokens.
pub(crate) fn caller_tokens(path: &Path) -> Result<CallerTokens, Error> {
    warn_if_shared(path);
    CallerTokens::from_file(path).map_err(|error| Error::usage(error.to_string()))
}

/// Reads the caller tokens, drawing one if there is none yet.
pub(crate) fn caller_tokens_or_new(path: &Path) -> Result<CallerTokens, Error> {
    let mut token = [0; 32];
    rand::rng().fill_bytes(&mut token);
    create_if_absent(
        path,
        format!("{LOCAL_ACCOUNT} {}\n", hex::encode(token)).as_bytes(),
    )?;
    caller_tokens(path)
}

/// True if others than its owner may read the file.
pub(crate) fn is_shared(path: &Path) -> io::Result<bool> {
    let metadata = std::fs::metadata(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        Ok(metadata.permissions().mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        _ = metadata;
        Ok(false)
    }
}

fn warn_if_shared(path: &Path) {
    if is_shared(path).unwrap_or(false) {
        tracing::warn!(path = %path.display(), "others than its owner may read this secret, chmod 600 mends it");
    }
}

/// Writes a secret in one step, for its owner alone; one that is there already stays.
fn create_if_absent(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let wrong = |error: io::Error| Error::io(path.display(), &error);
    if path.try_exists().map_err(wrong)? {
        return Ok(());
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(wrong)?;
    file.write_all(bytes).map_err(wrong)?;
    file.as_file().sync_all().map_err(wrong)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(wrong(error.error)),
    }
}

#[cfg(test)]
mod tests;
