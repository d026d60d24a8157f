//! The half of a stream that sends acks.

use std::sync::atomic::Ordering;

use tokio::time::{Instant, sleep_until};
use tonic::Status;
use wakelog_proto::v1::commit_conversation_parts_response::Message;
use wakelog_proto::v1::{AckLevel, EntriesAcked};

use super::{Marks, PartsStream, Sender, send};
use crate::ack::Level;
use crate::lane::{AckOutcome, AckRefusal, LaneProgress};
use crate::refusals;

#[cfg(test)]
mod tests;

/// What the stream has to say now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Say {
    /// Every entry up to this one is acknowledged.
    pub acked: u64,
    pub level: Level,
    /// The stream ends with this once the ack is sent.
    pub refused: Option<AckRefusal>,
}

/// Decides what to say. Pure. A stream only speaks of what it published itself and of repeats that it had confirmed.
pub(super) fn say(lane: &LaneProgress, marks: &Marks, asked: Level) -> Say {
    let acked_in_epoch = match lane.epoch.checked_sub(marks.epoch) {
        Some(0) => lane.acked,
        Some(1) => lane.acked_when_voided,
        _ => 0,
    };
    let acked = acked_in_epoch.min(marks.published).max(marks.confirmed);
    let level = match marks.confirmed >= acked {
        true => Level::Store,
        false => lane.level_of(acked, asked),
    };
    let outcome = match marks.published > acked {
        true => lane.outcome(marks.published, marks.epoch, asked),
        false => AckOutcome::Pending,
    };
    let refused = match outcome {
        AckOutcome::Refused(AckRefusal::Terminal(terminal)) => {
            // What survived is acknowledged first.
            let survives = lane.ended_by.map_or(0, |(_, survives)| survives);
            (acked >= survives.min(marks.published)).then_some(AckRefusal::Terminal(terminal))
        }
        AckOutcome::Refused(AckRefusal::Voided { expected }) => Some(AckRefusal::Voided {
            expected: expected.max(acked + 1),
        }),
        AckOutcome::Refused(refusal) => Some(refusal),
        AckOutcome::Pending | AckOutcome::Acked(_) => None,
    };
    Say {
        acked,
        level,
        refused,
    }
}

impl PartsStream {
    /// Sends acks until everything is acknowledged and nothing more comes, or until something is refused.
    pub(super) async fn send_acks(&self, responses: &Sender) -> Result<(), Status> {
        let mut lane = self.lane.subscribe();
        let mut marks = self.marks.subscribe();
        let mut sent = 0;
        let mut waiting_since = Instant::now();
        loop {
            let marks_now = *marks.borrow_and_update();
            let lane_now = *lane.borrow_and_update();
            let say = say(&lane_now, &marks_now, self.asked);
            if say.acked > sent {
                let level = match say.level {
                    Level::Log => AckLevel::Log,
                    Level::Store => AckLevel::Store,
                };
                let acked = EntriesAcked {
                    entry_seq: say.acked,
                    ack_level: level.into(),
                };
                if !send(responses, Message::Acked(acked)).await {
                    return Ok(());
                }
                sent = say.acked;
                self.acked.store(sent, Ordering::Release);
                waiting_since = Instant::now();
            }
            let outstanding = marks_now.published > sent;
            if let Some(refusal) = say.refused.filter(|_| outstanding) {
                return Err(refusals::ack(refusal));
            }
            if marks_now.done && !outstanding {
                return Ok(());
            }
            if !outstanding {
                waiting_since = Instant::now();
            }
            tokio::select! {
                // Neither sender goes away before this stream does.
                _ = lane.changed() => {}
                _ = marks.changed() => {}
                () = sleep_until(waiting_since + self.ingest.options.ack_wait), if outstanding => {
                    return Err(refusals::unavailable("entries were published, their acks did not come in time"));
                }
            }
        }
    }
}
