//! What all calls share, and the smallest steps that they have in common.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::metadata::MetadataMap;
use wakelog_archive::ObjectStore;
use wakelog_contract::{CallerTokens, TokenSigner, bearer};
use wakelog_model::SessionId;
use wakelog_proto::v1::LifetimeStatus;
use wakelog_store::{LifetimeRow, SessionRow, Store};
use wakelog_stream::{LogReader, Producer};

use crate::barrier::ProgressView;
use crate::bind_decision::Known;
use crate::body::{PartReader, Range, Stored};
use crate::open::Counted;
use crate::sequence::Rule;
use crate::{Error, Options};

/// The service's dependencies and the state of its calls. One for the life of the service.
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) store: Store,
    /// Where entries are that have left the hot tail; `None`: this service knows no archive.
    pub(crate) objects: Option<ObjectStore>,
    pub(crate) producer: Producer,
    pub(crate) reader: LogReader,
    pub(crate) signer: TokenSigner,
    pub(crate) callers: CallerTokens,
    pub(crate) progress: ProgressView,
    pub(crate) partition_count: tokio::sync::Mutex<Option<Counted>>,
    pub(crate) calls: Arc<Semaphore>,
    pub(crate) bodies: Arc<Semaphore>,
    pub(crate) tails: Arc<Semaphore>,
    /// Every call.
    pub(crate) in_flight: TaskTracker,
    /// Set when a shutdown begins: no new calls, followers end.
    pub(crate) stopping: CancellationToken,
    /// Set when a shutdown's bound has passed: every wait ends.
    pub(crate) stopped: CancellationToken,
}

impl Core {
    /// The account that a call is made for.
    pub(crate) fn caller(&self, metadata: &MetadataMap) -> Result<String, Error> {
        let token = bearer(metadata).ok_or(Error::TokenMissing)?;
        self.callers
            .account_of(token)
            .map(str::to_owned)
            .ok_or(Error::TokenForged)
    }

    /// The parts of a range, wherever they are.
    pub(crate) fn parts(&self, range: Range, rule: Rule) -> PartReader {
        let stored = Stored {
            store: self.store.clone(),
            objects: self.objects.clone(),
        };
        PartReader::new(stored, range, rule, self.options.page_bytes)
    }

    /// The session, if the account may see it. Authorises: every call starts with this.
    pub(crate) async fn visible(&self, session: SessionId, account: &str) -> Result<SessionRow, Error> {
        self.store
            .visible_session(session, account)
            .await?
            .ok_or(Error::SessionNotFound)
    }
}

/// A lifetime's row as the decisions want it.
pub(crate) fn known(row: &LifetimeRow) -> Result<Known, Error> {
    let status = LifetimeStatus::try_from(row.status)
        .ok()
        .filter(|status| *status != LifetimeStatus::Unspecified)
        .ok_or_else(|| {
            Error::Corrupt(format!(
                "generation {} has the unknown status {}",
                row.generation, row.status
            ))
        })?;
    Ok(Known {
        generation: row.generation,
        current_generation: row.current_generation,
        status,
    })
}

/// Where the body as of this row starts: at the last checkpoint, else at entry 1.
pub(crate) fn body_start(row: &SessionRow) -> u64 {
    row.last_checkpoint_seq.max(1)
}
