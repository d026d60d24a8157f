//! What a session needs. Pure.

use wakelog_store::HotTail;

/// What is moved out of the hot tail next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Entries before the latest checkpoint: nobody resumes from them any more.
    Superseded {
        /// The last of them.
        last: u64,
    },
    /// The oldest deltas after the latest checkpoint, so that no more than this many bytes of them stay.
    Valve {
        /// Plain bytes that stay.
        keep_bytes: u64,
    },
}

/// What is due. Superseded entries first: a valve that is cut before them would cut what a checkpoint already superseded.
///
/// The valve has a hysteresis: it opens above the cap and closes at half of it, so that an agent that only appends costs an
/// object for each half of the cap, and not one for each entry.
pub(crate) fn due(tail: &HotTail, valve_bytes: u64) -> Option<Due> {
    if tail.erased {
        return None;
    }
    if tail.superseded_rows {
        return Some(Due::Superseded {
            last: tail.last_checkpoint_seq.saturating_sub(1),
        });
    }
    (tail.delta_bytes > valve_bytes).then_some(Due::Valve {
        keep_bytes: valve_bytes / 2,
    })
}

#[cfg(test)]
mod tests;
