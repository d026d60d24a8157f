//! What happens when a partition comes and goes. Called inside the rebalance callback, so everything here is bounded.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use wakelog_store::Claim;
use wakelog_stream::{PartitionOwner, Watermarks};

use crate::Error;
use crate::assignments::{Assignment, Assignments, Lease};
use crate::shared::Shared;
use crate::start::{StartDecision, start_decision};
use crate::telemetry;

/// Takes and gives back the partitions of one membership.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) assignments: Arc<Assignments>,
    /// Cancelled when the service dies here. Tests only.
    pub(crate) died: CancellationToken,
}

impl PartitionOwner for Owner {
    fn assigned(
        &self,
        partition: i32,
    ) -> BoxFuture<'static, Result<i64, Box<dyn std::error::Error + Send + Sync>>> {
        let owner = self.clone();
        async move {
            let claimed = owner.claim(partition).await;
            if let Err(Error::Failpoint) = claimed {
                owner.died.cancel();
            }
            // The consumer leaves the group on an error, and joins again.
            Ok(claimed?)
        }
        .boxed()
    }

    fn revoked(&self, partition: i32, lost: bool) -> BoxFuture<'static, ()> {
        let owner = self.clone();
        async move {
            let leases = owner.assignments.release(partition);
            owner.shared.status.remove_partition(partition);
            telemetry::lag(partition, 0);
            // A lost partition has another owner already, whose claim fences what is in flight here.
            if !lost && !all_ended(&leases, owner.shared.options.revoke_wait).await {
                tracing::warn!(
                    partition,
                    "gave a partition back with a batch in flight, the next claim fences it"
                );
            }
            tracing::info!(partition, lost, "partition given back");
        }
        .boxed()
    }
}

impl Owner {
    async fn claim(&self, partition: i32) -> Result<i64, Error> {
        let claim = self
            .shared
            .store
            .claim_partition(self.shared.topic(), partition)
            .await?;
        fail::fail_point!("persister::after_claim", |_| Err(Error::Failpoint));
        let watermarks = self.shared.reader.watermarks(partition).await?;
        let start = self.decide(partition, &claim, &watermarks);
        let offset = match &start {
            StartDecision::Start { offset, .. } | StartDecision::AwaitEnd { offset, .. } => *offset,
            // Where nothing has to be read in order to be dropped.
            StartDecision::Stop(_) => watermarks.high,
        };
        let (epoch, next_offset) = (claim.epoch, claim.next_offset);
        tracing::info!(
            partition,
            epoch,
            next_offset,
            start_offset = offset,
            "partition claimed"
        );
        self.assignments.claimed(
            partition,
            Assignment {
                claim,
                start,
                lease: Lease::default(),
            },
        );
        Ok(offset)
    }

    fn decide(&self, partition: i32, claim: &Claim, watermarks: &Watermarks) -> StartDecision {
        let start = start_decision(claim, watermarks);
        if matches!(start, StartDecision::Stop(_)) {
            return start;
        }
        match self.shared.unreadable.stopped_at(partition, claim.next_offset) {
            Some(reason) => StartDecision::Stop(reason),
            None => start,
        }
    }
}

/// Waits until all workers have ended, but not longer than the bound.
pub(crate) async fn all_ended(leases: &[Lease], bound: Duration) -> bool {
    let ended = futures::future::join_all(leases.iter().map(|lease| lease.ended.cancelled()));
    tokio::time::timeout(bound, ended).await.is_ok()
}
