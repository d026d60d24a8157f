//! What this machine remembers of a session that it wrote: the last lifetime it held, so that it can go on, and can never
//! take the session back from somebody else by accident.
//!
//! The nonce of an attachment is kept before the attachment is asked for. If the process dies before it has the answer, the
//! next one asks with the same nonce and finds the lifetime again.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wakelog_client::{Connection, new_nonce};
use wakelog_model::{LifetimeId, WriterNonce};
use wakelog_proto::v1::{AttachWriterRequest, LifetimeGrant};

use super::{call, incomplete};
use crate::discovery;
use crate::exit::Error;

/// The file's contents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Memory {
    /// The last lifetime that this machine held, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    lifetime_id: Option<String>,
    /// The nonce of an attachment whose answer is not known, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_nonce: Option<String>,
}

/// The memory of one session, held by this process alone.
pub(crate) struct WriterState {
    session_id: String,
    path: PathBuf,
    memory: Memory,
    _lock: File,
}

impl WriterState {
    /// Opens the memory of a session.
    pub(crate) fn open(session_id: &str) -> Result<Self, Error> {
        let state_dir = discovery::state_dir().ok_or_else(|| {
            Error::usage("neither XDG_STATE_HOME nor HOME is set").or_hint("set one of them")
        })?;
        Self::open_in(&state_dir.join("writers"), session_id)
    }

    fn open_in(folder: &Path, session_id: &str) -> Result<Self, Error> {
        let wrong =
            |path: &Path, error: io::Error| Error::io(format!("writer state {}", path.display()), &error);
        discovery::create_private_folder(folder).map_err(|error| wrong(folder, error))?;
        let lock_path = folder.join(format!("{session_id}.lock"));
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|error| wrong(&lock_path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::refused(format!(
                    "another process of this user is writing session {session_id}"
                ))
                .or_hint("wait for it to end"));
            }
            Err(TryLockError::Error(error)) => return Err(wrong(&lock_path, error)),
        }
        let path = folder.join(format!("{session_id}.json"));
        let memory = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                Error::failed(format!("writer state {}: {error}", path.display()))
                    .or_hint("remove the file and use --take-over")
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Memory::default(),
            Err(error) => return Err(wrong(&path, error)),
        };
        Ok(Self {
            session_id: session_id.to_owned(),
            path,
            memory,
            _lock: lock,
        })
    }

    /// Remembers a lifetime that this machine holds, before its first frame.
    pub(crate) fn remember(&mut self, lifetime_id: &[u8]) -> Result<(), Error> {
        self.memory = Memory {
            lifetime_id: Some(hex::encode(lifetime_id)),
            pending_nonce: None,
        };
        self.save()
    }

    /// Attaches a writer as the successor of what is remembered, or over whatever is current.
    pub(crate) async fn attach(
        &mut self,
        connection: &Connection,
        take_over: bool,
    ) -> Result<(LifetimeGrant, WriterNonce), Error> {
        let nonce = self.nonce()?;
        let last_lifetime_id = match &self.memory.lifetime_id {
            Some(text) => self
                .decode(text)
                .and_then(|bytes| Ok(LifetimeId::from_slice(&bytes).map_err(not_an_id)?.0.to_vec()))?,
            None => Vec::new(),
        };
        let request = AttachWriterRequest {
            session_id: self.session_id.clone(),
            writer_nonce: nonce.as_bytes().to_vec().into(),
            last_lifetime_id: last_lifetime_id.into(),
            take_over,
        };
        let answer = call(connection, "attaching a writer", |mut sessions| {
            let request = request.clone();
            async move { sessions.attach_writer(request).await }
        })
        .await;
        let grant = match answer {
            Ok(response) => response.lifetime.ok_or_else(|| incomplete("the lifetime"))?,
            Err(error) => {
                if error.exit != wakelog_contract::Exit::Dependency {
                    // The answer is known: this nonce will never hold the session.
                    self.memory.pending_nonce = None;
                    self.save()?;
                }
                return Err(error);
            }
        };
        self.remember(&grant.lifetime_id)?;
        Ok((grant, nonce))
    }

    /// The nonce of an attachment that may have been made, else a new one that is remembered before it is used.
    fn nonce(&mut self) -> Result<WriterNonce, Error> {
        if let Some(text) = &self.memory.pending_nonce {
            return WriterNonce::from_slice(&self.decode(text)?).map_err(not_an_id);
        }
        let nonce = new_nonce();
        self.memory.pending_nonce = Some(nonce.to_string());
        self.save()?;
        Ok(nonce)
    }

    fn decode(&self, text: &str) -> Result<Vec<u8>, Error> {
        hex::decode(text)
            .map_err(|error| Error::failed(format!("writer state {}: {error}", self.path.display())))
    }

    fn save(&self) -> Result<(), Error> {
        let bytes = serde_json::to_vec(&self.memory)
            .map_err(|error| Error::failed(format!("writer state: {error}")))?;
        discovery::write_private(&self.path, &bytes)
    }
}

fn not_an_id(error: wakelog_model::Error) -> Error {
    Error::failed(format!("writer state: {error}"))
}

#[cfg(test)]
mod tests;
