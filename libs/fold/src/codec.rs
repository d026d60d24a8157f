//! The state as stored bytes, and back. What is read back is checked: a state that the fold cannot have written would
//! make it decide wrongly for ever.

use bytes::Bytes;
use prost::Message as _;
use wakelog_model::limits::{MAX_PARTS, REMEMBERED_ENTRIES};
use wakelog_model::{Digest16, WriterNonce};
use wakelog_proto::v1;

use crate::lifetime::OpenEntry;
use crate::validate::{self, MAX_NUMBER};
use crate::{Error, Lifetime, Malformed, Opened, SessionState};

pub(crate) fn encode(state: &SessionState) -> Vec<u8> {
    v1::FoldState {
        opened: state.opened.as_ref().map(opened_to_wire),
        access: state
            .access
            .iter()
            .map(|(account, role)| (account.clone(), i32::from(*role)))
            .collect(),
        erased: state.erased,
        last_entry_seq: state.last_entry_seq,
        last_checkpoint_seq: state.last_checkpoint_seq,
        lifetime: state.lifetime.as_ref().map(lifetime_to_wire),
    }
    .encode_to_vec()
}

pub(crate) fn decode(bytes: &[u8]) -> Result<SessionState, Error> {
    let stored = v1::FoldState::decode(bytes)?;
    let mut state = SessionState {
        opened: stored.opened.as_ref().map(validate::opened).transpose()?,
        erased: stored.erased,
        last_entry_seq: stored.last_entry_seq,
        last_checkpoint_seq: stored.last_checkpoint_seq,
        lifetime: stored.lifetime.map(lifetime_from_wire).transpose()?,
        ..SessionState::default()
    };
    for (account, role) in stored.access {
        validate::account(&account)?;
        state.access.insert(account, validate::role(role)?);
    }
    check(&state)?;
    if state.encode() != bytes {
        return Err(Error::NotCanonical);
    }
    Ok(state)
}

fn opened_to_wire(opened: &Opened) -> v1::SessionOpened {
    v1::SessionOpened {
        owner: opened.owner.clone(),
        labels: opened.labels.clone(),
        parent_session_id: opened.parent.map(|parent| parent.to_string()).unwrap_or_default(),
        subpath: opened.subpath.clone(),
        partition: opened.partition,
    }
}

fn lifetime_to_wire(lifetime: &Lifetime) -> v1::LifetimeFoldState {
    v1::LifetimeFoldState {
        lifetime_id: Bytes::copy_from_slice(lifetime.id.as_bytes()),
        generation: lifetime.generation,
        request_id: lifetime.request_id.clone(),
        base: lifetime.base,
        body_start: lifetime.body_start,
        writer_nonce: lifetime
            .nonce
            .map(|nonce| Bytes::copy_from_slice(nonce.as_bytes()))
            .unwrap_or_default(),
        status: lifetime.status.into(),
        last_seq: lifetime.last_seq,
        remembered: join(&lifetime.remembered),
        open_entry: lifetime.open_entry.as_ref().map(|open| v1::OpenEntry {
            checkpoint: open.checkpoint,
            part_digests: join(&open.part_digests),
        }),
    }
}

fn lifetime_from_wire(stored: v1::LifetimeFoldState) -> Result<Lifetime, Error> {
    let nonce = match stored.writer_nonce.as_ref() {
        [] => None,
        nonce => Some(WriterNonce(validate::sixteen("writer_nonce", nonce)?)),
    };
    let open_entry = match stored.open_entry {
        None => None,
        Some(open) => Some(OpenEntry {
            checkpoint: open.checkpoint,
            part_digests: split("part_digests", &open.part_digests)?,
        }),
    };
    Ok(Lifetime {
        id: validate::lifetime_id(&stored.lifetime_id)?,
        generation: validate::generation(stored.generation)?,
        request_id: validate::request_id(&stored.request_id)?.to_owned(),
        base: stored.base,
        body_start: stored.body_start,
        nonce,
        status: v1::LifetimeStatus::try_from(stored.status).unwrap_or_default(),
        last_seq: stored.last_seq,
        remembered: split("remembered", &stored.remembered)?.into(),
        open_entry,
    })
}

fn join<'a>(digests: impl IntoIterator<Item = &'a Digest16>) -> Bytes {
    digests
        .into_iter()
        .flat_map(|digest| digest.0)
        .collect::<Vec<u8>>()
        .into()
}

fn split(field: &'static str, bytes: &[u8]) -> Result<Vec<Digest16>, Malformed> {
    bytes
        .chunks(16)
        .map(|chunk| validate::sixteen(field, chunk).map(Digest16))
        .collect()
}

/// What holds of every state that the fold makes.
fn check(state: &SessionState) -> Result<(), Error> {
    let must = |holds: bool, what: &'static str| {
        if holds {
            Ok(())
        } else {
            Err(Error::Inconsistent { what })
        }
    };
    must(
        state.opened.is_some() || *state == SessionState::default(),
        "a session that was never opened has a state",
    )?;
    must(
        !state
            .access
            .values()
            .any(|role| *role == v1::AccessRole::Unspecified),
        "an account has no role",
    )?;
    must(
        state.last_entry_seq <= MAX_NUMBER,
        "the last entry is out of range",
    )?;
    must(
        state.last_checkpoint_seq <= state.last_entry_seq,
        "the last checkpoint is after the last entry",
    )?;
    let Some(lifetime) = &state.lifetime else {
        return must(state.last_entry_seq == 0, "there are entries but no lifetime");
    };
    must(
        lifetime.status != v1::LifetimeStatus::Unspecified,
        "the lifetime's status is not known",
    )?;
    must(
        lifetime.base.checked_add(lifetime.last_seq) == Some(state.last_entry_seq),
        "the lifetime's last entry is not the session's",
    )?;
    must(
        (1..=lifetime.base.max(1)).contains(&lifetime.body_start),
        "the resume body starts outside the session",
    )?;
    must(
        lifetime.remembered.len() as u64 == lifetime.last_seq.min(REMEMBERED_ENTRIES as u64),
        "the remembered window does not fit the lifetime's entries",
    )?;
    must(
        lifetime.nonce.is_some() || lifetime.last_seq == 0 && lifetime.open_entry.is_none(),
        "the lifetime has parts but no writer",
    )?;
    let open_parts = lifetime.open_entry.as_ref().map(|open| open.part_digests.len());
    must(
        open_parts.is_none_or(|parts| (1..=MAX_PARTS as usize).contains(&parts)),
        "the open entry's parts are out of range",
    )?;
    must(
        !state.erased || (open_parts.is_none() && state.access.is_empty()),
        "an erased session has access or open parts",
    )
}

#[cfg(test)]
mod tests;
