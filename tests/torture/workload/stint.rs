//! One writer's time with a session: how it gets it, what it does, and how it leaves it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::Rng as _;
use rand::rngs::StdRng;
use tonic::Code;
use wakelog_client::{Connection, Error, new_nonce};
use wakelog_model::WriterNonce;
use wakelog_proto::v1::relay_service_client::RelayServiceClient;
use wakelog_proto::v1::{AttachWriterRequest, LifetimeGrant, OpenSessionRequest, StopAgentSessionRequest};

use super::client::{Client, Trouble, may_pass};
use super::ledger::Ledger;
use super::writing::{LastFrame, Writing, may_have_rivals};
use super::{Shared, count};
use crate::support::relay::{entry_of, frame, with_token};
use crate::support::seed;
use crate::support::session::begin_resume;

/// How often a bind that another one won is asked for again.
const BINDS: u32 = 20;

/// How long a repeated frame may wait for its answer.
const REPEAT: Duration = Duration::from_secs(12);

/// How a writer gets a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// After the lifetime that is known.
    After,
    /// Over whatever is current.
    TakeOver,
    /// By a resume, whose body is checked.
    Resume,
}

/// How a writer leaves a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Drained,
    /// It ends its lifetime.
    Ended,
    /// Its container dies with entries on their way.
    Dead,
}

/// One writer's time with a session.
pub struct Stint {
    shared: Arc<Shared>,
    slot: usize,
    ledger: Arc<Ledger>,
    client: Client,
    rng: StdRng,
}

type Bound = (LifetimeGrant, WriterNonce);

impl Stint {
    /// Chooses a session.
    pub async fn begin(shared: Arc<Shared>, slot: usize, number: u64, ledgers: &[Arc<Ledger>]) -> Self {
        let seed = shared.plan.seed.wrapping_mul(1_000_003) ^ ((slot as u64) << 32) ^ number;
        let mut rng = seed::rng(seed);
        let ledger = ledgers[rng.random_range(0..ledgers.len())].clone();
        let client = Client::new(shared.servers.clone(), slot + number as usize);
        Self {
            shared,
            slot,
            ledger,
            client,
            rng,
        }
    }

    /// Writes for a while. What goes wrong and may not is told.
    pub async fn run(mut self) {
        if let Err(what) = Box::pin(self.try_run()).await {
            let session = self.ledger.session();
            self.shared
                .fail(format!("writer {} of session {session}: {what}", self.slot));
        }
    }

    async fn try_run(&mut self) -> Result<(), String> {
        if self.ledger.session().is_empty() {
            let session = self.open().await?;
            self.ledger.opened(session);
        }
        let claim = match self.rng.random_range(0..10) {
            _ if self.ledger.is_uncertain() => Claim::TakeOver,
            0..4 if self.ledger.has_entries() => Claim::Resume,
            4 => Claim::TakeOver,
            _ => Claim::After,
        };
        let mut writing = self.attach(claim).await?;
        let entries = self.rng.random_range(5..60);
        let has_rival = may_have_rivals(self.ledger.ack_level()) && self.rng.random_ratio(1, 4);
        self.send(&mut writing, entries).await?;
        if has_rival && !self.shared.is_over() {
            let superseded = tokio::spawn(writing.until_superseded());
            let claim = match self.rng.random_ratio(1, 2) && self.ledger.has_entries() {
                true => Claim::Resume,
                false => Claim::TakeOver,
            };
            let rival = self.attach(claim).await;
            count(&self.shared.counts.take_overs);
            let rival = match rival {
                Ok(mut rival) => self.send(&mut rival, entries).await.map(|()| rival),
                Err(what) => Err(what),
            };
            superseded.await.map_err(|panicked| panicked.to_string())?;
            writing = rival?;
        }
        self.leave(writing).await
    }

    async fn open(&mut self) -> Result<String, String> {
        let plan = self.shared.plan;
        let request = OpenSessionRequest {
            request_id: format!("torture-{}-{}", plan.seed, self.ledger.number),
            ..Default::default()
        };
        let opened = self.client.ask(move |connection: Connection| {
            let request = request.clone();
            async move { Ok(connection.sessions().open_session(request).await?.into_inner()) }
        });
        let opened = opened.await.map_err(|trouble| format!("opening it: {trouble}"))?;
        Ok(opened.session_id)
    }

    /// Binds a lifetime and opens its writer.
    async fn attach(&mut self, claim: Claim) -> Result<Writing, String> {
        let bound = match claim {
            Claim::Resume => self.resume().await,
            Claim::After | Claim::TakeOver => self.bind(claim == Claim::TakeOver).await,
        };
        let (bound, lifetime) = bound.inspect_err(|_| self.ledger.set_uncertain())?;
        let connection = self.client.ask(async |connection| Ok(connection)).await;
        let connection = connection.map_err(|trouble| format!("connecting: {trouble}"))?;
        let (shared, ledger) = (self.shared.clone(), self.ledger.clone());
        let writing = Writing::open(shared, self.slot, ledger, &connection, bound, lifetime).await;
        writing.map_err(|error| format!("opening the writer after {claim:?}: {error}"))
    }

