//! When a received body may be used: only after its close, with the length and the SHA-256 that the close names.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tonic::Status;
use wakelog_proto::v1::ResumeBody;

use crate::Error;

/// How long the next chunk may take.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(60);

/// What was received, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedBody {
    /// Bytes of the body.
    pub length: u64,
    /// SHA-256 of the body.
    pub sha256: [u8; 32],
    /// The first entry of the body.
    pub first_entry_seq: u64,
    /// The last entry of the body.
    pub last_entry_seq: u64,
}

/// Writes a body into `sink` and checks it against its close. On an error the sink holds bytes that may not be used.
pub async fn receive_body(
    chunks: impl Stream<Item = Result<ResumeBody, Status>>,
    mut sink: impl AsyncWrite + Unpin,
) -> Result<ReceivedBody, Error> {
    let mut chunks = std::pin::pin!(chunks);
    let mut hasher = Sha256::new();
    let mut received = 0_u64;
    let close = loop {
        let next = tokio::time::timeout(CHUNK_TIMEOUT, chunks.next()).await;
        let Some(chunk) = next.map_err(|_| Error::CutShort { received })? else {
            return Err(Error::CutShort { received });
        };
        let chunk = chunk?;
        hasher.update(&chunk.session_body);
        received += chunk.session_body.len() as u64;
        sink.write_all(&chunk.session_body).await.map_err(Error::Sink)?;
        if let Some(close) = chunk.close {
            break close;
        }
    };
    // A stream may still fail after its last message, for instance because the lifetime was superseded meanwhile.
    match tokio::time::timeout(CHUNK_TIMEOUT, chunks.next()).await {
        Ok(None) => {}
        Ok(Some(Ok(_))) => return Err(Error::Protocol("a body goes on after its close".to_owned())),
        Ok(Some(Err(status))) => return Err(status.into()),
        Err(_) => return Err(Error::Protocol("a body does not end after its close".to_owned())),
    }
    sink.flush().await.map_err(Error::Sink)?;
    if close.length != received {
        return Err(Error::LengthMismatch {
            expected: close.length,
            received,
        });
    }
    let sha256: [u8; 32] = hasher.finalize().into();
    if close.sha256.as_ref() != sha256 {
        return Err(Error::DigestMismatch {
            expected: hex::encode(&close.sha256),
            received: hex::encode(sha256),
        });
    }
    Ok(ReceivedBody {
        length: received,
        sha256,
        first_entry_seq: close.first_entry_seq,
        last_entry_seq: close.last_entry_seq,
    })
}

#[cfg(test)]
mod tests;
