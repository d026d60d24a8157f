//! The service: joins the group, and again whenever it had to leave.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use wakelog_store::Store;
use wakelog_stream::LogReader;

use crate::Error;
use crate::lag::measure_lag;
use crate::member::{Member, MembershipEnd};
use crate::options::Options;
use crate::pauses::Pauses;
use crate::shared::Shared;
use crate::status::{Membership, StatusHandle};
use crate::telemetry;
use crate::unreadable::UnreadablePartitions;

/// A membership that lasted so long was a good one: the next pause is the first again.
const GOOD_MEMBERSHIP: Duration = Duration::from_secs(60);

/// Folds the topic into the hot tail, exactly once.
pub struct Service {
    shared: Arc<Shared>,
}

impl Service {
    /// Sets the service up. Talks to nobody yet.
    pub fn new(options: Options, store: Store) -> Result<Self, Error> {
        options.check()?;
        let reader = LogReader::new(&options.stream)?;
        let (status, unreadable) = (StatusHandle::default(), UnreadablePartitions::default());
        let shared = Shared {
            options,
            store,
            reader,
            status,
            unreadable,
            store_went_back: Notify::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// What the service is doing, also while it runs.
    pub fn status(&self) -> StatusHandle {
        self.shared.status.clone()
    }

    /// Runs until `shutdown`, which finishes the batches in flight and leaves the group.
    ///
    /// Nothing that the store or the log does ends it: it leaves the group and joins again, with growing pauses. A
    /// partition that must not be folded stops alone, see [`StatusHandle`].
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        telemetry::begin();
        let outcome = tokio::select! {
            outcome = self.join_again_and_again(&shutdown) => outcome,
            never = measure_lag(&self.shared) => match never {},
        };
        self.shared.status.set_membership(Membership::Out);
        self.shared.status.clear_partitions();
        outcome
    }

    async fn join_again_and_again(&self, shutdown: &CancellationToken) -> Result<(), Error> {
        let options = &self.shared.options;
        let mut pauses = Pauses::new(options.first_pause, options.longest_pause);
        loop {
            let joined = Instant::now();
            let reason = match self.be_member(shutdown).await {
                MembershipEnd::Shutdown => return Ok(()),
                MembershipEnd::Died => return Err(Error::Failpoint),
                MembershipEnd::ConsumerEnded(reason) => reason,
            };
            if joined.elapsed() >= GOOD_MEMBERSHIP {
                pauses.reset();
            }
            let pause = pauses.next_pause();
            telemetry::rejoined();
            tracing::warn!(error = %reason, pause_ms = pause.as_millis() as u64, "left the consumer group, joining again");
            self.shared
                .status
                .set_membership(Membership::Rejoining { reason });
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn be_member(&self, shutdown: &CancellationToken) -> MembershipEnd {
        let mut member = match Member::join(&self.shared) {
            Ok(member) => member,
            Err(error) => return MembershipEnd::ConsumerEnded(crate::chain(&error)),
        };
        self.shared.status.set_membership(Membership::In);
        tracing::info!(topic = self.shared.topic(), "joining the consumer group");
        let end = member.supervise(shutdown).await;
        if end == MembershipEnd::Died {
            // As a death leaves it: nothing is drained, transactions and the consumer are dropped.
            drop(member);
            return end;
        }
        member.leave().await;
        end
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Service")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
