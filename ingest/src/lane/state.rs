//! What this relay remembers of one lifetime. Pure: every change is a method, and none of them does I/O.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wakelog_fold::SessionState;
use wakelog_model::WriterNonce;
use wakelog_model::limits::REMEMBERED_ENTRIES;

use super::progress::LaneProgress;
use crate::ack::{AckDecision, AckQueue, AckView, Applied, Level, decide_ack};
use crate::admission::{Certainty, Decision, EntryRequest, LaneView, decide};
use crate::facts::{BindWatch, Facts, Standing, Terminal};
use crate::metrics;

#[cfg(test)]
mod tests;

/// What a lifetime may use, and which reads of the store it trusts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneLimits {
    pub max_unacked_bytes: u64,
    pub max_fence_age: Duration,
    pub bind_message_timeout: Duration,
}

/// A part that is about to be published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartOrder {
    /// The stream or call that publishes.
    pub owner: u64,
    pub request: EntryRequest,
    pub part: u32,
    pub last: bool,
    pub bytes: u64,
    pub asked: Level,
    /// The epoch in which the entry's first part was published; ignored for the first part.
    pub epoch: u64,
}

/// Why a part may not be published as things are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotNow {
    /// The lane has moved since the entry was admitted: ask again.
    AskAgain,
    /// The entry was voided, or another stream of this writer took it over.
    Displaced,
}

/// What a delivery report is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Published {
    pub seq: u64,
    pub publication: u64,
    pub bytes: u64,
    pub last: bool,
    /// What the persister had folded before the part was published: the log that it folded can't put it lower.
    pub folded_before: i64,
}

#[derive(Debug, Clone, Copy)]
struct OpenEntry {
    owner: u64,
    seq: u64,
    publication: u64,
    next_part: u32,
    bytes: u64,
}

/// What this relay remembers of one lifetime.
#[derive(Debug)]
pub(crate) struct LaneState {
    generation: u64,
    limits: LaneLimits,
    facts: Option<Facts>,
    /// When another run of the store's server was noticed last: what was read before may lack binds.
    pub server_changed_at: Option<Instant>,
    bind_watch: BindWatch,
    published: u64,
    nonce: Option<WriterNonce>,
    queue: AckQueue,
    open: Option<OpenEntry>,
    in_flight_bytes: u64,
    next_publication: u64,
    log_acks: u64,
    progress: LaneProgress,
    /// The partition's end as of the first try of this writer's entry: it stays over retries.
    pub barrier_target: Option<(WriterNonce, u64, i64)>,
    /// The session's last state that answered a repeat. What it says of complete entries stays true.
    pub remembered: Option<Arc<SessionState>>,
    pub last_used: Instant,
}

impl LaneState {
    pub(crate) fn new(generation: u64, limits: LaneLimits) -> Self {
        Self {
            generation,
            limits,
            facts: None,
            server_changed_at: None,
            bind_watch: BindWatch::default(),
            published: 0,
            nonce: None,
            queue: AckQueue::default(),
            open: None,
            in_flight_bytes: 0,
            next_publication: 1,
            log_acks: 0,
            progress: LaneProgress::default(),
            barrier_target: None,
            remembered: None,
            last_used: Instant::now(),
        }
    }

    /// Decides on an entry. An admitted one makes its writer the lane's.
    pub(crate) fn admit(&mut self, request: EntryRequest, certainty: Certainty) -> Decision {
        self.last_used = Instant::now();
        let view = LaneView {
            published: self.published,
            nonce: self.nonce,
            unacknowledged: !self.is_idle(),
        };
        let decision = decide(view, self.standing(), request, certainty);
        if let Decision::Admit { published } = decision {
            self.claim(request.nonce, published);
            // Repeats come in a row, when a writer comes back; their answers are not kept beyond it.
            self.remembered = None;
            // A later repeat of this entry must wait for what is published from here on.
            let of_this_entry =
                |target: &(WriterNonce, u64, i64)| (target.0, target.1) == (request.nonce, request.seq);
            self.barrier_target = self.barrier_target.filter(|target| !of_this_entry(target));
        }
        decision
    }

    /// Checks that a part may be published now, under the same lock as the publish. Returns its publication.
    pub(crate) fn begin_part(&mut self, order: &PartOrder) -> Result<u64, NotNow> {
        if order.part > 0 {
            let same_entry = self.open.filter(|open| {
                (open.owner, open.seq, open.next_part) == (order.owner, order.request.seq, order.part)
            });
            return match same_entry {
                Some(open) if self.progress.epoch == order.epoch => Ok(open.publication),
                _ => Err(NotNow::Displaced),
            };
        }
        if !matches!(
            self.admit(order.request, Certainty::Cached),
            Decision::Admit { .. }
        ) {
            return Err(NotNow::AskAgain);
        }
        let publication = self.next_publication;
        self.next_publication += 1;
        let (owner, seq) = (order.owner, order.request.seq);
        self.open = Some(OpenEntry {
            owner,
            seq,
            publication,
            next_part: 0,
            bytes: 0,
        });
        Ok(publication)
    }

