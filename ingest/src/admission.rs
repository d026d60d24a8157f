//! Whether an entry may be published. Pure: what the lane and the store say goes in, a decision comes out.
//!
//! The cache of a lifetime only ever admits. A refusal is decided from what the store says, and only from what nothing
//! later can take back, or from a read after the barrier.

use wakelog_model::WriterNonce;
use wakelog_proto::v1::LifetimeStatus;

use crate::facts::{Standing, Terminal};

#[cfg(test)]
mod tests;

/// What this relay knows of a lifetime by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneView {
    /// The last complete entry that was published here.
    pub published: u64,
    /// The writer that publishes here.
    pub nonce: Option<WriterNonce>,
    /// Whether anything that was published here is not acknowledged yet.
    pub unacknowledged: bool,
}

/// The entry that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryRequest {
    pub generation: u64,
    pub nonce: WriterNonce,
    pub seq: u64,
}

/// How much the standing is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// Read some time ago: the log may hold more.
    Cached,
    /// Read after the persister had passed the partition's end as of the first try.
    AfterBarrier,
}

/// What to do with the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Publish it. The lane's last published entry becomes `published`, its writer the one that asks.
    Admit { published: u64 },
    /// It was published or applied before: answer from the store.
    Repeat,
    /// Only the store after the barrier can tell.
    AskStore,
    /// Not now: another writer's entries are on their way.
    TryLater,
    /// No.
    Refuse(Refusal),
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// This writer gets no further in this lifetime.
    Terminal(Terminal),
    /// The lifetime takes no new entries.
    Ended,
    /// The entry is ahead.
    Gap { expected: u64 },
}

/// Decides on one entry.
pub(crate) fn decide(
    lane: LaneView,
    standing: Option<&Standing>,
    request: EntryRequest,
    certainty: Certainty,
) -> Decision {
    let ask = |answer_after_barrier| match certainty {
        Certainty::Cached => Decision::AskStore,
        Certainty::AfterBarrier => answer_after_barrier,
    };
    let Some(standing) = standing else {
        return ask(Decision::Refuse(Refusal::Terminal(Terminal::NotFound)));
    };
    if let Some(terminal) = standing.terminal(request.generation, Some(request.nonce)) {
        return Decision::Refuse(Refusal::Terminal(terminal));
    }
    if standing.session_generation < request.generation {
        // The store is behind the token: a bind that it has not applied yet.
        return ask(Decision::TryLater);
    }

    let other_writer_publishes_here = lane.nonce.is_some_and(|nonce| nonce != request.nonce);
    let published = if !other_writer_publishes_here {
        lane.published.max(standing.applied_seq)
    } else if standing.nonce == Some(request.nonce) {
        // The store chose this writer, so nothing of the other one counts.
        standing.applied_seq
    } else if certainty == Certainty::Cached {
        return Decision::AskStore;
    } else if lane.unacknowledged {
        return Decision::TryLater;
    } else {
        standing.applied_seq
    };

    if request.seq <= published {
        return Decision::Repeat;
    }
    if standing.status == LifetimeStatus::Ended {
        return Decision::Refuse(Refusal::Ended);
    }
    if request.seq == published + 1 {
        return Decision::Admit { published };
    }
    ask(Decision::Refuse(Refusal::Gap {
        expected: standing.applied_seq + 1,
    }))
}
