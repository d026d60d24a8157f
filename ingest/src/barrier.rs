//! The barrier: wait, bounded, until the persister has passed the partition's end as of the first try.

use tokio::time::Instant;
use tonic::Status;

use crate::admission::EntryRequest;
use crate::ingest::Ingest;
use crate::lane::{Lane, LaneState};
use crate::{metrics, refusals};

impl Ingest {
    /// Waits until whatever was in the log when this entry was first tried is in the hot tail, then reads the
    /// lifetime's standing. If the bound passes the answer is `UNAVAILABLE`, and a retry waits for the same offset.
    pub(crate) async fn pass_barrier(&self, lane: &Lane, request: EntryRequest) -> Result<(), Status> {
        let partition = lane.identity.partition;
        let key = (request.nonce, request.seq);
        let target = match lane.look(|state| state.barrier_target) {
            Some((nonce, seq, target)) if (nonce, seq) == key => target,
            _ => {
                let target = self.read_partition_end(partition).await?;
                lane.change(|state| state.barrier_target = Some((request.nonce, request.seq, target)));
                target
            }
        };
        let started = Instant::now();
        let passed = self
            .board
            .wait_for_offset(partition, target, self.options.barrier_wait)
            .await;
        metrics::barrier(passed, started.elapsed().as_secs_f64());
        if !passed {
            tracing::warn!(
                lifetime = %lane.identity.lifetime,
                partition,
                target,
                reached = self.board.next_offset(partition),
                "persister did not pass the partition's end in time"
            );
            return Err(refusals::unavailable(
                "the persister did not pass the partition's end in time",
            ));
        }
        self.read_standing(lane).await?;
        if lane.look(LaneState::folded) < target {
            // The store was away in between, and came back with less than it had.
            return Err(refusals::unavailable(
                "the store has lost what it had folded, it is folded again",
            ));
        }
        lane.change(|state| {
            state.barrier_target = state.barrier_target.filter(|kept| (kept.0, kept.1) != key)
        });
        Ok(())
    }
}
