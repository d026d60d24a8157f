//! Which sessions need a new state.
//!
//! A session is due if its row is another version than the one its newest state was made of: every applied record
//! changes the row, and a version is the transaction that wrote it. It is also due if an older state is recorded beside the
//! newest, which should be the only one. So a batch that was under way when the state was
//! read makes the session due once it commits, whenever it began.

use uuid::Uuid;
use wakelog_model::SessionId;

use super::rows::{DueBy, DuePage};
use super::{first_id, seconds};
use crate::error::{During, convert};
use crate::numbers::count;
use crate::{Error, Store};

/// Sessions that one page looks at, at most.
const MAX_PAGE: u32 = 1_000;

/// `LIFETIME_STATUS_ENDED` of the wire.
const STATUS_ENDED: i32 = 2;

const DUE: During = During::Statement("due snapshots");

impl Store {
    /// The sessions among the next `limit` (never more than 1,000) of these partitions that need a new state. Erased
    /// ones never do. A page costs what it looks at, however few of it are due.
    pub async fn due_snapshots(
        &self,
        partitions: &[i32],
        due_by: DueBy,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<DuePage, Error> {
        let Some(from) = first_id(after) else {
            return Ok(DuePage::default());
        };
        let limit = limit.min(MAX_PAGE);
        let age = match due_by {
            DueBy::SessionEnd => None,
            DueBy::Age(age) => Some(seconds(age)),
        };
        let mut connection = self.acquire().await?;
        let page: Vec<(Uuid, bool)> = sqlx::query_as(
            "SELECT page.session_id,
                    NOT page.erased AND (page.row_version IS DISTINCT FROM newest.row_version OR newest.has_older)
                    AND CASE WHEN $4::double precision IS NULL THEN page.lifetime_status = $5
                             ELSE coalesce(newest.taken_at, page.opened_at) <= now() - make_interval(secs => $4) END
             FROM (SELECT DISTINCT unnest($1::int[]) AS partition) AS asked
             CROSS JOIN LATERAL (SELECT session_id, xmin::text AS row_version, erased, lifetime_status, opened_at
                                 FROM agent_sessions AS stored
                                 WHERE stored.partition = asked.partition AND stored.session_id >= $2
                                 ORDER BY session_id LIMIT $3) AS page
             LEFT JOIN LATERAL (SELECT row_version, taken_at,
                                       lead(true, 1, false) OVER (ORDER BY incarnation DESC, next_offset DESC) AS has_older
                                FROM session_archive_snapshots AS snapshot
                                WHERE snapshot.session_id = page.session_id
                                ORDER BY incarnation DESC, next_offset DESC LIMIT 1) AS newest ON true
             ORDER BY page.session_id LIMIT $3",
        )
        .bind(partitions)
        .bind(from)
        .bind(i64::from(limit))
        .bind(age)
        .bind(STATUS_ENDED)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| convert(DUE, error))?;
        let is_full = count(page.len()) == u64::from(limit);
        let last = page.last().map(|(session, _)| SessionId(*session));
        Ok(DuePage {
            due: page
                .into_iter()
                .filter(|(_, due)| *due)
                .map(|(session, _)| SessionId(session))
                .collect(),
            next_after: last.filter(|_| is_full),
        })
    }
}
