//! `wakelog segments verify`: whether the archive is what the manifest says, and what nothing records.

use std::time::Duration;

use serde_json::{Value, json};
use wakelog_archiver::inspect::{InspectProgress, InspectReport, Inspection, inspect};
use wakelog_contract::Exit;
use wakelog_model::SessionId;

use super::parse_session;
use super::place::Place;
use crate::args::SegmentsVerifyArgs;
use crate::config::Settings;
use crate::exit::{Error, with_sources};
use crate::output::{Table, print, print_json, progress};
use crate::services::archive::archive_error;
use crate::services::store_error;

pub(super) async fn run(settings: &Settings, args: &SegmentsVerifyArgs) -> Result<Exit, Error> {
    let session = args.session.as_deref().map(parse_session).transpose()?;
    let older_than = args.delete.then(|| Duration::from_secs(args.older_than));
    let place = Place::open(settings).await?;
    let looked = look(&place, session, older_than).await;
    let report = place.close(looked).await?;
    if args.json {
        print_json(&json_of(&report))?;
    } else {
        print(&text_of(&report))?;
    }
    Ok(match report.is_good() {
        true => Exit::Done,
        false => Exit::Difference,
    })
}

async fn look(
    place: &Place,
    session: Option<SessionId>,
    delete_older_than: Option<Duration>,
) -> Result<InspectReport, Error> {
    if let Some(session) = session {
        place.check_session(session).await?;
    }
    let inspection = Inspection {
        store: &place.store,
        objects: &place.objects,
        session,
        delete_older_than,
    };
    let bar = progress("verify", None);
    if let Ok(style) = indicatif::ProgressStyle::with_template("verify {spinner} {msg}") {
        bar.set_style(style);
    }
    let report = inspect(inspection, |at: InspectProgress| {
        bar.set_message(format!("{} segments, {} objects", at.segments, at.objects));
    })
    .await;
    bar.finish_and_clear();
    report.map_err(|error| match error {
        wakelog_archiver::Error::Store(error) => store_error(error),
        wakelog_archiver::Error::Archive(error) => archive_error(error),
        error => Error::failed(with_sources(&error)),
    })
}

fn json_of(report: &InspectReport) -> Value {
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "key": finding.key,
                "session_id": finding.session.map(|session| session.to_string()),
                "what": finding.what.name(),
                "detail": finding.detail,
            })
        })
        .collect();
    json!({
        "good": report.is_good(),
        "segments": report.segments,
        "object_bytes": report.object_bytes,
        "objects": report.objects,
        "missing": report.missing,
        "damaged": report.damaged,
        "holes": report.holes,
        "orphans": report.orphans,
        "deleted": report.deleted,
        "staged": report.staged,
        "foreign": report.foreign,
        "findings": findings,
    })
}

fn text_of(report: &InspectReport) -> String {
    let mut text = String::new();
    if !report.findings.is_empty() {
        let mut table = Table::new(&["WHAT", "OBJECT", "DETAIL"]);
        for finding in &report.findings {
            table.row([
                finding.what.name().to_owned(),
                finding.key.clone(),
                finding.detail.clone(),
            ]);
        }
        text = format!("{}\n", table.render());
    }
    text.push_str(&format!(
        "{} segments with {} bytes: {} missing, {} damaged; {} holes between them and the hot tail\n",
        report.segments, report.object_bytes, report.missing, report.damaged, report.holes
    ));
    text.push_str(&format!(
        "{} objects: {} that nothing records, of which {} were deleted; {} announced, {} foreign\n",
        report.objects, report.orphans, report.deleted, report.staged, report.foreign
    ));
    text
}
