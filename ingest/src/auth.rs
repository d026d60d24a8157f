//! Who calls: what the lifetime token of a request says.

use std::time::{SystemTime, UNIX_EPOCH};

use tonic::Status;
use tonic::metadata::MetadataMap;
use wakelog_contract::{TokenError, TokenSigner, bearer, refuse};
use wakelog_model::{LifetimeId, SessionId};
use wakelog_proto::v1::{LifetimeTokenClaims, RefusalReason};

#[cfg(test)]
mod tests;

/// The lifetime that a valid token names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub session: SessionId,
    pub lifetime: LifetimeId,
    pub generation: u64,
    pub partition: i32,
}

/// Checks the token of a request.
pub(crate) fn authenticate(signer: &TokenSigner, metadata: &MetadataMap) -> Result<Identity, Status> {
    authenticate_at(signer, metadata, now_ms())
}

fn authenticate_at(signer: &TokenSigner, metadata: &MetadataMap, now_ms: u64) -> Result<Identity, Status> {
    let Some(token) = bearer(metadata) else {
        return Err(refuse(RefusalReason::TokenMissing, "the call carries no lifetime token").build());
    };
    let claims = signer.verify(token, now_ms).map_err(|error| {
        let reason = match &error {
            TokenError::Forged => RefusalReason::TokenForged,
            TokenError::Expired(_) => RefusalReason::TokenExpired,
        };
        refuse(reason, error.to_string()).build()
    })?;
    identity(&claims)
        .ok_or_else(|| refuse(RefusalReason::TokenForged, TokenError::Forged.to_string()).build())
}

/// Refuses a request that names another session than its token.
pub(crate) fn check_session(identity: &Identity, session_id: &str) -> Result<(), Status> {
    if session_id == identity.session.to_string() {
        return Ok(());
    }
    Err(refuse(
        RefusalReason::TokenForeign,
        "the lifetime token is for another session",
    )
    .build())
}

fn identity(claims: &LifetimeTokenClaims) -> Option<Identity> {
    if claims.generation == 0 || claims.partition < 0 {
        return None;
    }
    Some(Identity {
        session: claims.session_id.parse().ok()?,
        lifetime: LifetimeId::from_slice(&claims.lifetime_id).ok()?,
        generation: claims.generation,
        partition: claims.partition,
    })
}

fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
