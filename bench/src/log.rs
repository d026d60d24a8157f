//! Entries straight into the log, as the records that ingest makes of them, and the wait until they are in the hot tail. For
//! measures in which committing is not what is measured.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sqlx::PgPool;
use tokio::time::sleep;
use uuid::Uuid;
use wakelog_proto::v1::EntryPart;

use crate::Error;
use crate::baseline::producer::RawProducer;
use crate::pipeline::{HeldSession, Pipeline};
use crate::records::{RawRecord, part_of_entry, record_of_part};

/// Records on their way to the log.
const IN_FLIGHT: usize = 4_096;

/// How often it is looked whether they are folded.
const LOOK: Duration = Duration::from_millis(5);

/// How long the persister may take for what was published at a time.
const WAIT: Duration = Duration::from_secs(180);

/// A session that grows in the log. Its first lifetime is the only one that writes, so the store numbers its entries as the
/// writer does.
pub(crate) struct Growing {
    pub(crate) session: HeldSession,
    pub(crate) last_seq: u64,
}

impl Growing {
    pub(crate) fn new(session: HeldSession) -> Self {
        Self { session, last_seq: 0 }
    }

    /// The next entry as a record. An entry of one part: at most 512 KiB.
    pub(crate) fn next(&mut self, entry: &Bytes, checkpoint: bool) -> RawRecord {
        self.last_seq += 1;
        let part = part_of_entry(&self.session, self.last_seq, entry);
        record_of_part(&self.session, EntryPart { checkpoint, ..part })
    }

    /// The session's id, as the database has it.
    pub(crate) fn id(&self) -> Result<Uuid, Error> {
        Uuid::parse_str(&self.session.id).map_err(|error| Error::Wrong(error.to_string()))
    }
}

/// The log of a stage.
pub(crate) struct Log {
    producer: RawProducer,
    pool: PgPool,
}

impl Log {
    pub(crate) fn new(pipeline: &Pipeline<'_>, pool: &PgPool) -> Result<Self, Error> {
        Ok(Self {
            producer: RawProducer::new(&pipeline.stage.stream)?,
            pool: pool.clone(),
        })
    }

    /// Publishes records; returns once all of them are in the log.
    pub(crate) async fn publish(&self, records: &[RawRecord]) -> Result<(), Error> {
        self.producer.publish_all(records, IN_FLIGHT).await?;
        Ok(())
    }

    /// Waits until everything that the sessions were given is in the hot tail.
    pub(crate) async fn wait_folded(&self, sessions: &[Growing]) -> Result<(), Error> {
        let ids = sessions.iter().map(Growing::id).collect::<Result<Vec<_>, _>>()?;
        let last: Vec<i64> = sessions.iter().map(|session| session.last_seq as i64).collect();
        let deadline = Instant::now() + WAIT;
        loop {
            let behind: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM unnest($1::uuid[], $2::bigint[]) AS wanted (session_id, last)
                 JOIN agent_sessions USING (session_id) WHERE last_entry_seq < last",
            )
            .bind(&ids)
            .bind(&last)
            .fetch_one(&self.pool)
            .await?;
            if behind == 0 {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::Late {
                    what: "the fold of what was published",
                    seconds: WAIT.as_secs(),
                });
            }
            sleep(LOOK).await;
        }
    }
}
