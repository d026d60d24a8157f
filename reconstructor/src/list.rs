//! Listing and describing sessions.

use wakelog_model::SessionId;
use wakelog_proto::v1::{
    DescribeSessionResponse, LifetimeStatus, LifetimeSummary, ListSessionsRequest, ListSessionsResponse,
    SessionSummary,
};
use wakelog_store::{LifetimeRow, ListQuery, SessionRow};

use crate::core::{Core, body_start};
use crate::{Error, validate};

/// Lifetimes in a description.
const MAX_LIFETIMES_SHOWN: u32 = 100;

impl Core {
    /// A page of the sessions that the account may see.
    pub(crate) async fn list(
        &self,
        account: &str,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        validate::labels(&request.labels)?;
        let page_size = validate::page_size(request.page_size)?;
        let query = ListQuery {
            limit: rows_asked_for(page_size),
            after: position(&request.page_token)?,
            labels: request.labels,
        };
        let mut rows = self.store.list_sessions(account, &query).await?;
        let next_page_token = match page_end(&rows, page_size) {
            Some(end) => page_token(end.opened_at_us, end.session),
            None => String::new(),
        };
        rows.truncate(page_size as usize);
        Ok(ListSessionsResponse {
            sessions: rows.into_iter().map(summary).collect(),
            next_page_token,
        })
    }

    /// One session in detail.
    pub(crate) async fn describe(
        &self,
        session: SessionId,
        account: &str,
    ) -> Result<DescribeSessionResponse, Error> {
        let row = self.visible(session, account).await?;
        let lifetimes = self.store.lifetimes(session, MAX_LIFETIMES_SHOWN).await?;
        let body_length = match row.last_entry_seq {
            0 => 0,
            last => self.store.body_length(session, body_start(&row), last).await?,
        };
        let quarantined_records = self.store.quarantined_of_session(session).await?;
        Ok(DescribeSessionResponse {
            summary: Some(summary(row)),
            lifetimes: lifetimes.into_iter().map(lifetime_summary).collect(),
            body_length,
            quarantined_records,
        })
    }
}

fn summary(row: SessionRow) -> SessionSummary {
    SessionSummary {
        session_id: row.session.to_string(),
        owner: row.owner,
        labels: row.labels,
        parent_session_id: row.parent.map(|parent| parent.to_string()).unwrap_or_default(),
        subpath: row.subpath,
        partition: row.partition,
        last_entry_seq: row.last_entry_seq,
        last_checkpoint_seq: row.last_checkpoint_seq,
        generation: row.generation,
        lifetime_status: status(row.lifetime_status),
        opened_at_ms: row.opened_at_ms,
        updated_at_ms: row.updated_at_ms,
    }
}

fn lifetime_summary(row: LifetimeRow) -> LifetimeSummary {
    LifetimeSummary {
        lifetime_id: row.lifetime_id.as_bytes().to_vec().into(),
        generation: row.generation,
        request_id: row.request_id,
        base: row.base,
        body_start: row.body_start,
        applied_entry_seq: row.applied_seq,
        status: status(row.status),
        bound_at_ms: row.bound_at_ms,
    }
}

/// A number that is no status is shown as none.
fn status(number: i32) -> i32 {
    LifetimeStatus::try_from(number)
        .unwrap_or(LifetimeStatus::Unspecified)
        .into()
}

/// One more than fits on the page, to know whether there is another; except for the largest page, as the hot tail hands
/// out no more than that.
fn rows_asked_for(page_size: u32) -> u32 {
    (page_size + 1).min(validate::MAX_PAGE_SIZE)
}

/// The last row of the page, if there may be another page.
fn page_end(rows: &[SessionRow], page_size: u32) -> Option<&SessionRow> {
    let full = rows.len() >= rows_asked_for(page_size) as usize;
    let last = rows.get((page_size as usize).checked_sub(1)?)?;
    full.then_some(last)
}

/// Where a page ended. Opaque to callers: hex of the time (8 bytes, big-endian) and the session id.
fn page_token(opened_at_us: u64, session: SessionId) -> String {
    let mut bytes = opened_at_us.to_be_bytes().to_vec();
    bytes.extend_from_slice(session.0.as_bytes());
    hex::encode(bytes)
}

/// Where a page starts; `None` for an empty token: at the newest session.
fn position(page_token: &str) -> Result<Option<(u64, SessionId)>, Error> {
    if page_token.is_empty() {
        return Ok(None);
    }
    let malformed = || Error::Malformed("the page token is not one of ours".to_owned());
    let mut bytes = [0; 24];
    hex::decode_to_slice(page_token, &mut bytes).map_err(|_| malformed())?;
    let (time, id) = bytes.split_first_chunk::<8>().ok_or_else(malformed)?;
    let id = uuid::Uuid::from_slice(id).map_err(|_| malformed())?;
    let opened_at_us = u64::from_be_bytes(*time);
    if i64::try_from(opened_at_us).is_err() {
        return Err(malformed());
    }
    Ok(Some((opened_at_us, SessionId(id))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_token_leads_back_to_where_the_page_ended() {
        for (time, request) in [(0, "a"), (1_700_000_000_000_000, "b"), (i64::MAX as u64, "c")] {
            let session = SessionId::for_request("ann", request);
            assert_eq!(
                position(&page_token(time, session)).unwrap(),
                Some((time, session))
            );
        }
        assert_eq!(position("").unwrap(), None);
    }

    #[test]
    fn whatever_else_is_given_as_a_page_token_is_malformed() {
        let good = page_token(7, SessionId::for_request("ann", "a"));
        let beyond_time = page_token(u64::MAX, SessionId::for_request("ann", "a"));
        for token in [
            &good[1..],
            &good[2..],
            &format!("{good}00"),
            "zz",
            " ",
            "\0",
            &"q".repeat(48),
            &beyond_time,
        ] {
            assert!(matches!(position(token), Err(Error::Malformed(_))), "{token}");
        }
    }

    #[test]
    fn a_page_has_a_successor_if_there_is_more_or_nobody_can_tell() {
        let rows = |count: u32| -> Vec<SessionRow> {
            let row = |at: u32| SessionId::for_request("ann", &at.to_string());
            (0..count)
                .map(|at| crate::fixtures::session_row(row(at), |_| ()))
                .collect()
        };
        assert_eq!(rows_asked_for(10), 11);
        let eleven = rows(11);
        assert_eq!(
            page_end(&eleven, 10).map(|row| row.session),
            Some(eleven[9].session)
        );
        assert!(page_end(&rows(10), 10).is_none());
        assert!(page_end(&rows(0), 10).is_none());

        assert_eq!(rows_asked_for(1_000), 1_000);
        let thousand = rows(1_000);
        assert_eq!(
            page_end(&thousand, 1_000).map(|row| row.session),
            Some(thousand[999].session)
        );
        assert!(page_end(&thousand[..999], 1_000).is_none());
        assert!(page_end(&thousand, 999).is_some());
    }

    #[test]
    fn a_number_that_is_no_status_is_shown_as_none() {
        assert_eq!(
            status(LifetimeStatus::Ended.into()),
            i32::from(LifetimeStatus::Ended)
        );
        assert_eq!(status(99), i32::from(LifetimeStatus::Unspecified));
    }
}
