//! What to do about a bind, given what is known. Pure.
//!
//! A bind is decided twice: before it publishes ([`decide`]), from a lookup made after the persister has passed the
//! partition's end, and after it published ([`verdict`]), from the applied state.

use wakelog_proto::v1::LifetimeStatus;

/// A lifetime as the hot tail has it, together with the generation that was current in the same read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// The lifetime's generation.
    pub(crate) generation: u64,
    /// The session's current generation.
    pub(crate) current_generation: u64,
    /// The lifetime's status.
    pub(crate) status: LifetimeStatus,
}

/// The session as of the lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionNow {
    /// The current generation; 0: none was ever bound.
    pub(crate) generation: u64,
    /// The last complete entry; 0: none.
    pub(crate) last_entry_seq: u64,
}

/// Which generation the caller may bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Over whatever is current: a resume, an explicit take-over.
    OverCurrent,
    /// The first generation of a new session.
    First,
    /// The one after the lifetime that the caller names, if that one is current.
    After {
        /// The named lifetime's generation; `None`: the session never had it.
        named: Option<u64>,
    },
}

/// What a caller may do with a lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is current and takes entries.
    Active,
    /// It is not current.
    Superseded {
        /// The current generation.
        current: u64,
    },
    /// It is current, its writer has ended it.
    Ended,
    /// It is current, it failed on conflicting entries.
    Failed,
}

/// Why a bind is refused. All of these are final for the request as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BindRefusal {
    /// Another lifetime is current.
    Superseded {
        /// The current generation.
        current: u64,
    },
    /// The request's lifetime has ended.
    Ended,
    /// The request's lifetime has failed.
    Failed,
    /// There is nothing to resume.
    Empty,
}

/// What to do before anything is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The request has bound already, and its lifetime is current.
    Reuse,
    /// Publish a bind of this generation.
    Bind {
        /// The generation.
        generation: u64,
    },
    /// Refuse; nothing is published.
    Refuse(BindRefusal),
}

/// What became of a published bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not applied yet, as far as this read tells.
    Open,
    /// It is current.
    Won,
    /// It won, and is of no use any more.
    Refuse(BindRefusal),
    /// Another bind has this generation.
    Lost {
        /// The current generation.
        current: u64,
    },
}

/// What a caller may do with `lifetime`. A superseded one is that whatever its status: the status of an earlier
/// generation is what it was when it was superseded.
pub(crate) fn standing(lifetime: &Known) -> Standing {
    if lifetime.generation != lifetime.current_generation {
        return Standing::Superseded {
            current: lifetime.current_generation,
        };
    }
    match lifetime.status {
        LifetimeStatus::Active => Standing::Active,
        LifetimeStatus::Ended => Standing::Ended,
        LifetimeStatus::Failed | LifetimeStatus::Unspecified => Standing::Failed,
    }
}

/// Decides before the publish. `found` is the lifetime that this very request (or this very writer) has bound.
pub(crate) fn decide(
    found: Option<&Known>,
    session: SessionNow,
    place: Place,
    needs_entries: bool,
) -> Decision {
    if let Some(lifetime) = found {
        return match refusal_of(standing(lifetime)) {
            None => Decision::Reuse,
            Some(refusal) => Decision::Refuse(refusal),
        };
    }
    if needs_entries && session.last_entry_seq == 0 {
        return Decision::Refuse(BindRefusal::Empty);
    }
    let current = session.generation;
    let may_bind = match place {
        Place::OverCurrent => true,
        Place::First => current == 0,
        // Whatever its status: one that ended or failed may be followed.
        Place::After { named } => named == Some(current),
    };
    if may_bind {
        Decision::Bind {
            generation: current.saturating_add(1),
        }
    } else {
        Decision::Refuse(BindRefusal::Superseded { current })
    }
}

/// Decides after the publish of a bind of `generation`. `applied` is the lifetime with the bind's own id.
pub(crate) fn verdict(applied: Option<&Known>, session_generation: u64, generation: u64) -> Verdict {
    if let Some(lifetime) = applied {
        return match refusal_of(standing(lifetime)) {
            None => Verdict::Won,
            Some(refusal) => Verdict::Refuse(refusal),
        };
    }
    if session_generation >= generation {
        return Verdict::Lost {
            current: session_generation,
        };
    }
    Verdict::Open
}

fn refusal_of(standing: Standing) -> Option<BindRefusal> {
    match standing {
        Standing::Active => None,
        Standing::Superseded { current } => Some(BindRefusal::Superseded { current }),
        Standing::Ended => Some(BindRefusal::Ended),
        Standing::Failed => Some(BindRefusal::Failed),
    }
}

#[cfg(test)]
mod tests;
