//! What a request may say. Pure: every function takes a field and hands out a typed value or a refusal that names it.

use std::collections::BTreeMap;

use uuid::Uuid;
use wakelog_model::limits::{
    MAX_LABEL_KEY_BYTES, MAX_LABEL_VALUE_BYTES, MAX_LABELS, MAX_REQUEST_ID_BYTES, MAX_SUBPATH_BYTES,
};
use wakelog_model::{LifetimeId, SessionId, WriterNonce};

use crate::Error;

/// Labels of a session.
pub(crate) type Labels = BTreeMap<String, String>;

/// Sessions on a page when the request does not say.
const DEFAULT_PAGE_SIZE: u32 = 100;

/// Sessions on a page at most.
pub(crate) const MAX_PAGE_SIZE: u32 = 1_000;

/// A session's id, in its one written form. The refusal shows at most 80 characters of the value.
pub(crate) fn session_id(value: &str) -> Result<SessionId, Error> {
    value
        .parse()
        .map_err(|error: wakelog_model::Error| Error::Malformed(error.to_string()))
}

/// A parent's id; empty: none.
pub(crate) fn parent_id(value: &str) -> Result<Option<SessionId>, Error> {
    if value.is_empty() {
        Ok(None)
    } else {
        session_id(value).map(Some)
    }
}

/// A lifetime's id; empty: none.
pub(crate) fn lifetime_id(value: &[u8]) -> Result<Option<LifetimeId>, Error> {
    if value.is_empty() {
        return Ok(None);
    }
    LifetimeId::from_slice(value)
        .map(Some)
        .map_err(|error| Error::Malformed(error.to_string()))
}

/// A writer's nonce.
pub(crate) fn writer_nonce(value: &[u8]) -> Result<WriterNonce, Error> {
    WriterNonce::from_slice(value).map_err(|error| Error::Malformed(error.to_string()))
}

/// A request id as given, or a random one in place of an empty one.
pub(crate) fn request_id(value: &str) -> Result<String, Error> {
    if value.is_empty() {
        return Ok(Uuid::new_v4().hyphenated().to_string());
    }
    text("request id", value, MAX_REQUEST_ID_BYTES)?;
    Ok(value.to_owned())
}

/// Labels of a session, or labels to look for.
pub(crate) fn labels(labels: &Labels) -> Result<(), Error> {
    within("labels", labels.len(), MAX_LABELS)?;
    for (key, value) in labels {
        if key.is_empty() {
            return Err(Error::Malformed("a label has an empty key".to_owned()));
        }
        text("label key", key, MAX_LABEL_KEY_BYTES)?;
        text("label value", value, MAX_LABEL_VALUE_BYTES)?;
    }
    Ok(())
}

/// The label that a fresh start gives its session; none for a container without a name.
pub(crate) fn container_label(container_name: &str) -> Result<Labels, Error> {
    if container_name.is_empty() {
        return Ok(Labels::new());
    }
    text("container name", container_name, MAX_LABEL_VALUE_BYTES)?;
    Ok(Labels::from([(
        "container".to_owned(),
        container_name.to_owned(),
    )]))
}

/// A sub-session's place below its parent.
pub(crate) fn subpath(value: &str, has_parent: bool) -> Result<(), Error> {
    if !value.is_empty() && !has_parent {
        return Err(Error::Malformed("a subpath needs a parent session".to_owned()));
    }
    text("subpath", value, MAX_SUBPATH_BYTES)
}

/// How many sessions a page has.
pub(crate) fn page_size(value: u32) -> Result<u32, Error> {
    within("page size", value as usize, MAX_PAGE_SIZE as usize)?;
    Ok(if value == 0 { DEFAULT_PAGE_SIZE } else { value })
}

fn text(what: &'static str, value: &str, limit: usize) -> Result<(), Error> {
    within(what, value.len(), limit)?;
    if value.contains('\0') {
        return Err(Error::Malformed(format!("{what} holds a NUL")));
    }
    Ok(())
}

fn within(what: &'static str, actual: usize, limit: usize) -> Result<(), Error> {
    if actual > limit {
        return Err(Error::TooLarge {
            what,
            actual: actual as u64,
            limit: limit as u64,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
