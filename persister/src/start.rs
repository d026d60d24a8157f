//! Where a claimed partition starts, or why it may not. Pure.
//!
//! | what the store says | what the log says | decision |
//! |---|---|---|
//! | nothing folded yet | starts at 0 | start at 0 |
//! | nothing folded yet | starts above 0 | hole: the head is gone and only the archive has it |
//! | folded below `next_offset` | still has the record before it | start at that record and check that it is the same one |
//! | folded below `next_offset` | starts exactly there | start there: retention ate what was folded already, or the archive had it |
//! | folded below `next_offset` | starts above it | hole: retention ate what was never folded |
//! | folded below `next_offset` | ends below it | wait for the end to come back, then stop |

use wakelog_store::Claim;
use wakelog_stream::Watermarks;

use crate::status::StopReason;

/// The record before the claim's next offset, which must still be the one that was folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordCheck {
    pub(crate) offset: i64,
    pub(crate) crc: u32,
}

/// What to do with a partition that was just claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StartDecision {
    /// Read from `offset` on; the first record is the check record if there is one.
    Start { offset: i64, check: Option<RecordCheck> },
    /// The log ends below the claim: an unclean leader may come back with the rest, a recreated topic never will.
    AwaitEnd { offset: i64, check: Option<RecordCheck> },
    /// Fold nothing.
    Stop(StopReason),
}

/// Decides where a claimed partition starts.
pub(crate) fn start_decision(claim: &Claim, watermarks: &Watermarks) -> StartDecision {
    let (next_offset, low, high) = (claim.next_offset, watermarks.low, watermarks.high);
    if next_offset < low {
        return StartDecision::Stop(StopReason::RetentionHole { next_offset, low });
    }
    if next_offset == 0 {
        return StartDecision::Start {
            offset: 0,
            check: None,
        };
    }
    if next_offset == low {
        return StartDecision::Start {
            offset: next_offset,
            check: None,
        };
    }
    let Some(crc) = claim.last_record_crc else {
        return StartDecision::Stop(StopReason::Bug {
            detail: format!("progress is at {next_offset} but holds no checksum of the record before it"),
        });
    };
    let check = Some(RecordCheck {
        offset: next_offset - 1,
        crc,
    });
    if next_offset > high {
        return StartDecision::AwaitEnd { offset: high, check };
    }
    StartDecision::Start {
        offset: next_offset - 1,
        check,
    }
}

/// Whether a log that was missing its end has grown back.
pub(crate) fn end_is_back(next_offset: i64, watermarks: &Watermarks) -> bool {
    watermarks.high >= next_offset
}

#[cfg(test)]
mod tests;
