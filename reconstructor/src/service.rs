//! The service's life: construction, admission of calls, shutdown.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::{Response, Status};
use tracing::Instrument as _;
use wakelog_archive::ObjectStore;
use wakelog_contract::{CallerTokens, TokenSigner};
use wakelog_proto::v1::sessions_service_server::SessionsServiceServer;
use wakelog_store::Store;
use wakelog_stream::{LogReader, Producer};

use crate::barrier::ProgressView;
use crate::core::Core;
use crate::outlet::{Outgoing, Outlet, outlet};
use crate::rpc::Sessions;
use crate::{Error, Options, metrics};

/// How long calls may take to notice that they are to end.
const LAST_GRACE: Duration = Duration::from_secs(2);

/// The sessions service. Stateless: any number of them may run, and each may die at any instruction.
#[derive(Clone)]
pub struct Service {
    core: Arc<Core>,
}

impl Service {
    /// Puts the service together. Nothing is contacted yet. Without `objects` a body whose entries have left the hot tail is
    /// refused.
    pub fn new(
        options: Options,
        store: Store,
        objects: Option<ObjectStore>,
        producer: Producer,
        reader: LogReader,
        signer: TokenSigner,
        callers: CallerTokens,
    ) -> Result<Self, Error> {
        options.check()?;
        let core = Core {
            calls: Arc::new(Semaphore::new(options.max_calls)),
            bodies: Arc::new(Semaphore::new(options.max_bodies)),
            tails: Arc::new(Semaphore::new(options.max_tails)),
            options,
            store,
            objects,
            producer,
            reader,
            signer,
            callers,
            progress: ProgressView::default(),
            partition_count: tokio::sync::Mutex::new(None),
            in_flight: TaskTracker::new(),
            stopping: CancellationToken::new(),
            stopped: CancellationToken::new(),
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// The gRPC service, to be put on a listener.
    pub fn sessions_server(&self) -> SessionsServiceServer<Sessions> {
        SessionsServiceServer::new(Sessions::new(Arc::clone(&self.core)))
    }

    /// Runs until `shutdown`, then takes no new calls, ends the tails, and waits for the others within the drain
    /// time-out. Keep the listener open until this returns, so that what is in flight can be answered.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        shutdown.cancelled().await;
        let core = self.core;
        tracing::info!(calls = core.in_flight.len(), "shutting down");
        core.stopping.cancel();
        core.in_flight.close();
        let drain_timeout = core.options.drain_timeout;
        if tokio::time::timeout(drain_timeout, core.in_flight.wait())
            .await
            .is_ok()
        {
            return Ok(());
        }
        core.stopped.cancel();
        if tokio::time::timeout(LAST_GRACE, core.in_flight.wait())
            .await
            .is_ok()
        {
            tracing::warn!(waited = ?drain_timeout, "calls that were still in flight were ended");
            return Ok(());
        }
        Err(Error::NotDrained {
            calls: core.in_flight.len(),
            waited: drain_timeout + LAST_GRACE,
        })
    }
}

/// What calls are limited by.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    Calls,
    Bodies,
    Tails,
}

/// A call's place among those in flight. A shutdown waits for it.
struct Place {
    what: &'static str,
    _permit: OwnedSemaphorePermit,
    _in_flight: TaskTrackerToken,
}

impl Drop for Place {
    fn drop(&mut self) {
        metrics::in_flight(self.what, -1.0);
    }
}

impl Core {
    fn admit(&self, limit: Limit) -> Result<Place, Error> {
        // Before the look at `stopping`, so that a shutdown either is seen here or sees this call.
        let in_flight = self.in_flight.token();
        if self.stopping.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let (what, places, most) = match limit {
            Limit::Calls => ("calls", &self.calls, self.options.max_calls),
            Limit::Bodies => ("bodies", &self.bodies, self.options.max_bodies),
            Limit::Tails => ("tails", &self.tails, self.options.max_tails),
        };
        let busy = |_| Error::Busy {
            what,
            limit: most as u64,
        };
        let permit = Arc::clone(places).try_acquire_owned().map_err(busy)?;
        metrics::in_flight(what, 1.0);
        Ok(Place {
            what,
            _permit: permit,
            _in_flight: in_flight,
        })
    }

    /// Runs `work` as a task of its own, so that a caller who leaves never cuts a query in two; it learns of that through
    /// its token.
    async fn run_task<T, F>(
        self: &Arc<Self>,
        place: Place,
        work: impl FnOnce(Arc<Self>, CancellationToken) -> F,
    ) -> Result<(T, Place), Error>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        let abandoned = self.stopped.child_token();
        let work = work(Arc::clone(self), abandoned.clone());
        let _abandon_on_drop = abandoned.drop_guard();
        let task = async move { (work.await, place) };
        let (result, place) = tokio::spawn(task.in_current_span())
            .await
            .map_err(|_| Error::TaskDied)?;
        Ok((result?, place))
    }

    /// Runs a unary call.
    pub(crate) async fn unary<T, F>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>, CancellationToken) -> F,
    ) -> Result<Response<T>, Status>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        let run = async { self.run_task(self.admit(Limit::Calls)?, work).await };
        match run.await {
            Ok((response, _place)) => Ok(Response::new(response)),
            Err(error) => Err(error.into_status()),
        }
    }

    /// Runs a streaming call: `prepare` decides whether there is a stream at all, `produce` fills it. The place is held
    /// until the stream's task has ended.
    pub(crate) async fn streaming<P, T, F, G>(
        self: &Arc<Self>,
        limit: Limit,
        prepare: impl FnOnce(Arc<Self>, CancellationToken) -> F,
        produce: impl FnOnce(Arc<Self>, P, Outlet<T>) -> G,
    ) -> Result<Response<Outgoing<T>>, Status>
    where
        F: Future<Output = Result<P, Error>> + Send + 'static,
        G: Future<Output = Result<(), Error>> + Send + 'static,
        P: Send + 'static,
        T: Send + 'static,
    {
        let run = async { self.run_task(self.admit(limit)?, prepare).await };
        let (prepared, place) = run.await.map_err(Error::into_status)?;
        let (outlet, ending, stream) = outlet(self.stopped.clone(), self.options.receiver_timeout);
        let produced = produce(Arc::clone(self), prepared, outlet);
        let task = async move {
            let result = produced.await;
            drop(place);
            if let Err(unheard) = ending.send(result) {
                tracing::debug!(ended = ?unheard, "a stream ended after its receiver had gone");
            }
        };
        drop(tokio::spawn(task.in_current_span()));
        Ok(Response::new(stream))
    }
}
