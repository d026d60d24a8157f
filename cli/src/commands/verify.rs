//! `wakelog verify`: compares the hot tail with a fold of the whole log.

use serde_json::json;
use wakelog_archive::ObjectStore;
use wakelog_contract::Exit;
use wakelog_persister::verify::{VerifyPhase, VerifyProgress, VerifyReport, verify};
use wakelog_store::Store;
use wakelog_stream::LogReader;

use crate::args::VerifyArgs;
use crate::config::Settings;
use crate::exit::{Error, with_sources};
use crate::output::{Table, print, print_json, progress};
use crate::services::{archive, connect_store, store_error, stream_error, stream_options};
use crate::up::engines::{Engines, Wanted};

pub(crate) async fn run(settings: &Settings, args: &VerifyArgs) -> Result<Exit, Error> {
    let report = match (&settings.brokers, &settings.database_url) {
        (Some(_), Some(_)) => {
            let store = connect_store(settings).await?;
            let objects = archive::configured(settings)?;
            compare(&store, objects.as_ref(), &stream_options(settings)?).await
        }
        (None, None) => verify_data_dir(settings).await,
        _ => Err(
            Error::usage("verify needs both of --brokers and --database-url, or neither")
                .or_hint("with neither it looks at the data folder of an embedded stack"),
        ),
    }?;
    if args.json {
        print_json(&json_of(&report))?;
    } else {
        print(&text_of(&report))?;
    }
    Ok(if report.is_equal() {
        Exit::Done
    } else {
        Exit::Difference
    })
}

async fn verify_data_dir(settings: &Settings) -> Result<VerifyReport, Error> {
    let data_dir = settings.data_dir()?;
    let wrong = if !data_dir.is_dir() {
        Some("does not exist")
    } else {
        (!Engines::are_in(&data_dir)).then_some("holds no embedded stack")
    };
    if let Some(wrong) = wrong {
        return Err(Error::new(
            Exit::NotFound,
            format!("data folder {} {wrong}", data_dir.display()),
        )
        .or_hint("name another with --data-dir, or give --brokers and --database-url"));
    }
    let wanted = Wanted {
        log: true,
        hot_tail: true,
        archive: true,
    };
    let engines = Engines::start(&data_dir, wanted).await?;
    let report = verify_engines(settings, &engines).await;
    let stopped = engines.stop().await;
    let report = report?;
    stopped?;
    Ok(report)
}

async fn verify_engines(settings: &Settings, engines: &Engines) -> Result<VerifyReport, Error> {
    let no_address = || Error::failed("the embedded engines have no address");
    let stream =
        wakelog_stream::Options::embedded(engines.brokers().ok_or_else(no_address)?, &settings.topic);
    let url = engines.database_url().ok_or_else(no_address)?;
    let store = Store::connect(wakelog_store::Options::single_connection(url))
        .await
        .map_err(store_error)?;
    let objects = engines.archive().map(ObjectStore::new).transpose();
    let objects = objects.map_err(archive::archive_error)?;
    let report = compare(&store, objects.as_ref(), &stream).await;
    store.close().await;
    report
}

async fn compare(
    store: &Store,
    objects: Option<&ObjectStore>,
    stream: &wakelog_stream::Options,
) -> Result<VerifyReport, Error> {
    store.check_schema().await.map_err(store_error)?;
    let reader = LogReader::new(stream).map_err(stream_error)?;
    let bar = progress("verify", Some(0));
    if let Ok(style) = indicatif::ProgressStyle::with_template("verify {msg} {bar:30} {pos}/{len}") {
        bar.set_style(style);
    }
    let report = verify(store, objects, &reader, &stream.topic, |at: &VerifyProgress| {
        let phase = match at.phase {
            VerifyPhase::Folding => "folding",
            VerifyPhase::Comparing => "comparing",
        };
        bar.set_message(format!(
            "partition {} of {}, {phase}",
            at.partition + 1,
            at.partitions
        ));
        bar.set_length(at.total);
        bar.set_position(at.done);
    })
    .await;
    bar.finish_and_clear();
    report.map_err(verify_error)
}

fn verify_error(error: wakelog_persister::Error) -> Error {
    match error {
        wakelog_persister::Error::Store(error) => store_error(error),
        wakelog_persister::Error::Stream(error) => stream_error(error),
        error @ (wakelog_persister::Error::LogHeadEaten { .. }
        | wakelog_persister::Error::LogTooShort { .. }) => Error::dependency(with_sources(&error)).or_hint(
            "`wakelog doctor` with the same --brokers and --database-url says what happened to the log",
        ),
        error => Error::failed(with_sources(&error)),
    }
}

fn json_of(report: &VerifyReport) -> serde_json::Value {
    let partitions: Vec<_> = report
        .partitions
        .iter()
        .map(|partition| {
            json!({
                "partition": partition.partition,
                "next_offset": partition.next_offset,
                "sessions": partition.sessions,
                "parts": partition.parts,
                "archived_entries": partition.archived_entries,
                "quarantined": partition.quarantined,
                "difference_count": partition.difference_count,
                "moving": partition.moving,
                "unsettled_sessions": partition.unsettled_sessions,
            })
        })
        .collect();
    let differences: Vec<_> = report
        .differences
        .iter()
        .map(|difference| {
            json!({
                "partition": difference.partition,
                "session_id": difference.session.map(|session| session.to_string()),
                "kind": difference.kind.name(),
                "what": difference.kind.to_string(),
                "expected": difference.expected,
                "found": difference.found,
            })
        })
        .collect();
    json!({
        "equal": report.is_equal(),
        "moving": report.is_moving(),
        "difference_count": report.difference_count,
        "partitions": partitions,
        "differences": differences,
    })
}

fn text_of(report: &VerifyReport) -> String {
    let mut table = Table::new(&[
        "PARTITION",
        "OFFSET",
        "SESSIONS",
        "PARTS",
        "ARCHIVED",
        "QUARANTINED",
        "DIFFERENCES",
    ]);
    for partition in &report.partitions {
        table.row([
            partition.partition.to_string(),
            partition.next_offset.to_string(),
            partition.sessions.to_string(),
            partition.parts.to_string(),
            partition.archived_entries.to_string(),
            partition.quarantined.to_string(),
            partition.difference_count.to_string(),
        ]);
    }
    let mut text = table.render();
    if report.is_equal() {
        text.push_str("\nhot tail and archive equal the fold of the log\n");
    } else {
        let mut table = Table::new(&["SESSION", "WHAT", "THE LOG SAYS", "THE HOT TAIL SAYS"]);
        for difference in &report.differences {
            let session = difference
                .session
                .map_or("-".to_owned(), |session| session.to_string());
            let what = difference.kind.to_string();
            table.row([
                session,
                what,
                difference.expected.clone(),
                difference.found.clone(),
            ]);
        }
        let listed = report.differences.len();
        text.push_str(&format!(
            "\n{} differences, {listed} shown\n{}",
            report.difference_count,
            table.render()
        ));
    }
    if report.is_moving() {
        text.push_str(
            "the hot tail moved on meanwhile; sessions that were written all the time were not compared\n",
        );
    }
    text
}
