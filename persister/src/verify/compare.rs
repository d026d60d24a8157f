//! What the store holds of a session or a partition, against what it must hold.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use wakelog_fold::SessionState;
use wakelog_model::{SessionId, decode_part};
use wakelog_store::{LifetimeRow, PartRow};

use super::archived::Archived;
use super::columns::compare_columns;
use super::differences::Differences;
use super::refold::{ExpectedLifetime, ExpectedPart, ExpectedSession, Refold};
use super::report::DifferenceKind;
use crate::Error;

/// Stored bytes of one page of parts, about.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Lifetimes of a session that are compared, at most: the newest.
const LIFETIMES: u32 = 1_000;

/// The reasons that are compared as one, and what that is called.
const ON_NO_SESSION_HERE: [&str; 2] = ["unbound", "wrong_partition"];
const ON_NO_SESSION_HERE_NAME: &str = "unbound or wrong_partition";

/// Compares one session; `stored` is its state in the store. Returns how many of its entries were archived.
pub(crate) async fn compare_session(
    archived: &Archived<'_>,
    refold: &Refold,
    session: SessionId,
    stored: Option<&[u8]>,
    differences: &mut Differences,
) -> Result<u64, Error> {
    let store = archived.store;
    match (refold.state(session), stored) {
        (None, None) => return Ok(0),
        (Some(_), None) => differences.add(Some(session), DifferenceKind::Session, "there", "absent"),
        (None, Some(_)) => differences.add(Some(session), DifferenceKind::Session, "absent", "there"),
        (Some(expected), Some(found)) => {
            compare_states(session, expected, found, differences);
            if let Some(columns) = store.session_columns(session).await? {
                compare_columns(session, expected, &columns, differences);
            }
        }
    }
    let nothing = ExpectedSession::default();
    let expected = refold.session(session).unwrap_or(&nothing);
    let archived_entries = compare_parts(archived, session, &expected.parts, differences).await?;
    let lifetimes = store.lifetimes(session, LIFETIMES).await?;
    compare_lifetimes(session, &expected.lifetimes, &lifetimes, differences);
    Ok(archived_entries)
}

fn compare_states(session: SessionId, expected: &SessionState, found: &[u8], differences: &mut Differences) {
    let (expected, found) = (expected.digest(), <[u8; 32]>::from(Sha256::digest(found)));
    if expected != found {
        differences.add(
            Some(session),
            DifferenceKind::State,
            hex_of(&expected),
            hex_of(&found),
        );
    }
}

async fn compare_parts(
    archived: &Archived<'_>,
    session: SessionId,
    expected: &BTreeMap<(u64, u32), ExpectedPart>,
    differences: &mut Differences,
) -> Result<u64, Error> {
    let mut missing = expected.clone();
    let mut after = None;
    loop {
        let page = archived
            .store
            .parts_page(session, after, u64::MAX, PAGE_BYTES)
            .await?;
        let Some(last) = page.last() else {
            break;
        };
        after = Some((last.entry_seq, last.part));
        for row in &page {
            compare_part(
                session,
                missing.remove(&(row.entry_seq, row.part)),
                row,
                differences,
            );
        }
    }
    let archived_entries = archived.account_for(session, &mut missing, differences).await?;
    for ((entry_seq, part), expected) in missing {
        let kind = DifferenceKind::Part { entry_seq, part };
        differences.add(Some(session), kind, describe_part(&expected), "absent");
    }
    Ok(archived_entries)
}

fn compare_part(
    session: SessionId,
    expected: Option<ExpectedPart>,
    row: &PartRow,
    differences: &mut Differences,
) {
    let (entry_seq, part) = (row.entry_seq, row.part);
    let found = ExpectedPart {
        checkpoint: row.checkpoint,
        last: row.last,
        generation: row.generation,
        plain_length: row.plain_length,
        part_digest: Some(row.part_digest),
    };
    if expected != Some(found) {
        let expected = expected
            .as_ref()
            .map_or_else(|| "absent".to_owned(), describe_part);
        let kind = DifferenceKind::Part { entry_seq, part };
        differences.add(Some(session), kind, expected, describe_part(&found));
    }
    if let Err(error) = decode_part(
        row.encoding,
        &row.body,
        row.plain_length as usize,
        row.part_digest,
    ) {
        let kind = DifferenceKind::Body { entry_seq, part };
        differences.add(
            Some(session),
            kind,
            row.part_digest.to_string(),
            error.to_string(),
        );
    }
}

fn compare_lifetimes(
    session: SessionId,
    expected: &BTreeMap<u64, ExpectedLifetime>,
    rows: &[LifetimeRow],
    differences: &mut Differences,
) {
    let mut missing: BTreeMap<u64, &ExpectedLifetime> = expected
        .iter()
        .rev()
        .take(LIFETIMES as usize)
        .map(|(generation, lifetime)| (*generation, lifetime))
        .collect();
    for row in rows {
        let found = ExpectedLifetime {
            lifetime_id: row.lifetime_id,
            request_id: row.request_id.clone(),
            base: row.base,
            body_start: row.body_start,
            nonce: row.nonce,
            applied_seq: row.applied_seq,
            status: row.status,
        };
        let expected = missing.remove(&row.generation);
        if expected != Some(&found) {
            let expected = expected.map_or_else(|| "absent".to_owned(), describe_lifetime);
            let kind = DifferenceKind::Lifetime {
                generation: row.generation,
            };
            differences.add(Some(session), kind, expected, describe_lifetime(&found));
        }
    }
    for (generation, expected) in missing {
        let kind = DifferenceKind::Lifetime { generation };
        differences.add(Some(session), kind, describe_lifetime(expected), "absent");
    }
}

/// Compares how many records are in quarantine, by reason.
pub(crate) fn compare_quarantine(
    expected: &BTreeMap<&'static str, u64>,
    found: &BTreeMap<String, u64>,
    differences: &mut Differences,
) {
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (reason, records) in expected {
        counts.entry(compared_as(reason)).or_default().0 += records;
    }
    for (reason, records) in found {
        counts.entry(compared_as(reason)).or_default().1 += records;
    }
    for (reason, (expected, found)) in counts {
        if expected != found {
            let kind = DifferenceKind::Quarantine {
                reason: reason.to_owned(),
            };
            differences.add(None, kind, expected.to_string(), found.to_string());
        }
    }
}

fn compared_as(reason: &str) -> &str {
    if ON_NO_SESSION_HERE.contains(&reason) {
        return ON_NO_SESSION_HERE_NAME;
    }
    reason
}

fn describe_part(part: &ExpectedPart) -> String {
    let digest = part
        .part_digest
        .map_or_else(|| "none".to_owned(), |digest| digest.to_string());
    let ExpectedPart {
        checkpoint,
        last,
        generation,
        plain_length,
        ..
    } = part;
    format!(
        "digest {digest}, {plain_length} bytes, checkpoint {checkpoint}, last {last}, generation {generation}"
    )
}

fn describe_lifetime(lifetime: &ExpectedLifetime) -> String {
    let ExpectedLifetime {
        lifetime_id,
        request_id,
        base,
        body_start,
        nonce,
        applied_seq,
        status,
    } = lifetime;
    let nonce = nonce.map_or_else(|| "none".to_owned(), |nonce| nonce.to_string());
    format!(
        "id {lifetime_id}, request {request_id:?}, base {base}, body start {body_start}, nonce {nonce}, applied \
         {applied_seq}, status {status}"
    )
}

fn hex_of(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
