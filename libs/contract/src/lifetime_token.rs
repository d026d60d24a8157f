//! How a lifetime token is signed and checked: `base64url(claims) "." base64url(HMAC-SHA256 of the claims' bytes)`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use prost::Message as _;
use rand::RngCore as _;
use sha2::Sha256;
use wakelog_proto::v1::LifetimeTokenClaims;

use crate::Error;

#[cfg(test)]
mod tests;

/// The shortest key: as long as the MAC.
pub const MIN_KEY_BYTES: usize = 32;

/// No token of ours is longer: the claims' only long text is an account of at most 128 bytes.
const MAX_TOKEN_BYTES: usize = 1024;

/// Why a lifetime token is not accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TokenError {
    /// This service did not sign it.
    #[error("the lifetime token is forged or malformed")]
    Forged,
    /// It was signed by us and has expired. What it says may still serve to renew it.
    #[error("the lifetime token has expired")]
    Expired(LifetimeTokenClaims),
}

/// Signs and checks lifetime tokens. All services that share tokens share the key.
#[derive(Clone)]
pub struct TokenSigner {
    keyed: Hmac<Sha256>,
}

impl TokenSigner {
    /// Takes a secret key of at least [`MIN_KEY_BYTES`].
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        let too_short = || Error::KeyTooShort {
            actual: key.len(),
            least: MIN_KEY_BYTES,
        };
        if key.len() < MIN_KEY_BYTES {
            return Err(too_short());
        }
        let keyed = Hmac::new_from_slice(key).map_err(|_| too_short())?;
        Ok(Self { keyed })
    }

    /// Draws a key that [`TokenSigner::new`] takes.
    pub fn generate_key() -> [u8; MIN_KEY_BYTES] {
        let mut key = [0; MIN_KEY_BYTES];
        rand::rng().fill_bytes(&mut key);
        key
    }

    /// Signs the claims. The token is a secret.
    pub fn sign(&self, claims: &LifetimeTokenClaims) -> String {
        let claims = claims.encode_to_vec();
        let mut mac = self.keyed.clone();
        mac.update(&claims);
        let mac = mac.finalize().into_bytes();
        format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(&claims),
            URL_SAFE_NO_PAD.encode(mac)
        )
    }

    /// Checks the signature in constant time, then the expiry against `now_ms` (milliseconds since the epoch).
    pub fn verify(&self, token: &str, now_ms: u64) -> Result<LifetimeTokenClaims, TokenError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::Forged);
        }
        let (claims, mac) = token.split_once('.').ok_or(TokenError::Forged)?;
        let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| TokenError::Forged)?;
        let mac = URL_SAFE_NO_PAD.decode(mac).map_err(|_| TokenError::Forged)?;
        let mut expected = self.keyed.clone();
        expected.update(&claims);
        expected.verify_slice(&mac).map_err(|_| TokenError::Forged)?;
        let claims = LifetimeTokenClaims::decode(claims.as_slice()).map_err(|_| TokenError::Forged)?;
        if claims.expires_at_ms <= now_ms {
            return Err(TokenError::Expired(claims));
        }
        Ok(claims)
    }
}

impl fmt::Debug for TokenSigner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenSigner(secret)")
    }
}
