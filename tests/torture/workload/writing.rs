//! Sending entries in one lifetime.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::Rng as _;
use rand::rngs::StdRng;
use wakelog_client::{Connection, Error, Writer, WriterOptions};
use wakelog_model::WriterNonce;
use wakelog_proto::v1::{AckLevel, LifetimeGrant, RefusalReason};

use super::ledger::Ledger;
use super::{Shared, count};
use crate::support::seed::{self, Entry};

/// How long a relay may say nothing. The default would not be over before most faults are.
const SILENCE: Duration = Duration::from_secs(5);

/// The longest pause between two tries.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// How long a superseded writer may go on before it is refused: it gives up after two minutes without progress.
const REFUSED_WITHIN: Duration = Duration::from_secs(150);

/// A writer in a lifetime that was bound.
pub struct Writing {
    shared: Arc<Shared>,
    /// Whose progress this is.
    slot: usize,
    ledger: Arc<Ledger>,
    /// Of the ledger.
    lifetime: usize,
    bound: (LifetimeGrant, WriterNonce),
    writer: Writer,
    rng: StdRng,
    last: Option<Entry>,
}

/// What a frame was made of.
pub struct LastFrame {
    pub grant: LifetimeGrant,
    pub nonce: WriterNonce,
    pub entry_seq: u64,
    pub entry: Entry,
}

impl Writing {
    pub async fn open(
        shared: Arc<Shared>,
        slot: usize,
        ledger: Arc<Ledger>,
        connection: &Connection,
        bound: (LifetimeGrant, WriterNonce),
        lifetime: usize,
    ) -> Result<Self, Error> {
        let options = WriterOptions {
            ack_level: ledger.ack_level(),
            silence: SILENCE,
            longest_delay: LONGEST_DELAY,
            ..WriterOptions::default()
        };
        let (grant, nonce) = bound.clone();
        let writer = Writer::open(connection.relays(), grant, nonce, options).await?;
        let seed = shared.plan.seed ^ ((ledger.number as u64) << 40) ^ ((lifetime as u64) << 20);
        Ok(Self {
            shared,
            slot,
            ledger,
            lifetime,
            bound,
            writer,
            rng: seed::rng(seed),
            last: None,
        })
    }

    /// The lifetime's number in the ledger.
    pub fn lifetime(&self) -> usize {
        self.lifetime
    }

    /// Sends so many entries, now and then waiting for all acknowledgements.
    pub async fn send(&mut self, entries: usize) -> Result<(), Error> {
        let between_drains = self.rng.random_range(2..20);
        for number in 1..=entries {
            self.send_one().await?;
            if number % between_drains == 0 {
                self.drain().await?;
            }
            tokio::time::sleep(self.shared.plan.pace).await;
        }
        Ok(())
    }

    pub async fn drain(&mut self) -> Result<(), Error> {
        let drained = self.writer.drain().await;
        self.note_acks();
        drained.map(drop)
    }

    /// What the last frame was made of, if everything is acknowledged.
    pub fn last_frame(&self) -> Option<LastFrame> {
        let entry = self.last.clone()?;
        let (grant, nonce) = self.bound.clone();
        (self.writer.unacked_entries() == 0).then(|| LastFrame {
            grant,
            nonce,
            entry_seq: self.writer.acked().entry_seq,
            entry,
        })
    }

    /// Goes on until it is refused, as it must be once `rival` has taken over.
    pub async fn until_superseded(mut self) {
        let since = Instant::now();
        let error = loop {
            if let Err(error) = self.send_one().await {
                break error;
            }
            if let Err(error) = self.drain().await {
                break error;
            }
            if since.elapsed() > REFUSED_WITHIN {
                let session = self.ledger.session();
                let what = format!(
                    "session {session}: a superseded writer is not refused within {REFUSED_WITHIN:?}"
                );
                return self.shared.fail(what);
            }
            tokio::time::sleep(self.shared.plan.pace).await;
        };
        self.note_acks();
        match error.refusal_reason() {
            Some(RefusalReason::Superseded) => count(&self.shared.counts.refused),
            _ => self.shared.fail(format!(
                "session {}: a superseded writer ended with another error: {error}",
                self.ledger.session()
            )),
        }
    }

    async fn send_one(&mut self) -> Result<(), Error> {
        let entry = self.draw();
        self.ledger.sent(self.lifetime, &entry);
        let sent = self.writer.append(entry.bytes.clone(), entry.checkpoint).await;
        self.last = Some(entry);
        self.note_acks();
        sent.map(drop)
    }

    /// A seeded entry; now and then one with the bytes of the one before, which counts as much.
    fn draw(&mut self) -> Entry {
        if let Some(last) = &self.last
            && last.bytes.len() < 100_000
            && self.rng.random_ratio(1, 40)
        {
            count(&self.shared.counts.twins);
            return Entry {
                bytes: last.bytes.clone(),
                checkpoint: false,
            };
        }
        seed::entry(&mut self.rng, self.ledger.next_number())
    }

    fn note_acks(&mut self) {
        if self.ledger.acked(self.lifetime, self.writer.acked().entry_seq) {
            self.shared.availability.progress(self.slot);
        }
    }
}

/// Whether acknowledgements of this level have no exception.
pub fn may_have_rivals(level: AckLevel) -> bool {
    level == AckLevel::Store
}
