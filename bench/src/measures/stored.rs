//! Stored bytes per byte of an entry, in the hot tail and in the archive; beside plain rows and compressed files. Sizes do not
//! vary, so there is one round.

use std::collections::HashSet;

use bytes::Bytes;
use sqlx::PgPool;
use uuid::Uuid;
use wakelog_archive::{ObjectName, ObjectStore, SESSIONS_PREFIX};
use wakelog_client::Connection;

use super::Run;
use crate::Error;
use crate::baseline::plain::{bytes_of_files, bytes_of_rows, table_bytes};
use crate::log::{Growing, Log};
use crate::manifest::wait_archived;
use crate::pipeline::Pipeline;
use crate::recordings;
use crate::report::{Figure, Found};
use crate::service::Kind;
use crate::text::Transcript;

/// How often each recording is stored: what the pages of a table round up is not to count.
const COPIES: usize = 20;

/// Plain bytes of the session that has grown.
const GROWN_BYTES: usize = 50_000_000;

const UNIT: &str = "bytes for a byte";

pub(super) async fn measure(run: &Run<'_>, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
    let connection = pipeline.connect().await?;
    let pool = pipeline.stage.pool().await?;
    let log = Log::new(pipeline, &pool)?;
    let recordings = recordings::sessions();
    let copies = recordings.len() * run.options.scaled(COPIES, 1);
    let recorded = recordings.into_iter().cycle().take(copies).collect();
    let grown_bytes = run.options.scaled(GROWN_BYTES, 100_000);
    let repeated = recordings::grown(grown_bytes);
    let grown = Transcript::new(run.options.seed).bytes(grown_bytes);

    run.say("filling the hot tail");
    let mut recorded = Group::hold(pipeline, &connection, recorded).await?;
    let mut repeated = Group::hold(pipeline, &connection, vec![repeated]).await?;
    let mut grown = Group::hold(pipeline, &connection, vec![grown]).await?;
    // Nothing leaves the table in between, so that none finds room that something else has left.
    let hot = [
        recorded.fill(&log, &pool).await?,
        repeated.fill(&log, &pool).await?,
        grown.fill(&log, &pool).await?,
    ];
    run.say("moving it to the archive");
    recorded.supersede(&log).await?;
    repeated.supersede(&log).await?;
    grown.supersede(&log).await?;
    pipeline.start_archiver(None).await?;
    let bucket = pipeline.stage.bucket()?;
    let objects = ObjectStore::new(bucket.archive())?;
    let cold = [
        recorded.archived(&pool, &objects).await?,
        repeated.archived(&pool, &objects).await?,
        grown.archived(&pool, &objects).await?,
    ];
    pipeline.stop_service(Kind::Archiver).await?;

    run.say("storing the same without Wakelog");
    let mut figures = Vec::new();
    let names = [
        ["hot tail, recorded sessions", "archive, recorded sessions"],
        [
            "hot tail, recorded calls again and again up to 50 MB",
            "archive, recorded calls again and again up to 50 MB",
        ],
        ["hot tail, a session of 50 MB", "archive, a session of 50 MB"],
    ];
    for (index, group) in [&recorded, &repeated, &grown].into_iter().enumerate() {
        let plain = group.plain_bytes();
        let rows = bytes_of_rows(&pool, &group.bodies).await? as f64 / plain;
        let files = bytes_of_files(&group.bodies)? as f64 / plain;
        let [hot_name, cold_name] = names[index];
        figures.push(Figure::beside(
            "stored",
            hot_name,
            UNIT,
            vec![hot[index]],
            vec![rows],
            None,
        ));
        figures.push(Figure::beside(
            "stored",
            cold_name,
            UNIT,
            vec![cold[index]],
            vec![files],
            None,
        ));
    }
    Ok(Found {
        figures,
        ..Found::default()
    })
}

/// Sessions whose size is looked at together.
struct Group {
    sessions: Vec<Growing>,
    bodies: Vec<Vec<Bytes>>,
}

impl Group {
    async fn hold(
        pipeline: &Pipeline<'_>,
        connection: &Connection,
        bodies: Vec<Vec<Bytes>>,
    ) -> Result<Self, Error> {
        let held = pipeline.hold_some(connection, bodies.len()).await?;
        Ok(Self {
            sessions: held.into_iter().map(Growing::new).collect(),
            bodies,
        })
    }

    fn plain_bytes(&self) -> f64 {
        self.bodies.iter().flatten().map(Bytes::len).sum::<usize>() as f64
    }

    fn ids(&self) -> Result<Vec<Uuid>, Error> {
        self.sessions.iter().map(Growing::id).collect()
    }

    /// Puts the entries into the hot tail. Returns by how much the table has grown, per byte.
    async fn fill(&mut self, log: &Log, pool: &PgPool) -> Result<f64, Error> {
        let before = table_bytes(pool, "agent_session_transcript_entries").await?;
        for (session, body) in self.sessions.iter_mut().zip(&self.bodies) {
            let records: Vec<_> = body.iter().map(|entry| session.next(entry, false)).collect();
            log.publish(&records).await?;
        }
        log.wait_folded(&self.sessions).await?;
        let after = table_bytes(pool, "agent_session_transcript_entries").await?;
        Ok((after - before) as f64 / self.plain_bytes())
    }

    /// A checkpoint behind the entries: all of them move.
    async fn supersede(&mut self, log: &Log) -> Result<(), Error> {
        let mut records = Vec::new();
        for (session, body) in self.sessions.iter_mut().zip(&self.bodies) {
            records.extend(body.first().map(|entry| session.next(entry, true)));
        }
        log.publish(&records).await?;
        log.wait_folded(&self.sessions).await
    }

    /// Waits until the entries are in the archive. Returns the bytes of the objects that the bucket lists, per byte.
    async fn archived(&self, pool: &PgPool, objects: &ObjectStore) -> Result<f64, Error> {
        let due: u64 = self.sessions.iter().map(|session| session.last_seq - 1).sum();
        let ids = self.ids()?;
        let archived = wait_archived(pool, &ids, due, |_, _| {}).await?;
        let ids: HashSet<Uuid> = ids.into_iter().collect();
        let mut listed = 0;
        for object in objects.list_all(SESSIONS_PREFIX).await? {
            if let ObjectName::Segment(key) = ObjectName::parse(&object.key)
                && ids.contains(&session_uuid(&key.session.to_string())?)
            {
                listed += object.bytes;
            }
        }
        let plain = self.plain_bytes();
        if listed as i64 != archived.object_bytes || archived.plain_bytes as f64 != plain {
            return Err(Error::Wrong(format!(
                "the bucket lists {listed} bytes of {plain}, the manifest has {} of {}",
                archived.object_bytes, archived.plain_bytes
            )));
        }
        Ok(listed as f64 / plain)
    }
}

fn session_uuid(text: &str) -> Result<Uuid, Error> {
    Uuid::parse_str(text).map_err(|error| Error::Wrong(error.to_string()))
}
