//! One batch: one transaction that folds records and moves the partition's offset, exactly once.

use std::collections::BTreeSet;

use wakelog_fold::SessionState;
use wakelog_model::SessionId;
use wakelog_proto::v1::session_record::Record as Variant;
use wakelog_store::{Batch, BatchWrites, Store};

use crate::cache::SessionCache;
use crate::commit_outcome::SentCommit;
use crate::counts::Counts;
use crate::decode::{Content, Decoded};
use crate::effects::{Effects, EffectsBug};
use crate::states::{Known, MAX_ANCESTORS, States};

/// What a batch is about. The same batch is tried until its COMMIT is known.
#[derive(Debug)]
pub(crate) struct BatchPlan<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) offsets: SentCommit,
    /// Checksum of the last record.
    pub(crate) last_record_crc: u32,
    pub(crate) records: &'a [Decoded],
}

/// A batch whose COMMIT is known.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) states: States,
    pub(crate) counts: Counts,
}

/// Why a batch did not get there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BatchError {
    /// The store failed before the COMMIT was sent: nothing is written.
    #[error(transparent)]
    Store(#[from] wakelog_store::Error),
    /// The COMMIT was sent and nobody answered.
    #[error("nobody answered the commit: {error}")]
    CommitUnknown {
        error: wakelog_store::Error,
        counts: Counts,
    },
    /// A stored state can't be read.
    #[error("the stored state of session {session} can't be read: {error}")]
    State {
        session: SessionId,
        error: wakelog_fold::Error,
    },
    /// The fold's decision and its record contradict each other.
    #[error(transparent)]
    Effects(#[from] EffectsBug),
    /// The service dies here. Tests only.
    #[cfg_attr(
        not(feature = "failpoints"),
        allow(dead_code, reason = "only failpoints construct it")
    )]
    #[error("a failpoint ended the service")]
    Failpoint,
}

/// Folds a batch and commits it. The cache is read, never written: what happens to it depends on the end.
pub(crate) async fn fold_batch(
    store: &Store,
    plan: &BatchPlan<'_>,
    cache: &SessionCache,
) -> Result<Committed, BatchError> {
    fail::fail_point!("persister::before_batch", |_| Err(BatchError::Failpoint));
    let SentCommit { epoch, from, to } = plan.offsets;
    // The row lock first, then the epoch: whatever is read after this is read as the partition's only owner.
    let mut batch = store.begin_batch(plan.topic, plan.partition, epoch, from).await?;
    let (states, counts) = match fold_into(&mut batch, plan, cache).await {
        Ok(folded) => folded,
        // As a death leaves it: the transaction is dropped.
        Err(BatchError::Failpoint) => return Err(BatchError::Failpoint),
        Err(error) => {
            // The connection goes back in order, for others may wait for it; what it says changes nothing.
            if let Err(rollback_error) = batch.rollback().await {
                tracing::debug!(error = %rollback_error, "rolling a failed batch back failed");
            }
            return Err(error);
        }
    };
    match batch.commit(to, plan.last_record_crc).await {
        Ok(()) => {}
        Err(error @ wakelog_store::Error::CommitUnknown { .. }) => {
            return Err(BatchError::CommitUnknown { error, counts });
        }
        Err(error) => return Err(BatchError::Store(error)),
    }
    fail::fail_point!("persister::after_commit", |_| Err(BatchError::Failpoint));
    Ok(Committed { states, counts })
}

async fn fold_into(
    batch: &mut Batch,
    plan: &BatchPlan<'_>,
    cache: &SessionCache,
) -> Result<(States, Counts), BatchError> {
    let mut states = load_states(batch, plan, cache).await?;
    let (writes, counts) = fold_records(plan, &mut states)?;
    fail::fail_point!("persister::after_fold", |_| Err(BatchError::Failpoint));
    fail::fail_point!("persister::before_write", |_| Err(BatchError::Failpoint));
    batch.write(&writes).await?;
    fail::fail_point!("persister::before_commit", |_| Err(BatchError::Failpoint));
    Ok((states, counts))
}

/// Folds the batch's records into the copies, and adds up what to write. Pure.
pub(crate) fn fold_records(
    plan: &BatchPlan<'_>,
    states: &mut States,
) -> Result<(BatchWrites, Counts), EffectsBug> {
    let mut effects = Effects::new(plan.topic, plan.partition);
    for decoded in plan.records {
        match (&decoded.content, decoded.session) {
            (Content::Foldable(record), Some(session)) => {
                let outcome = states.fold(session, record);
                effects.apply(decoded, session, record, &outcome, states)?;
            }
            (Content::Refused(refused), _) => effects.refuse(decoded, refused, states),
            (Content::Foldable(_), None) => return Err(EffectsBug::without_session()),
        }
    }
    effects.finish(states)
}

/// Copies of the states of all sessions of the batch and of those above them: from the cache, else from the store.
async fn load_states(
    batch: &mut Batch,
    plan: &BatchPlan<'_>,
    cache: &SessionCache,
) -> Result<States, BatchError> {
    let mut states = States::new(plan.partition);
    let mut wanted = named_sessions(plan.records);
    // One round more than a chain has links. A chain that is longer still relies on the flags that are stored.
    for _ in 0..=MAX_ANCESTORS {
        if wanted.is_empty() {
            break;
        }
        load_round(batch, cache, &wanted, &mut states).await?;
        wanted = states.missing_parents();
    }
    Ok(states)
}

async fn load_round(
    batch: &mut Batch,
    cache: &SessionCache,
    wanted: &[SessionId],
    states: &mut States,
) -> Result<(), BatchError> {
    let mut not_cached = Vec::new();
    for session in wanted {
        match cache.copy(*session) {
            Some(known) => states.insert(*session, known),
            None => not_cached.push(*session),
        }
    }
    if not_cached.is_empty() {
        return Ok(());
    }
    let mut loaded = batch.load_sessions(&not_cached).await?;
    for session in not_cached {
        let known = match loaded.remove(&session) {
            None => Known::default(),
            Some(stored) => Known {
                state: SessionState::decode(&stored.state)
                    .map_err(|error| BatchError::State { session, error })?,
                root_erased: stored.root_erased,
            },
        };
        states.insert(session, known);
    }
    Ok(())
}

/// Every session that a record is of, or that one names as its parent; sorted, each once.
fn named_sessions(records: &[Decoded]) -> Vec<SessionId> {
    let mut named = BTreeSet::new();
    for decoded in records {
        named.extend(decoded.session);
        if let Content::Foldable(record) = &decoded.content
            && let Some(Variant::SessionOpened(opened)) = &record.record
        {
            named.extend(opened.parent_session_id.parse::<SessionId>().ok());
        }
    }
    named.into_iter().collect()
}

#[cfg(test)]
mod tests;
