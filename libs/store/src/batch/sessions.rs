//! Sessions, lifetimes, access and erasure.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;
use wakelog_model::SessionId;

use super::{assert_all_written, assert_equal_lengths};
use crate::Error;
use crate::error::{During, convert};
use crate::numbers::to_bigint;
use crate::rows::{AccessWrite, LifetimeWrite, SessionWrite};
use crate::sessions::encode_labels;

const SESSIONS: &str = "agent_sessions";
const LIFETIMES: &str = "session_lifetimes";
const SUBSCRIBERS: &str = "session_subscribers";

/// Microseconds, or milliseconds, since 1970 that a timestamp can take. Far ahead, and so replaced by now.
const LAST_INSTANT: u64 = 9_000_000_000_000_000;

/// Also pins a session that has no pin yet: a replay into a fresh store takes the pins from the log.
pub(crate) async fn upsert_sessions(
    connection: &mut PgConnection,
    writes: &[SessionWrite],
) -> Result<(), Error> {
    if writes.is_empty() {
        return Ok(());
    }
    let mut sorted: Vec<&SessionWrite> = writes.iter().collect();
    sorted.sort_by_key(|write| write.session);

    let ids: Vec<Uuid> = sorted.iter().map(|write| write.session.0).collect();
    let partitions: Vec<i32> = sorted.iter().map(|write| write.partition).collect();
    let owners: Vec<&str> = sorted.iter().map(|write| write.owner.as_str()).collect();
    let labels = sorted
        .iter()
        .map(|write| encode_labels(&write.labels))
        .collect::<Result<Vec<String>, _>>()?;
    let parents: Vec<Option<Uuid>> = sorted
        .iter()
        .map(|write| write.parent.map(|parent| parent.0))
        .collect();
    let subpaths: Vec<&str> = sorted.iter().map(|write| write.subpath.as_str()).collect();
    let states: Vec<&[u8]> = sorted.iter().map(|write| write.state.as_slice()).collect();
    let last_entries = bigints("last_entry_seq", sorted.iter().map(|write| write.last_entry_seq))?;
    let last_checkpoints = bigints(
        "last_checkpoint_seq",
        sorted.iter().map(|write| write.last_checkpoint_seq),
    )?;
    let generations = bigints("generation", sorted.iter().map(|write| write.generation))?;
    let statuses: Vec<i32> = sorted.iter().map(|write| write.lifetime_status).collect();
    let erased: Vec<bool> = sorted.iter().map(|write| write.erased).collect();
    let opened = instants("opened_at", sorted.iter().map(|write| write.opened_at_us))?;
    let updated = instants("updated_at", sorted.iter().map(|write| write.updated_at_us))?;
    assert_equal_lengths(
        SESSIONS,
        &[
            ids.len(),
            partitions.len(),
            owners.len(),
            labels.len(),
            parents.len(),
            subpaths.len(),
            states.len(),
            last_entries.len(),
            last_checkpoints.len(),
            generations.len(),
            statuses.len(),
            erased.len(),
            opened.len(),
            updated.len(),
        ],
    )?;
    let written = sqlx::query(
        "WITH fresh AS (
             SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::bytea[],
                                  $8::bigint[], $9::bigint[], $10::bigint[], $11::int[], $12::bool[], $13::bigint[],
                                  $14::bigint[])
               AS fresh(session_id, partition, owner, labels, parent, subpath, fold_state,
                        last_entry_seq, last_checkpoint_seq, generation, lifetime_status, erased, opened_at_us,
                        updated_at_us)
         ), pinned AS (
             INSERT INTO session_pins (session_id, partition)
             SELECT session_id, partition FROM fresh ORDER BY session_id
             ON CONFLICT (session_id) DO NOTHING
         )
         INSERT INTO agent_sessions AS stored
                (session_id, partition, owner, labels, parent, subpath, fold_state,
                 last_entry_seq, last_checkpoint_seq, generation, lifetime_status, erased, opened_at, updated_at)
         SELECT session_id, partition, owner, labels::jsonb, parent, subpath, fold_state,
                last_entry_seq, last_checkpoint_seq, generation, lifetime_status, erased,
                least(now(), timestamptz 'epoch' + opened_at_us * interval '1 microsecond'),
                least(now(), timestamptz 'epoch' + updated_at_us * interval '1 microsecond')
         FROM fresh ORDER BY session_id
         ON CONFLICT (session_id) DO UPDATE
         SET fold_state = excluded.fold_state,
             last_entry_seq = excluded.last_entry_seq,
             last_checkpoint_seq = excluded.last_checkpoint_seq,
             generation = excluded.generation,
             lifetime_status = excluded.lifetime_status,
             erased = stored.erased OR excluded.erased,
             updated_at = excluded.updated_at
         WHERE stored.partition = excluded.partition AND stored.owner = excluded.owner",
    )
    .bind(ids)
    .bind(partitions)
    .bind(owners)
    .bind(labels)
    .bind(parents)
    .bind(subpaths)
    .bind(states)
    .bind(last_entries)
    .bind(last_checkpoints)
    .bind(generations)
    .bind(statuses)
    .bind(erased)
    .bind(opened)
    .bind(updated)
    .execute(connection)
    .await
    .map_err(|error| convert(During::Batch(SESSIONS), error))?;
    assert_all_written(SESSIONS, writes.len(), written.rows_affected())
}