    /// Takes note that the part is on its way to the log.
    pub(crate) fn part_published(&mut self, order: &PartOrder) {
        let Some(open) = &mut self.open else {
            return;
        };
        open.next_part += 1;
        open.bytes += order.bytes;
        self.in_flight_bytes += order.bytes;
        if order.last {
            let open = *open;
            self.queue
                .push(open.seq, open.publication, order.asked, open.bytes);
            metrics::unacked_entries(1);
            self.published = open.seq;
            self.open = None;
            // This publication is not the one that was denied.
            self.progress.fences_stale_at = self.progress.fences_stale_at.min(open.seq - 1);
        }
        self.touch();
    }

    /// Forgets the unfinished entry of a stream or call that went away.
    pub(crate) fn abandon(&mut self, owner: u64) {
        if self.open.is_some_and(|open| open.owner == owner) {
            self.open = None;
            self.touch();
        }
    }

    /// Takes the delivery report of a part; `None`: it failed, or nobody knows.
    pub(crate) fn delivered(&mut self, part: Published, offset: Option<i64>, now: Instant) {
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(part.bytes);
        self.touch();
        let queued_as = self.queue.asked(part.seq, part.publication);
        let Some(offset) = offset.filter(|offset| is_in_the_folded_log(*offset, part.folded_before)) else {
            let is_open = self.open.is_some_and(|open| open.publication == part.publication);
            if queued_as.is_some() || is_open {
                self.void_from(part.seq);
            }
            return;
        };
        let (true, Some(asked)) = (part.last, queued_as) else {
            return;
        };
        let decision = self.ack_decision(asked, now);
        if decision == AckDecision::FencesStale {
            self.progress.fences_stale_at = part.seq;
        }
        self.queue.delivered(part.seq, part.publication, offset, decision);
        self.settle();
    }

    /// The producer refused a part of the entry.
    pub(crate) fn publish_failed(&mut self, seq: u64) {
        self.void_from(seq);
    }

    /// Takes a read of the store. Returns the binding generation for which the partition's end is wanted, if any.
    pub(crate) fn observe(&mut self, facts: Facts) -> Option<u64> {
        if self
            .facts
            .as_ref()
            .is_some_and(|known| known.read_at > facts.read_at)
        {
            return None;
        }
        let end_wanted = self
            .bind_watch
            .observe(self.generation, &facts, self.limits.bind_message_timeout);
        self.facts = Some(facts);
        self.settle();
        end_wanted.then(|| self.bind_watch.generation())
    }

    /// Takes the partition's end that [`LaneState::observe`] wanted.
    pub(crate) fn partition_end(&mut self, generation: u64, end: i64) {
        self.bind_watch.partition_end(generation, end);
    }

    /// The store lacks what was published above `applied`: the cache becomes what is applied.
    pub(crate) fn reset_to(&mut self, applied: u64) {
        if self.published > applied || self.progress.acked > applied {
            self.void_from(applied + 1);
            self.published = applied;
            self.progress.acked = self.progress.acked.min(applied);
        }
    }

    /// Whether a part has room in the lifetime's window. A single larger entry is taken, its parts bounded by what is
    /// on its way to the log.
    pub(crate) fn has_room(&self, first_part: bool, bytes: u64) -> bool {
        if first_part && self.queue.len() >= REMEMBERED_ENTRIES {
            return false;
        }
        let limit = self.limits.max_unacked_bytes;
        let unacked = self.queue.bytes() + self.open.map_or(0, |open| open.bytes);
        if unacked + bytes <= limit {
            return true;
        }
        self.queue.is_empty() && (self.in_flight_bytes == 0 || self.in_flight_bytes + bytes <= limit)
    }

    pub(crate) fn is_publishing(&self, seq: u64) -> bool {
        self.queue.is_publishing(seq)
    }

    /// The oldest unacknowledged entry, if it waits for the hot tail.
    pub(crate) fn needs_store(&self) -> Option<u64> {
        self.queue.needs_store()
    }

    pub(crate) fn unacked_entries(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing would be lost with this state.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.open.is_none() && self.in_flight_bytes == 0
    }

    pub(crate) fn standing(&self) -> Option<&Standing> {
        self.facts.as_ref().and_then(|facts| facts.standing.as_ref())
    }

    /// When the store was last read; `None`: never.
    pub(crate) fn read_at(&self) -> Option<Instant> {
        self.facts.as_ref().map(|facts| facts.read_at)
    }

    /// How far the persister was when the store was last read.
    pub(crate) fn folded(&self) -> i64 {
        self.facts.as_ref().map_or(0, |facts| facts.next_offset)
    }