    /// Attaches a writer. The same nonce is the same attachment, so it may be asked for again.
    async fn bind(&mut self, take_over: bool) -> Result<(Bound, usize), String> {
        count(&self.shared.counts.attachments);
        for _ in 0..BINDS {
            let nonce = new_nonce();
            let request = AttachWriterRequest {
                session_id: self.ledger.session(),
                writer_nonce: nonce.as_bytes().to_vec().into(),
                last_lifetime_id: match take_over {
                    true => Default::default(),
                    false => self.ledger.last_lifetime(),
                },
                take_over,
            };
            let attached = self.client.ask(move |connection: Connection| {
                let request = request.clone();
                async move { Ok(connection.sessions().attach_writer(request).await?.into_inner()) }
            });
            match attached.await {
                Ok(attached) => {
                    let grant = attached.lifetime.ok_or("an attachment without a lifetime")?;
                    let lifetime = self.ledger.bound(&grant);
                    return Ok(((grant, nonce), lifetime));
                }
                // Another one won: this one was asked for too late.
                Err(Trouble::Refused(Error::Refused {
                    code: Code::Aborted, ..
                })) => {}
                Err(trouble) => return Err(format!("attaching (take over: {take_over}): {trouble}")),
            }
        }
        Err(format!("{BINDS} attachments were lost to others"))
    }

    /// Resumes the session: the body must be that of everything that was acknowledged. The same request is the same lifetime.
    async fn resume(&mut self) -> Result<(Bound, usize), String> {
        for _ in 0..BINDS {
            let (session, request) = (self.ledger.session(), uuid::Uuid::new_v4().to_string());
            // Whoever is bound is fenced once the grant is here, before the body has come.
            let known = Mutex::new(None);
            let resumed = self.client.ask(|connection: Connection| {
                let (session, request, ledger, known) = (&session, &request, &self.ledger, &known);
                async move {
                    let resuming = begin_resume(&connection, session, request).await?;
                    note_bound(known, ledger, &resuming.lifetime);
                    resuming.body(std::future::ready(())).await
                }
            });
            let body = match resumed.await {
                Ok(body) => body,
                Err(Trouble::Refused(Error::Refused {
                    code: Code::Aborted, ..
                })) if known.lock().expect("not poisoned").is_none() => continue,
                Err(trouble) => return Err(format!("resuming: {trouble}")),
            };
            let known = known.lock().expect("not poisoned").take();
            let (grant, lifetime) = known.ok_or("a resume without a lifetime")?;
            let expected = self.ledger.body_of_last_bind()?;
            if body != expected {
                return Err(format!(
                    "ANOTHER BODY: a resume in generation {} at entry {} gave {} bytes, sent were {}",
                    grant.generation,
                    grant.base,
                    body.len(),
                    expected.len()
                ));
            }
            count(&self.shared.counts.resumes);
            return Ok(((grant, new_nonce()), lifetime));
        }
        Err(format!("{BINDS} resumes were lost to others"))
    }

    async fn send(&mut self, writing: &mut Writing, entries: usize) -> Result<(), String> {
        let sent = writing.send(entries).await;
        sent.map_err(|error| format!("lifetime {}: {error}", writing.lifetime()))
    }

    async fn leave(&mut self, mut writing: Writing) -> Result<(), String> {
        let leaving = match self.rng.random_range(0..10) {
            // A LOG session is only left with everything acknowledged.
            0..3 if may_have_rivals(self.ledger.ack_level()) => Leaving::Dead,
            3..5 => Leaving::Ended,
            _ => Leaving::Drained,
        };
        if leaving == Leaving::Dead {
            count(&self.shared.counts.deaths);
            return Ok(());
        }
        let drained = writing.drain().await;
        drained.map_err(|error| format!("draining lifetime {}: {error}", writing.lifetime()))?;
        if let Some(last) = writing.last_frame()
            && self.rng.random_ratio(1, 4)
        {
            self.repeat(last).await?;
        }
        if leaving == Leaving::Ended {
            return self.end().await;
        }
        Ok(())
    }

    /// Sends the last frame once more, as a client does whose acknowledgement was lost: it must be taken for what it is. That
    /// nobody can answer now is no fault.
    async fn repeat(&mut self, last: LastFrame) -> Result<(), String> {
        let LastFrame {
            grant,
            nonce,
            entry_seq,
            entry,
        } = last;
        let mut repeated = frame(&grant.session_id, nonce, entry_seq, &entry.bytes);
        entry_of(&mut repeated).checkpoint = entry.checkpoint;
        let Ok(connection) = self.client.connected().await else {
            return Ok(());
        };
        let mut relay = RelayServiceClient::new(connection.relay_channel());
        let call = relay.commit_conversation_frame(with_token(repeated, Some(&grant.token)));
        match tokio::time::timeout(REPEAT, call)
            .await
            .map(|answer| answer.map_err(Error::from))
        {
            Ok(Ok(_)) => count(&self.shared.counts.repeats),
            Ok(Err(error)) if !may_pass(&error) => {
                return Err(format!("a repeat of entry {entry_seq} is refused: {error}"));
            }
            Ok(Err(_)) | Err(_) => {}
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), String> {
        count(&self.shared.counts.ends);
        let request = StopAgentSessionRequest {
            session_id: self.ledger.session(),
            lifetime_id: self.ledger.last_lifetime(),
        };
        let ended = self.client.ask(move |connection: Connection| {
            let request = request.clone();
            async move { Ok(connection.sessions().stop_agent_session(request).await?) }
        });
        ended
            .await
            .map_err(|trouble| format!("ending a lifetime: {trouble}"))?;
        Ok(())
    }
}

/// The first time that a bind is known.
fn note_bound(known: &Mutex<Option<(LifetimeGrant, usize)>>, ledger: &Ledger, grant: &LifetimeGrant) {
    let mut known = known.lock().expect("not poisoned");
    if known.is_none() {
        *known = Some((grant.clone(), ledger.bound(grant)));
    }
}