/// Id, request, base, body start and the time of the bind are written once: a row that says otherwise is a bug, and so is another writer.
pub(crate) async fn upsert_lifetimes(
    connection: &mut PgConnection,
    writes: &[LifetimeWrite],
) -> Result<(), Error> {
    if writes.is_empty() {
        return Ok(());
    }
    let mut sorted: Vec<&LifetimeWrite> = writes.iter().collect();
    sorted.sort_by_key(|write| (write.session, write.generation));

    let ids: Vec<Uuid> = sorted.iter().map(|write| write.session.0).collect();
    let generations = bigints("generation", sorted.iter().map(|write| write.generation))?;
    let lifetime_ids: Vec<&[u8]> = sorted.iter().map(|write| write.lifetime_id.as_bytes()).collect();
    let requests: Vec<&str> = sorted.iter().map(|write| write.request_id.as_str()).collect();
    let bases = bigints("base", sorted.iter().map(|write| write.base))?;
    let body_starts = bigints("body_start", sorted.iter().map(|write| write.body_start))?;
    let nonces: Vec<Option<&[u8]>> = sorted
        .iter()
        .map(|write| write.nonce.as_ref().map(|nonce| nonce.as_bytes()))
        .collect();
    let applied = bigints("applied_seq", sorted.iter().map(|write| write.applied_seq))?;
    let statuses: Vec<i32> = sorted.iter().map(|write| write.status).collect();
    let bound = instants("bound_at", sorted.iter().map(|write| write.bound_at_ms))?;
    assert_equal_lengths(
        LIFETIMES,
        &[
            ids.len(),
            generations.len(),
            lifetime_ids.len(),
            requests.len(),
            bases.len(),
            body_starts.len(),
            nonces.len(),
            applied.len(),
            statuses.len(),
            bound.len(),
        ],
    )?;
    let written = sqlx::query(
        "INSERT INTO session_lifetimes AS stored
                (session_id, generation, lifetime_id, request_id, base, body_start, writer_nonce, applied_seq, status,
                 bound_at)
         SELECT session_id, generation, lifetime_id, request_id, base, body_start, writer_nonce, applied_seq, status,
                least(now(), timestamptz 'epoch' + bound_at_ms * interval '1 millisecond')
         FROM unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::text[], $5::bigint[], $6::bigint[],
                     $7::bytea[], $8::bigint[], $9::int[], $10::bigint[])
           AS fresh(session_id, generation, lifetime_id, request_id, base, body_start, writer_nonce, applied_seq, status,
                    bound_at_ms)
         ORDER BY session_id, generation
         ON CONFLICT (session_id, generation) DO UPDATE
         SET writer_nonce = excluded.writer_nonce,
             applied_seq = excluded.applied_seq,
             status = excluded.status
         WHERE stored.lifetime_id = excluded.lifetime_id
           AND stored.request_id = excluded.request_id
           AND stored.base = excluded.base
           AND stored.body_start = excluded.body_start
           AND (stored.writer_nonce IS NULL OR stored.writer_nonce = excluded.writer_nonce)",
    )
    .bind(ids)
    .bind(generations)
    .bind(lifetime_ids)
    .bind(requests)
    .bind(bases)
    .bind(body_starts)
    .bind(nonces)
    .bind(applied)
    .bind(statuses)
    .bind(bound)
    .execute(connection)
    .await
    .map_err(|error| convert(During::Batch(LIFETIMES), error))?;
    assert_all_written(LIFETIMES, writes.len(), written.rows_affected())
}

