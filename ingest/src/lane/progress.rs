//! What those who wait on a lifetime get to see, and what it means for one entry. Pure.

use crate::ack::Level;
use crate::facts::Terminal;

#[cfg(test)]
mod tests;

/// A lifetime's progress on this relay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LaneProgress {
    /// Every entry up to this one is acknowledged, each as its writer asked.
    pub acked: u64,
    /// Every entry up to this one is in the hot tail.
    pub store_acked: u64,
    /// Counts voids and changes of the writer. Whoever published in an earlier epoch gets no ack any more.
    pub epoch: u64,
    /// The entry from which on the last void forgot everything.
    pub voided_from: u64,
    /// What was acknowledged when the epoch ended.
    pub acked_when_voided: u64,
    /// The last entry that was denied a `LOG` ack because the fences were too old.
    pub fences_stale_at: u64,
    /// What ended this writer for good, and up to which entry acks may still come.
    pub ended_by: Option<(Terminal, u64)>,
    /// Changes whenever there may be more room.
    pub revision: u64,
}

/// How it stands with one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckOutcome {
    Pending,
    Acked(Level),
    Refused(AckRefusal),
}

/// Why a published entry gets no ack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckRefusal {
    /// A publish failed, or the fold dropped it: send again from `expected`.
    Voided { expected: u64 },
    /// This writer gets no further in this lifetime.
    Terminal(Terminal),
    /// The log has it, but the fences are too old to say `LOG`.
    FencesStale,
}

impl LaneProgress {
    /// How it stands with an entry that was published in `epoch`.
    pub(crate) fn outcome(&self, seq: u64, epoch: u64, asked: Level) -> AckOutcome {
        if self.epoch != epoch {
            let acked_before = self.epoch == epoch + 1 && self.acked_when_voided >= seq;
            return match acked_before {
                true => AckOutcome::Acked(self.level_of(seq, asked)),
                false => AckOutcome::Refused(AckRefusal::Voided {
                    expected: self.voided_from.min(seq),
                }),
            };
        }
        if self.acked >= seq {
            return AckOutcome::Acked(self.level_of(seq, asked));
        }
        if let Some((terminal, survives)) = self.ended_by
            && seq > survives
        {
            return AckOutcome::Refused(AckRefusal::Terminal(terminal));
        }
        if asked == Level::Log && self.fences_stale_at >= seq {
            return AckOutcome::Refused(AckRefusal::FencesStale);
        }
        AckOutcome::Pending
    }

    /// An entry that asked for the hot tail is never acknowledged with less.
    pub(crate) fn level_of(&self, seq: u64, asked: Level) -> Level {
        match self.store_acked >= seq {
            true => Level::Store,
            false => asked,
        }
    }
}
