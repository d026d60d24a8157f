//! Admission and repeats, with the reads of the store that they need.

use std::sync::Arc;

use tokio::time::Instant;
use tonic::Status;
use wakelog_fold::{Remembered, SessionState};
use wakelog_model::{EntryDigester, remembered_hash};
use wakelog_proto::v1::LifetimeStatus;

use crate::admission::{Certainty, Decision, EntryRequest};
use crate::facts::Terminal;
use crate::ingest::Ingest;
use crate::lane::Lane;
use crate::{metrics, refusals};

#[cfg(test)]
mod tests;

/// What becomes of an entry that is not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It may be published.
    Publish,
    /// It was before: it is to be answered from the store.
    Repeat,
}

/// What the store says of a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RepeatAnswer {
    /// The same entry is applied.
    Applied,
    /// Another one is.
    Conflict,
    /// None is; this is the last one that is.
    NotYet { applied: u64 },
    /// This writer gets no further.
    Terminal(Terminal),
}

impl Ingest {
    /// Reads the lifetime's standing unless what is known of it is fresh enough to ack by. One that the watcher left out,
    /// since nobody had used it for a while, is read as well; but when the watcher itself gets no answer, lifetimes whose
    /// fences are fresh enough go on without.
    pub(crate) async fn refresh_standing(&self, lane: &Lane) -> Result<(), Status> {
        let recent = self.options.fence_interval * 3;
        let enough = match self.board.was_posted_within(recent) {
            true => recent,
            false => self.options.max_fence_age,
        };
        let is_fresh = |read_at: Instant| read_at.elapsed() < enough;
        if lane.look(|state| state.standing().is_some() && state.read_at().is_some_and(is_fresh)) {
            return Ok(());
        }
        self.read_standing(lane).await
    }

    /// Decides whether an entry may be published: from the cache if that admits it, else from the store, if need be
    /// after the barrier.
    pub(crate) async fn admit(&self, lane: &Lane, request: EntryRequest) -> Result<Admission, Status> {
        self.refresh_standing(lane).await?;
        if let Some(decided) = decided(lane.admit(request, Certainty::Cached)) {
            return decided;
        }
        self.read_standing(lane).await?;
        if let Some(decided) = decided(lane.admit(request, Certainty::Cached)) {
            return decided;
        }
        self.pass_barrier(lane, request).await?;
        decided(lane.admit(request, Certainty::AfterBarrier))
            .unwrap_or_else(|| Err(refusals::unavailable("another writer's entries are on their way")))
    }

    /// Answers a repeat from the store, after the barrier if the store lacks it. False: the store lacks it for good,
    /// so it is no repeat any more.
    pub(crate) async fn answer_repeat(
        &self,
        lane: &Lane,
        request: EntryRequest,
        checkpoint: bool,
        digester: &EntryDigester,
    ) -> Result<bool, Status> {
        metrics::repeat();
        let kept = lane.look(|state| state.remembered.clone());
        // What is applied stays applied: an older state may answer.
        if let Some(state) = kept
            && let RepeatAnswer::Applied = repeat_answer(&state, lane, request, checkpoint, digester)
        {
            return Ok(true);
        }
        let mut answer = self.ask_store(lane, request, checkpoint, digester).await?;
        if let RepeatAnswer::NotYet { .. } = answer {
            let bound = self.options.barrier_wait;
            if !lane.wait_not_publishing(request.seq, bound).await {
                return Err(refusals::unavailable(
                    "the entry's earlier publish was not reported in time",
                ));
            }
            self.pass_barrier(lane, request).await?;
            answer = self.ask_store(lane, request, checkpoint, digester).await?;
        }
        match answer {
            RepeatAnswer::Applied => Ok(true),
            RepeatAnswer::Conflict => Err(refusals::conflict(request.seq)),
            RepeatAnswer::Terminal(terminal) => Err(refusals::terminal(terminal)),
            RepeatAnswer::NotYet { applied } => {
                tracing::info!(
                    lifetime = %lane.identity.lifetime,
                    seq = request.seq,
                    applied,
                    "published entry is not in the hot tail, falling back to what is"
                );
                lane.change(|state| state.reset_to(applied));
                Ok(false)
            }
        }
    }

    async fn ask_store(
        &self,
        lane: &Lane,
        request: EntryRequest,
        checkpoint: bool,
        digester: &EntryDigester,
    ) -> Result<RepeatAnswer, Status> {
        let Some(state) = self.read_session_state(lane).await? else {
            return Ok(RepeatAnswer::NotYet { applied: 0 });
        };
        let answer = repeat_answer(&state, lane, request, checkpoint, digester);
        if answer == RepeatAnswer::Applied {
            lane.change(|lane_state| lane_state.remembered = Some(Arc::clone(&state)));
        }
        Ok(answer)
    }
}

fn decided(decision: Decision) -> Option<Result<Admission, Status>> {
    match decision {
        Decision::Admit { .. } => Some(Ok(Admission::Publish)),
        Decision::Repeat => Some(Ok(Admission::Repeat)),
        Decision::Refuse(refusal) => Some(Err(refusals::admission(refusal))),
        Decision::AskStore | Decision::TryLater => None,
    }
}

fn repeat_answer(
    state: &SessionState,
    lane: &Lane,
    request: EntryRequest,
    checkpoint: bool,
    digester: &EntryDigester,
) -> RepeatAnswer {
    let Some(entry_digest) = digester.finish() else {
        return RepeatAnswer::Conflict;
    };
    let hash = remembered_hash(checkpoint, digester.part_count(), entry_digest);
    answer_from(state, lane.identity.lifetime, request, hash)
}

/// What a session's state says of a repeat. Pure.
fn answer_from(
    state: &SessionState,
    lifetime_id: wakelog_model::LifetimeId,
    request: EntryRequest,
    hash: wakelog_model::Digest16,
) -> RepeatAnswer {
    if state.is_erased() {
        return RepeatAnswer::Terminal(Terminal::NotFound);
    }
    let Some(lifetime) = state.lifetime() else {
        return RepeatAnswer::NotYet { applied: 0 };
    };
    if lifetime.id() != lifetime_id {
        return match lifetime.generation() > request.generation {
            true => RepeatAnswer::Terminal(Terminal::Superseded {
                current: lifetime.generation(),
            }),
            false => RepeatAnswer::NotYet { applied: 0 },
        };
    }
    if lifetime.status() == LifetimeStatus::Failed {
        return RepeatAnswer::Terminal(Terminal::Failed);
    }
    if lifetime.nonce().is_some_and(|nonce| nonce != request.nonce) {
        return RepeatAnswer::Terminal(Terminal::SecondWriter);
    }
    match lifetime.remembered(request.seq) {
        Remembered::TooOld => RepeatAnswer::Applied,
        Remembered::Hash(applied) if applied == hash => RepeatAnswer::Applied,
        Remembered::Hash(_) => RepeatAnswer::Conflict,
        Remembered::NotYet => RepeatAnswer::NotYet {
            applied: lifetime.last_seq(),
        },
    }
}
