//! `wakelog segments ls`: what the manifest has.

use serde_json::{Value, json};
use wakelog_contract::Exit;
use wakelog_model::SessionId;
use wakelog_store::SegmentRow;

use super::parse_session;
use super::place::Place;
use crate::args::SegmentsLsArgs;
use crate::config::Settings;
use crate::exit::Error;
use crate::output::{Table, print, print_json, utc};
use crate::services::store_error;

/// Rows that are read at a time; a table is printed for each such page.
const PAGE: u32 = 1_000;

pub(super) async fn run(settings: &Settings, args: &SegmentsLsArgs) -> Result<Exit, Error> {
    let session = args.session.as_deref().map(parse_session).transpose()?;
    let place = Place::open(settings).await?;
    let listed = list(&place, session, args.json).await;
    place.close(listed).await?;
    Ok(Exit::Done)
}

async fn list(place: &Place, session: Option<SessionId>, json: bool) -> Result<(), Error> {
    if let Some(session) = session {
        place.check_session(session).await?;
    }
    let mut last: Option<SegmentRow> = None;
    loop {
        let after = last.as_ref().map(|row| row.key.as_str());
        let page = match session {
            Some(session) => place.store.segments_page(session, after, PAGE).await,
            None => {
                let after = last.as_ref().map(|row| (row.session, row.key.as_str()));
                place.store.all_segments_page(after, PAGE).await
            }
        }
        .map_err(store_error)?;
        let is_first = last.is_none();
        if json {
            for row in &page {
                print_json(&json_of(row))?;
            }
        } else if is_first || !page.is_empty() {
            print(&table_of(&page))?;
        }
        match page.into_iter().next_back() {
            Some(row) => last = Some(row),
            None => return Ok(()),
        }
    }
}

fn json_of(row: &SegmentRow) -> Value {
    json!({
        "key": row.key,
        "session_id": row.session.to_string(),
        "min_entry_seq": row.min_entry_seq,
        "max_entry_seq": row.max_entry_seq,
        "kind": row.kind.name(),
        "entries": row.entries,
        "plain_bytes": row.plain_bytes,
        "object_bytes": row.object_bytes,
        "object_digest": hex::encode(row.object_digest),
        "archived_at_ms": row.archived_at_ms,
    })
}

fn table_of(page: &[SegmentRow]) -> String {
    let mut table = Table::new(&["ENTRIES", "KIND", "PLAIN", "OBJECT", "ARCHIVED", "KEY"]);
    for row in page {
        table.row([
            format!("{}-{}", row.min_entry_seq, row.max_entry_seq),
            row.kind.name().to_owned(),
            row.plain_bytes.to_string(),
            row.object_bytes.to_string(),
            utc(row.archived_at_ms),
            row.key.clone(),
        ]);
    }
    table.render()
}
