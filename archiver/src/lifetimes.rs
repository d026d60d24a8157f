//! Which lifetime a generation is.

use std::collections::BTreeMap;
use std::sync::Arc;

use wakelog_model::{LifetimeId, SessionId};

use crate::Error;
use crate::shared::Shared;

/// Lifetimes that are read at a time.
const PAGE: u32 = 10_000;

/// The lifetimes of one session, by generation. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Lifetimes(Arc<BTreeMap<u64, LifetimeId>>);

impl Lifetimes {
    pub(crate) fn id(&self, generation: u64) -> Option<LifetimeId> {
        self.0.get(&generation).copied()
    }
}

impl Shared {
    pub(crate) async fn lifetimes(&self, session: SessionId) -> Result<Lifetimes, Error> {
        let rows = self.store.lifetimes(session, PAGE).await?;
        let ids = rows.into_iter().map(|row| (row.generation, row.lifetime_id));
        Ok(Lifetimes(Arc::new(ids.collect())))
    }
}
