//! Whether the store holds an object as it should be (put-before-prune).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::ObjectStore;
use super::failure::{Failure, Operation, RequestError};
use crate::Error;

/// How an object was found to be what it should be. Its size is always compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// By the SHA-256 that the store keeps of it.
    Checksum,
    /// By the SHA-256 over those of its parts that the store keeps of it.
    ChecksumOfParts,
    /// By reading it: the store keeps no checksum that can be compared.
    ReadBack,
}

/// What an object should be.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) bytes: u64,
    pub(super) digest: [u8; 32],
    /// What the store gives instead of the digest if the object went up in these parts.
    pub(super) of_parts: Option<String>,
}

impl ObjectStore {
    /// Checks that the store holds the object with this size and SHA-256, by what it says of it, and if that is not enough
    /// by reading it. Fails with [`Failure::Corrupt`] if it is another one, [`Failure::NotFound`] if it is absent.
    pub async fn verify(&self, key: &str, bytes: u64, digest: [u8; 32]) -> Result<Verified, Error> {
        let expected = Expected {
            bytes,
            digest,
            of_parts: None,
        };
        self.verify_expected(key, &expected).await
    }

    pub(super) async fn verify_expected(&self, key: &str, expected: &Expected) -> Result<Verified, Error> {
        let head = self.head(key).await?;
        if head.bytes != expected.bytes {
            return Err(corrupt(
                Operation::Head,
                key,
                format!("it has {} bytes instead of {}", head.bytes, expected.bytes),
            ));
        }
        if head.sha256.as_deref() == Some(STANDARD.encode(expected.digest).as_str()) {
            return Ok(Verified::Checksum);
        }
        if head.sha256.is_some() && head.sha256 == expected.of_parts {
            return Ok(Verified::ChecksumOfParts);
        }
        // None, that of other parts, or one that a careless server kept from an earlier object of this name.
        self.read_back(key, expected).await?;
        Ok(Verified::ReadBack)
    }

    async fn read_back(&self, key: &str, expected: &Expected) -> Result<(), Error> {
        let mut hasher = Sha256::new();
        let mut chunks = self.chunks(key, expected.bytes);
        while let Some(chunk) = chunks.next_chunk().await? {
            hasher.update(&chunk);
        }
        let found: [u8; 32] = hasher.finalize().into();
        if found != expected.digest {
            return Err(corrupt(
                Operation::Get,
                key,
                format!("its digest is {}", hex::encode(found)),
            ));
        }
        Ok(())
    }
}

fn corrupt(operation: Operation, key: &str, reason: String) -> Error {
    Error::Request(RequestError::new(operation, key, Failure::Corrupt, reason))
}