pub(crate) async fn write_access(connection: &mut PgConnection, writes: &[AccessWrite]) -> Result<(), Error> {
    if writes.is_empty() {
        return Ok(());
    }
    // The last change of an account in the log's order counts.
    let last: BTreeMap<(SessionId, &str), i32> = writes
        .iter()
        .map(|write| ((write.session, write.account.as_str()), write.role))
        .collect();
    let ids: Vec<Uuid> = last.keys().map(|(session, _)| session.0).collect();
    let accounts: Vec<&str> = last.keys().map(|(_, account)| *account).collect();
    let roles: Vec<i32> = last.values().copied().collect();
    assert_equal_lengths(SUBSCRIBERS, &[ids.len(), accounts.len(), roles.len()])?;
    sqlx::query(
        "WITH fresh AS (
             SELECT * FROM unnest($1::uuid[], $2::text[], $3::int[]) AS fresh(session_id, account, role)
         ), taken_back AS (
             DELETE FROM session_subscribers AS stored USING fresh
             WHERE stored.session_id = fresh.session_id AND stored.account = fresh.account AND fresh.role = 0
         )
         INSERT INTO session_subscribers (session_id, account, role)
         SELECT session_id, account, role FROM fresh WHERE role <> 0 ORDER BY session_id, account
         ON CONFLICT (session_id, account) DO UPDATE SET role = excluded.role",
    )
    .bind(ids)
    .bind(accounts)
    .bind(roles)
    .execute(connection)
    .await
    .map_err(|error| convert(During::Batch(SUBSCRIBERS), error))?;
    Ok(())
}

/// Deletes every entry of the sessions and of all that descend from them, and the raw bytes that the quarantine keeps
/// of them. Rows of sessions, lifetimes and pins stay as tombstones. `UNION` drops repeats, so a circle ends.
pub(crate) async fn erase(connection: &mut PgConnection, sessions: &[SessionId]) -> Result<(), Error> {
    if sessions.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
    let gone: Vec<Uuid> = sqlx::query_scalar(
        "WITH RECURSIVE gone(session_id) AS (
             SELECT unnest($1::uuid[])
             UNION
             SELECT child.session_id FROM agent_sessions AS child JOIN gone ON child.parent = gone.session_id
         ), marked AS (
             UPDATE agent_sessions AS stored SET erased = true, updated_at = now()
             FROM gone WHERE stored.session_id = gone.session_id AND NOT stored.erased
         ), deleted AS (
             DELETE FROM agent_session_transcript_entries AS stored
             USING gone WHERE stored.session_id = gone.session_id
         )
         SELECT session_id FROM gone",
    )
    .bind(ids)
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| convert(During::Batch("erasing sessions"), error))?;
    let keys: Vec<Vec<u8>> = gone
        .into_iter()
        .map(|id| SessionId(id).to_string().into_bytes())
        .collect();
    sqlx::query("UPDATE quarantined_records SET raw = NULL WHERE record_key = ANY($1) AND raw IS NOT NULL")
        .bind(keys)
        .execute(connection)
        .await
        .map_err(|error| convert(During::Batch("erasing quarantined records"), error))?;
    Ok(())
}

/// What no timestamp of the database can be is as good as none.
fn instants(
    what: &'static str,
    values: impl Iterator<Item = Option<u64>>,
) -> Result<Vec<Option<i64>>, Error> {
    values
        .map(|value| {
            value
                .map(|value| to_bigint(what, value.min(LAST_INSTANT)))
                .transpose()
        })
        .collect()
}

fn bigints(what: &'static str, values: impl Iterator<Item = u64>) -> Result<Vec<i64>, Error> {
    values.map(|value| to_bigint(what, value)).collect()
}
