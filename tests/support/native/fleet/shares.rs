//! Who of a group looks after how many partitions.

use std::time::{Duration, Instant};

use super::{Kind, NativeStack, PARTITIONS};
use crate::support::PATIENCE;

impl NativeStack {
    /// How many partitions a member looks after.
    pub async fn share(&self, kind: Kind, number: usize) -> usize {
        let name = match kind {
            Kind::Persist => "wakelog_persister_owned_partitions",
            Kind::Archive => "wakelog_archiver_owned_partitions",
            Kind::Ingest | Kind::Reconstruct => unreachable!("they share nothing"),
        };
        self.metric(kind, number, name).await as usize
    }

    /// Waits until the two members of a kind look after half of the [`PARTITIONS`] each: from then on none moves, as long as both
    /// stay.
    pub async fn wait_until_shared(&self, kind: Kind) {
        let deadline = Instant::now() + PATIENCE;
        let half = PARTITIONS as usize / 2;
        while self.share(kind, 0).await != half || self.share(kind, 1).await != half {
            assert!(
                Instant::now() < deadline,
                "{kind:?}: they do not share\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
