//! From which offset on the topic is still needed to build the hot tail again.

use super::rows::{Coverage, CoverageNow};
use crate::error::{During, convert};
use crate::numbers::{from_bigint, from_integer, to_bigint, to_integer};
use crate::progress::stored_crc;
use crate::{Error, Store};

const COVERAGE: During = During::Statement("coverage");

impl Store {
    /// How often the topic was made; 1 unless the database says otherwise.
    pub async fn topic_incarnation(&self, topic: &str) -> Result<u32, Error> {
        let mut connection = self.acquire().await?;
        let incarnation: Option<i32> =
            sqlx::query_scalar("SELECT incarnation FROM topic_incarnations WHERE topic = $1")
                .bind(topic)
                .fetch_optional(&mut *connection)
                .await
                .map_err(|error| convert(COVERAGE, error))?;
        incarnation.map_or(Ok(1), |incarnation| from_integer("incarnation", incarnation))
    }

    /// The offset below which no record of the partition is needed any more, as the database says it now.
    ///
    /// A session whose row is the version that its newest state was made of needs nothing of what is folded. Any other
    /// one needs what came after that state, or everything if there is none in this incarnation. An erased one needs
    /// its records until it is swept: then the object store says itself that it is erased.
    pub async fn coverage(&self, topic: &str, partition: i32) -> Result<CoverageNow, Error> {
        let mut connection = self.acquire().await?;
        // One statement, so one view of the database: a batch is in both the progress and the sessions or in none.
        let (incarnation, next_offset, crc, covered_offset): (i32, i64, Option<i64>, i64) = sqlx::query_as(
            "WITH topic_now AS (
                 SELECT coalesce((SELECT incarnation FROM topic_incarnations WHERE topic = $1), 1) AS incarnation,
                        coalesce(progress.next_offset, 0) AS next_offset, progress.last_record_crc
                 FROM (SELECT) AS always
                 LEFT JOIN stream_progress AS progress ON topic = $1 AND partition = $2
             )
             SELECT topic_now.incarnation, topic_now.next_offset, topic_now.last_record_crc, least(topic_now.next_offset, (
                 SELECT min(CASE WHEN newest.incarnation = topic_now.incarnation THEN newest.next_offset ELSE 0 END)
                 FROM agent_sessions AS session
                 LEFT JOIN LATERAL (SELECT incarnation, next_offset, row_version
                                    FROM session_archive_snapshots AS snapshot
                                    WHERE snapshot.session_id = session.session_id
                                    ORDER BY incarnation DESC, next_offset DESC LIMIT 1) AS newest ON true
                 WHERE session.partition = $2
                   AND session.xmin::text IS DISTINCT FROM newest.row_version
                   AND NOT (session.erased AND EXISTS (SELECT FROM session_archive_erasures AS swept
                                                       WHERE swept.session_id = session.session_id))))
             FROM topic_now",
        )
        .bind(topic)
        .bind(partition)
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| convert(COVERAGE, error))?;
        Ok(CoverageNow {
            coverage: Coverage {
                incarnation: from_integer("incarnation", incarnation)?,
                covered_offset: from_bigint("covered_offset", covered_offset)?,
            },
            next_offset: from_bigint("next_offset", next_offset)?,
            last_record_crc: crc.map(stored_crc).transpose()?,
        })
    }

    /// Records the coverage and says what is recorded now. Within an incarnation it only rises: what was covered once
    /// stays so, although [`Self::coverage`] answers less while a session waits for its next state.
    pub async fn record_coverage(
        &self,
        topic: &str,
        partition: i32,
        coverage: Coverage,
    ) -> Result<Coverage, Error> {
        let mut connection = self.acquire().await?;
        let (incarnation, covered_offset): (i32, i64) = sqlx::query_as(
            "INSERT INTO partition_coverage AS stored (topic, partition, incarnation, covered_offset)
             VALUES ($1, $2, $3, $4)
             ON CONFLICT (topic, partition) DO UPDATE
             SET covered_offset = CASE WHEN stored.incarnation < excluded.incarnation THEN excluded.covered_offset
                                       WHEN stored.incarnation > excluded.incarnation THEN stored.covered_offset
                                       ELSE greatest(stored.covered_offset, excluded.covered_offset) END,
                 incarnation = greatest(stored.incarnation, excluded.incarnation),
                 covered_at = now()
             RETURNING incarnation, covered_offset",
        )
        .bind(topic)
        .bind(partition)
        .bind(to_integer("incarnation", coverage.incarnation)?)
        .bind(to_bigint("covered_offset", coverage.covered_offset)?)
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| convert(COVERAGE, error))?;
        Ok(Coverage {
            incarnation: from_integer("incarnation", incarnation)?,
            covered_offset: from_bigint("covered_offset", covered_offset)?,
        })
    }

    /// Forgets what was recorded of every partition, and which states and copies of entries are in the object store: all of them
    /// are due again. The segments of which the rows were pruned stay.
    pub async fn forget_states(&self, topic: &str) -> Result<(), Error> {
        let mut connection = self.acquire().await?;
        sqlx::query(
            "WITH coverage AS (DELETE FROM partition_coverage WHERE topic = $1),
                  states AS (DELETE FROM session_archive_snapshots)
             DELETE FROM agent_session_archive_segments WHERE kind IN ('session_end', 'retention')",
        )
        .bind(topic)
        .execute(&mut *connection)
        .await
        .map_err(|error| convert(COVERAGE, error))?;
        Ok(())
    }

    /// What was recorded last of every partition of the topic, by partition.
    pub async fn recorded_coverages(&self, topic: &str) -> Result<Vec<(i32, Coverage)>, Error> {
        let mut connection = self.acquire().await?;
        let rows: Vec<(i32, i32, i64)> = sqlx::query_as(
            "SELECT partition, incarnation, covered_offset FROM partition_coverage
             WHERE topic = $1 ORDER BY partition",
        )
        .bind(topic)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(COVERAGE, error))?;
        rows.into_iter()
            .map(|(partition, incarnation, covered_offset)| {
                let coverage = Coverage {
                    incarnation: from_integer("incarnation", incarnation)?,
                    covered_offset: from_bigint("covered_offset", covered_offset)?,
                };
                Ok((partition, coverage))
            })
            .collect()
    }

    /// What was recorded last; `None`: nothing.
    pub async fn recorded_coverage(&self, topic: &str, partition: i32) -> Result<Option<Coverage>, Error> {
        let mut connection = self.acquire().await?;
        let row: Option<(i32, i64)> = sqlx::query_as(
            "SELECT incarnation, covered_offset FROM partition_coverage WHERE topic = $1 AND partition = $2",
        )
        .bind(topic)
        .bind(partition)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| convert(COVERAGE, error))?;
        row.map(|(incarnation, covered_offset)| {
            Ok(Coverage {
                incarnation: from_integer("incarnation", incarnation)?,
                covered_offset: from_bigint("covered_offset", covered_offset)?,
            })
        })
        .transpose()
    }
}
