//! Lifetime grants: a lifetime and the right to write in it.

use tonic::metadata::MetadataMap;
use wakelog_contract::{TokenError, bearer};
use wakelog_proto::v1::{LifetimeGrant, LifetimeTokenClaims};

use crate::bind::Bound;
use crate::bind_decision::{Standing, standing};
use crate::core::{Core, known};
use crate::{Error, clock, validate};

impl Core {
    /// A grant with a fresh token. Only for a lifetime that was just seen to be current.
    pub(crate) fn grant(&self, bound: &Bound, account: &str) -> LifetimeGrant {
        let Bound { session, lifetime } = bound;
        let session_id = session.session.to_string();
        let lifetime_id = lifetime.lifetime_id.as_bytes().to_vec();
        let ttl_ms = u64::try_from(self.options.token_ttl.as_millis()).unwrap_or(u64::MAX);
        let expires_at_ms = clock::now_ms().saturating_add(ttl_ms);
        let token = self.signer.sign(&LifetimeTokenClaims {
            session_id: session_id.clone(),
            lifetime_id: lifetime_id.clone().into(),
            generation: lifetime.generation,
            partition: session.partition,
            expires_at_ms,
            account: account.to_owned(),
        });
        LifetimeGrant {
            session_id,
            lifetime_id: lifetime_id.into(),
            generation: lifetime.generation,
            base: lifetime.base,
            body_start: lifetime.body_start,
            token,
            token_expires_at_ms: expires_at_ms,
            applied_entry_seq: lifetime.applied_seq,
        }
    }

    /// What the lifetime token of a call says. Expiry, and only that, is forgiven.
    pub(crate) fn claims_to_renew(&self, metadata: &MetadataMap) -> Result<LifetimeTokenClaims, Error> {
        let token = bearer(metadata).ok_or(Error::TokenMissing)?;
        match self.signer.verify(token, clock::now_ms()) {
            Ok(claims) | Err(TokenError::Expired(claims)) => Ok(claims),
            Err(TokenError::Forged) => Err(Error::TokenForged),
        }
    }

    /// A new token for a lifetime that is current and takes entries, while its account may see the session.
    pub(crate) async fn renew(&self, claims: &LifetimeTokenClaims) -> Result<LifetimeGrant, Error> {
        let session_id = validate::session_id(&claims.session_id)?;
        let lifetime_id = validate::lifetime_id(&claims.lifetime_id)?
            .ok_or_else(|| Error::Malformed("the token names no lifetime".to_owned()))?;
        let session = self.visible(session_id, &claims.account).await?;
        let Some(lifetime) = self.store.lifetime_by_id(session_id, lifetime_id).await? else {
            return Err(Error::Superseded {
                current: session.generation,
            });
        };
        match standing(&known(&lifetime)?) {
            Standing::Active => Ok(self.grant(&Bound { session, lifetime }, &claims.account)),
            Standing::Superseded { current } => Err(Error::Superseded { current }),
            Standing::Ended => Err(Error::LifetimeEnded),
            Standing::Failed => Err(Error::LifetimeFailed),
        }
    }
}