    pub(crate) fn progress(&self) -> LaneProgress {
        self.progress
    }

    fn ack_decision(&self, asked: Level, now: Instant) -> AckDecision {
        let standing = self.standing();
        let read_at = self.read_at();
        let view = AckView {
            standing,
            fence_age: read_at.map_or(Duration::MAX, |read_at| now.saturating_duration_since(read_at)),
            max_fence_age: self.limits.max_fence_age,
            generation: self.generation,
            nonce: self.nonce,
            // Of what the store lacks, a bind is on its way again.
            bind_on_its_way: self
                .facts
                .as_ref()
                .is_some_and(|facts| self.may_lack_binds(facts))
                || standing
                    .is_some_and(|standing| self.bind_watch.holds_back_log_acks(self.generation, standing)),
        };
        decide_ack(asked, view)
    }

    fn may_lack_binds(&self, facts: &Facts) -> bool {
        facts.may_lack_binds
            || self
                .server_changed_at
                .is_some_and(|changed_at| facts.read_at <= changed_at)
    }

    fn claim(&mut self, nonce: WriterNonce, published: u64) {
        let other_writer = self.nonce.is_some_and(|held| held != nonce);
        self.nonce = Some(nonce);
        if other_writer {
            // Its streams must not take the newcomer's acks for their own.
            self.void_from(published + 1);
            self.published = published;
            self.progress.acked = self.progress.acked.min(published);
            self.log_acks = 0;
        }
        self.published = self.published.max(published);
        self.progress.ended_by = None;
    }

    fn void_from(&mut self, seq: u64) {
        let voided = self.queue.void_from(seq);
        metrics::unacked_entries(-(voided as i64));
        metrics::voided_publishes(voided as u64);
        self.open = self.open.filter(|open| open.seq < seq);
        if self.published >= seq {
            let applied = self.applied().map_or(0, |applied| applied.seq);
            self.published = applied.max(seq.saturating_sub(1));
        }
        self.progress.acked_when_voided = self.progress.acked;
        self.progress.voided_from = seq;
        self.progress.epoch += 1;
        self.touch();
    }

    /// Acknowledges what may be, and refuses what never will be.
    fn settle(&mut self) {
        let terminal = self
            .standing()
            .and_then(|standing| standing.terminal(self.generation, self.nonce));
        let applied = self.applied();
        let settled = self.queue.settle(applied);
        metrics::acks(settled.log_acks, settled.store_acks);
        metrics::unacked_entries(-((settled.log_acks + settled.store_acks) as i64));
        self.log_acks += settled.log_acks;
        if let Some(acked) = settled.acked {
            self.progress.acked = acked;
        }
        if let Some(store_acked) = settled.store_acked {
            self.progress.store_acked = store_acked;
        }
        match (terminal, settled.dropped_by_fold) {
            (Some(terminal), _) => self.end_by(terminal, applied),
            (None, Some(seq)) => {
                metrics::dropped_by_fold();
                self.void_from(seq);
            }
            (None, None) => {}
        }
        self.touch();
    }

    fn end_by(&mut self, terminal: Terminal, applied: Option<Applied>) {
        let survives = applied.map_or(0, |applied| applied.seq);
        if self.progress.ended_by.is_none() {
            let unseen = self.progress.acked.saturating_sub(survives).min(self.log_acks);
            metrics::log_acks_in_fence_window(unseen);
        }
        let refused = self.queue.void_from(survives + 1);
        metrics::unacked_entries(-(refused as i64));
        self.open = None;
        self.progress.ended_by = Some((terminal, survives));
    }

    /// What the hot tail has of the lane's writer. `None` where it has nothing that an ack could stand on.
    fn applied(&self) -> Option<Applied> {
        let facts = self.facts.as_ref()?;
        let standing = facts.standing.as_ref()?;
        let seq = match standing.terminal(self.generation, self.nonce) {
            None | Some(Terminal::Superseded { .. }) if standing.nonce.is_none() => 0,
            None => standing.applied_seq,
            Some(Terminal::Superseded { .. }) if standing.nonce == self.nonce => standing.applied_seq,
            Some(_) => return None,
        };
        Some(Applied {
            seq,
            next_offset: facts.next_offset,
        })
    }

    fn touch(&mut self) {
        self.progress.revision += 1;
    }
}

/// False: this is another log than the one that is folded, a topic that was made again. Nothing folds what it takes, so nothing
/// of it is acknowledged (acked-is-durable).
fn is_in_the_folded_log(offset: i64, folded_before: i64) -> bool {
    if offset >= folded_before {
        return true;
    }
    metrics::log_replaced();
    tracing::error!(
        offset,
        folded_before,
        "the log put a record below what was folded: it was replaced, nothing that it takes is acknowledged"
    );
    false
}
