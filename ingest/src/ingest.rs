//! What all calls share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use wakelog_contract::TokenSigner;
use wakelog_store::Store;
use wakelog_stream::{LogReader, Producer};

use crate::board::Board;
use crate::budget;
use crate::lane::LaneLimits;
use crate::lanes::Lanes;
use crate::{Options, metrics, refusals};

/// What all calls share.
pub(crate) struct Ingest {
    pub options: Options,
    pub store: Store,
    pub producer: Producer,
    pub reader: LogReader,
    pub signer: TokenSigner,
    pub lanes: Lanes,
    pub board: Arc<Board>,
    /// Plain bytes over all lifetimes that may be on their way to the log.
    pub budget: Arc<Semaphore>,
    /// New calls are refused, open streams end once what they sent is acknowledged.
    pub draining: CancellationToken,
    /// Streams end at once.
    pub closing: CancellationToken,
    open_calls: AtomicUsize,
    next_owner: AtomicU64,
}

/// A call that a shutdown waits for.
pub(crate) struct OpenCall {
    ingest: Arc<Ingest>,
    /// Tells this call's unfinished entry from that of others.
    pub owner: u64,
}

impl Ingest {
    pub(crate) fn new(
        options: Options,
        store: Store,
        producer: Producer,
        reader: LogReader,
        signer: TokenSigner,
    ) -> Self {
        let board = Arc::new(Board::default());
        let limits = LaneLimits {
            max_unacked_bytes: options.max_unacked_bytes,
            max_fence_age: options.max_fence_age,
            bind_message_timeout: options.bind_message_timeout,
        };
        Self {
            lanes: Lanes::new(options.max_lanes, options.lane_idle, limits, Arc::clone(&board)),
            budget: Arc::new(Semaphore::new(budget::units(options.max_in_flight_bytes) as usize)),
            options,
            store,
            producer,
            reader,
            signer,
            board,
            draining: CancellationToken::new(),
            closing: CancellationToken::new(),
            open_calls: AtomicUsize::new(0),
            next_owner: AtomicU64::new(1),
        }
    }

    /// Opens a call, unless the service is shutting down.
    pub(crate) fn open_call(self: &Arc<Self>) -> Result<OpenCall, Status> {
        // Counted before the check: a drain that starts in between waits for this call.
        self.open_calls.fetch_add(1, Ordering::SeqCst);
        metrics::open_calls(1.0);
        let call = OpenCall {
            ingest: Arc::clone(self),
            owner: self.next_owner.fetch_add(1, Ordering::Relaxed),
        };
        match self.draining.is_cancelled() {
            true => Err(refusals::shutting_down()),
            false => Ok(call),
        }
    }

    pub(crate) fn open_calls(&self) -> usize {
        self.open_calls.load(Ordering::SeqCst)
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.ingest.open_calls.fetch_sub(1, Ordering::SeqCst);
        metrics::open_calls(-1.0);
    }
}
