//! The services of a stage, and what a benchmark does through them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;

use wakelog_client::{Connection, Writer, WriterOptions, new_nonce};
use wakelog_model::WriterNonce;
use wakelog_proto::v1::{AckLevel, AttachWriterRequest, LifetimeGrant, OpenSessionRequest};

use crate::service::{Kind, Service};
use crate::stage::{PARTITIONS, Stage};
use crate::{Error, Options};

/// How often more sessions are opened until every partition has its share, per session that is wanted.
const TRIES_PER_SESSION: usize = 40;

/// The services of a stage, each a process of its own.
pub(crate) struct Pipeline<'a> {
    pub(crate) stage: &'a Stage,
    program: PathBuf,
    running: BTreeMap<Kind, Service>,
    /// Several persisters at once, of the measure that is about that.
    persisters: Vec<Service>,
    /// The most memory that each service has had, in bytes.
    peaks: Mutex<BTreeMap<&'static str, u64>>,
}

/// A session with a lifetime that the benchmark's writer holds.
#[derive(Debug, Clone)]
pub(crate) struct HeldSession {
    pub(crate) id: String,
    pub(crate) partition: i32,
    pub(crate) grant: LifetimeGrant,
    pub(crate) nonce: WriterNonce,
}

impl<'a> Pipeline<'a> {
    /// Starts the services that every measure has: all but the archiver.
    pub(crate) async fn start(options: &Options, stage: &'a Stage) -> Result<Self, Error> {
        let mut pipeline = Self {
            stage,
            program: options.program.clone(),
            running: BTreeMap::new(),
            persisters: Vec::new(),
            peaks: Mutex::default(),
        };
        for kind in [Kind::Persister, Kind::Ingest, Kind::Reconstructor] {
            pipeline.start_service(kind).await?;
        }
        Ok(pipeline)
    }

    pub(crate) async fn start_service(&mut self, kind: Kind) -> Result<(), Error> {
        self.start_with(kind, &[]).await
    }

    /// Starts the archiver; with `valve_bytes` of deltas after the last checkpoint that may stay in the hot tail.
    pub(crate) async fn start_archiver(&mut self, valve_bytes: Option<u64>) -> Result<(), Error> {
        let arguments: Vec<String> = valve_bytes
            .into_iter()
            .flat_map(|bytes| ["--archive-valve-bytes".to_owned(), bytes.to_string()])
            .collect();
        self.start_with(Kind::Archiver, &arguments).await
    }

    async fn start_with(&mut self, kind: Kind, arguments: &[String]) -> Result<(), Error> {
        let service = Service::start(&self.program, self.stage, kind, arguments).await?;
        self.running.insert(kind, service);
        Ok(())
    }

    pub(crate) async fn stop_service(&mut self, kind: Kind) -> Result<(), Error> {
        if let Some(service) = self.running.remove(&kind) {
            self.note_peak(kind, service.stop().await?);
        }
        Ok(())
    }

    fn note_peak(&self, kind: Kind, peak: Option<u64>) {
        let mut peaks = self.peaks.lock().unwrap_or_else(PoisonError::into_inner);
        let most = peaks.entry(kind.name()).or_default();
        *most = (*most).max(peak.unwrap_or_default());
    }

    /// Starts so many persisters, in place of the one.
    pub(crate) async fn start_persisters(&mut self, count: usize) -> Result<(), Error> {
        for _ in 0..count {
            let persister = Service::start(&self.program, self.stage, Kind::Persister, &[]).await?;
            self.persisters.push(persister);
        }
        Ok(())
    }

