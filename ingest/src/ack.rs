//! What is published and not acknowledged, in order, and what may be acknowledged. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use wakelog_model::WriterNonce;

use crate::facts::Standing;

#[cfg(test)]
mod tests;

/// What an acknowledgement stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// The replicated log has the entry.
    Log,
    /// The hot tail has it.
    Store,
}

/// What the delivery report of an entry's last part means for its ack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckDecision {
    /// The log is enough.
    Log,
    /// It waits for the hot tail.
    Store,
    /// It waits for the hot tail, and whoever asked for `LOG` gets no ack: a bind or a second writer could have come
    /// unseen for too long.
    FencesStale,
}

/// What the decision is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckView<'a> {
    pub standing: Option<&'a Standing>,
    pub fence_age: Duration,
    pub max_fence_age: Duration,
    pub generation: u64,
    pub nonce: Option<WriterNonce>,
    /// A bind of a later generation may be on its way.
    pub bind_on_its_way: bool,
}

/// Decides at the delivery report. What a fence already forbids waits for the hot tail, which says so.
pub(crate) fn decide_ack(asked: Level, view: AckView<'_>) -> AckDecision {
    if asked == Level::Store {
        return AckDecision::Store;
    }
    if view.fence_age > view.max_fence_age {
        return AckDecision::FencesStale;
    }
    match view.standing {
        Some(standing)
            if standing.terminal(view.generation, view.nonce).is_none() && !view.bind_on_its_way =>
        {
            AckDecision::Log
        }
        _ => AckDecision::Store,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Publishing,
    AckableByLog,
    NeedsStore { offset: i64 },
}

#[derive(Debug)]
struct Unacked {
    seq: u64,
    publication: u64,
    asked: Level,
    bytes: u64,
    phase: Phase,
}

/// What the store has, for the writer that publishes here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Applied {
    pub seq: u64,
    /// Everything below this offset is in `seq`.
    pub next_offset: i64,
}

/// What a look at the queue's front brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The last entry that is now acknowledged.
    pub acked: Option<u64>,
    /// The last one whose ack stands on the hot tail.
    pub store_acked: Option<u64>,
    pub log_acks: u64,
    pub store_acks: u64,
    /// This entry was delivered and the persister has passed it, but the hot tail does not have it: the fold dropped it.
    pub dropped_by_fold: Option<u64>,
}

/// Published complete entries that are not acknowledged, oldest first.
#[derive(Debug, Default)]
pub(crate) struct AckQueue {
    entries: VecDeque<Unacked>,
    bytes: u64,
}

impl AckQueue {
    pub(crate) fn push(&mut self, seq: u64, publication: u64, asked: Level, bytes: u64) {
        debug_assert!(self.entries.back().is_none_or(|last| last.seq < seq));
        self.entries.push_back(Unacked {
            seq,
            publication,
            asked,
            bytes,
            phase: Phase::Publishing,
        });
        self.bytes += bytes;
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Plain bytes of the queued entries.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the entry's writer asked for; `None` if this publication is not queued (any more).
    pub(crate) fn asked(&self, seq: u64, publication: u64) -> Option<Level> {
        self.find(seq, publication).map(|index| self.entries[index].asked)
    }

    /// Whether the entry was published here and its delivery report is still out.
    pub(crate) fn is_publishing(&self, seq: u64) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.seq == seq && entry.phase == Phase::Publishing)
    }

    /// Takes the delivery report of an entry's last part.
    pub(crate) fn delivered(&mut self, seq: u64, publication: u64, offset: i64, decision: AckDecision) {
        if let Some(index) = self.find(seq, publication) {
            self.entries[index].phase = match decision {
                AckDecision::Log => Phase::AckableByLog,
                AckDecision::Store | AckDecision::FencesStale => Phase::NeedsStore { offset },
            };
        }
    }

    /// The oldest entry, if it waits for the hot tail.
    pub(crate) fn needs_store(&self) -> Option<u64> {
        let front = self.entries.front()?;
        matches!(front.phase, Phase::NeedsStore { .. }).then_some(front.seq)
    }

    /// Takes from the front whatever may be acknowledged: never an entry before the one below it.
    pub(crate) fn settle(&mut self, applied: Option<Applied>) -> Settled {
        let mut settled = Settled::default();
        while let Some(front) = self.entries.front() {
            let seq = front.seq;
            match (front.phase, applied) {
                (Phase::AckableByLog, _) => settled.log_acks += 1,
                (Phase::NeedsStore { offset }, Some(applied)) if applied.next_offset > offset => {
                    if applied.seq < seq {
                        settled.dropped_by_fold = Some(seq);
                        break;
                    }
                    settled.store_acks += 1;
                    settled.store_acked = Some(seq);
                }
                _ => break,
            }
            settled.acked = Some(seq);
            self.bytes -= front.bytes;
            self.entries.pop_front();
        }
        settled
    }

    /// Forgets every entry from `seq` on. Returns how many there were.
    pub(crate) fn void_from(&mut self, seq: u64) -> usize {
        let kept = self.entries.partition_point(|entry| entry.seq < seq);
        let voided = self
            .entries
            .drain(kept..)
            .map(|entry| entry.bytes)
            .collect::<Vec<_>>();
        self.bytes -= voided.iter().sum::<u64>();
        voided.len()
    }

    fn find(&self, seq: u64, publication: u64) -> Option<usize> {
        let index = self.entries.binary_search_by_key(&seq, |entry| entry.seq).ok()?;
        (self.entries[index].publication == publication).then_some(index)
    }
}