    /// Whether each of them holds so many partitions.
    pub(crate) async fn persisters_hold(&self, partitions: usize) -> Result<bool, Error> {
        for persister in &self.persisters {
            let held = persister.counter("wakelog_persister_owned_partitions").await?;
            if held as usize != partitions {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn freeze_persisters(&self) -> Result<(), Error> {
        self.persisters.iter().try_for_each(Service::freeze)
    }

    pub(crate) fn thaw_persisters(&self) -> Result<(), Error> {
        self.persisters.iter().try_for_each(Service::thaw)
    }

    pub(crate) async fn stop_persisters(&mut self) -> Result<(), Error> {
        for persister in std::mem::take(&mut self.persisters) {
            self.note_peak(Kind::Persister, persister.stop().await?);
        }
        Ok(())
    }

    /// Uploads that the running archiver has sent, repeats and parts of large objects included.
    pub(crate) async fn archiver_puts(&self) -> Result<f64, Error> {
        let archiver = self.service(Kind::Archiver)?;
        let requests = "wakelog_archive_requests_total";
        let whole = archiver.labelled_counter(requests, "operation=\"put\"").await?;
        let parts = archiver
            .labelled_counter(requests, "operation=\"upload_part\"")
            .await?;
        Ok(whole + parts)
    }

    /// Stops what runs. Returns the most memory that each service has had.
    pub(crate) async fn stop(mut self) -> Result<BTreeMap<&'static str, u64>, Error> {
        let running: Vec<Kind> = self.running.keys().copied().collect();
        for kind in running {
            self.stop_service(kind).await?;
        }
        Ok(self.peaks.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// A running service.
    pub(crate) fn service(&self, kind: Kind) -> Result<&Service, Error> {
        self.running.get(&kind).ok_or(Error::Service {
            service: kind.name(),
            reason: "it does not run".to_owned(),
        })
    }

    /// A connection of its own, as another container would have it.
    pub(crate) async fn connect(&self) -> Result<Connection, Error> {
        let sessions = self.service(Kind::Reconstructor)?.endpoint();
        let relay = self.service(Kind::Ingest)?.endpoint();
        let connection = Connection::connect(&sessions, Some(self.stage.caller_token.clone())).await?;
        Ok(connection.with_relays(&relay)?)
    }

    /// Opens sessions until every partition has so many, and attaches a writer to each of those.
    pub(crate) async fn hold_sessions(&self, per_partition: usize) -> Result<Vec<HeldSession>, Error> {
        let connection = self.connect().await?;
        let mut places: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        let wanted = per_partition * PARTITIONS as usize;
        let mut held = Vec::new();
        for _ in 0..wanted * TRIES_PER_SESSION {
            if held.len() == wanted {
                break;
            }
            let (id, partition) = open(&connection).await?;
            let place = places.entry(partition).or_default();
            if place.len() < per_partition {
                place.push(id.clone());
                held.push(hold(&connection, id, partition).await?);
            }
        }
        match held.len() == wanted {
            true => Ok(held),
            false => Err(Error::Wrong("some partition gets no sessions".to_owned())),
        }
    }

    /// Opens so many sessions, on whatever partitions, and attaches a writer to each.
    pub(crate) async fn hold_some(
        &self,
        connection: &Connection,
        count: usize,
    ) -> Result<Vec<HeldSession>, Error> {
        let mut held = Vec::with_capacity(count);
        for _ in 0..count {
            held.push(self.hold_session(connection).await?);
        }
        Ok(held)
    }

    /// Opens one session and attaches a writer.
    pub(crate) async fn hold_session(&self, connection: &Connection) -> Result<HeldSession, Error> {
        let (id, partition) = open(connection).await?;
        hold(connection, id, partition).await
    }

    /// Attaches a new writer over whatever is current.
    pub(crate) async fn hold_again(
        &self,
        connection: &Connection,
        session: &HeldSession,
    ) -> Result<HeldSession, Error> {
        attach(connection, session.id.clone(), session.partition, true).await
    }
}

impl HeldSession {
    /// A pipelined writer that goes on after `applied`.
    pub(crate) async fn writer(
        &self,
        connection: &Connection,
        ack_level: AckLevel,
        applied: u64,
    ) -> Result<Writer, Error> {
        let options = WriterOptions {
            ack_level,
            ..WriterOptions::default()
        };
        let grant = LifetimeGrant {
            applied_entry_seq: applied,
            ..self.grant.clone()
        };
        Ok(Writer::open(connection.relays(), grant, self.nonce, options).await?)
    }
}

async fn open(connection: &Connection) -> Result<(String, i32), Error> {
    let request = OpenSessionRequest {
        request_id: new_nonce().to_string(),
        ..OpenSessionRequest::default()
    };
    let opened = connection.sessions().open_session(request).await?.into_inner();
    Ok((opened.session_id, opened.partition))
}

async fn hold(connection: &Connection, id: String, partition: i32) -> Result<HeldSession, Error> {
    attach(connection, id, partition, false).await
}

async fn attach(
    connection: &Connection,
    id: String,
    partition: i32,
    take_over: bool,
) -> Result<HeldSession, Error> {
    let nonce = new_nonce();
    let request = AttachWriterRequest {
        session_id: id.clone(),
        writer_nonce: nonce.as_bytes().to_vec().into(),
        take_over,
        ..AttachWriterRequest::default()
    };
    let attached = connection.sessions().attach_writer(request).await?.into_inner();
    let grant = attached
        .lifetime
        .ok_or_else(|| Error::Wrong("an attachment without a lifetime".to_owned()))?;
    Ok(HeldSession {
        id,
        partition,
        grant,
        nonce,
    })
}
