//! `wakelog replay`: builds an empty database again, from the topic or from the archive and the rest of the topic.

mod shown;
mod source;

use std::sync::Arc;

use wakelog_contract::Exit;
use wakelog_persister::StopReason;
use wakelog_persister::replay::{Hear, Replay, ReplayReport, replay};
use wakelog_store::Store;
use wakelog_stream::{LogReader, describe_topic};

use crate::args::ReplayArgs;
use crate::config::Settings;
use crate::exit::{Error, with_sources};
use crate::output::{print, print_json, progress};
use crate::services::{archive, signals, store_error, stream_error};
use source::Source;

pub(crate) async fn run(settings: &Settings, args: &ReplayArgs) -> Result<Exit, Error> {
    let source = Source::open(settings, args.from_archive).await?;
    let outcome = build(&source, args).await;
    let report = source.close(outcome).await?;
    match args.json {
        true => print_json(&shown::json_of(&report))?,
        false => print(&shown::text_of(&report, args.from_archive))?,
    }
    Ok(match report.is_complete() {
        true => Exit::Done,
        false => Exit::Difference,
    })
}

async fn build(source: &Source, args: &ReplayArgs) -> Result<ReplayReport, Error> {
    let topic = &source.stream.topic;
    if describe_topic(&source.stream)
        .await
        .map_err(stream_error)?
        .is_none()
    {
        let topic = topic.clone();
        return Err(stream_error(wakelog_stream::Error::NoTopic { topic }));
    }
    // A batch in flight is finished, then it ends.
    let shutdown = signals::shutdown_token()?;
    let store = Store::connect(wakelog_store::Options::unguarded(&args.into))
        .await
        .map_err(|error| {
            store_error(error).with_hint("is --into right? Wakelog creates no database, `createdb` does")
        })?;
    let outcome = async {
        let what = Replay {
            store: store.clone(),
            objects: source.objects.clone(),
            reader: LogReader::new(&source.stream).map_err(stream_error)?,
            topic: topic.clone(),
            accept_undecodable: args.accept_undecodable,
        };
        let bar = progress("replay", None);
        let shown = shown::Shown::on(bar.clone());
        let hear: Hear = Arc::new(move |at| shown.hear(at));
        let report = replay(&what, &shutdown, &hear).await;
        bar.finish_and_clear();
        report.map_err(replay_error)
    }
    .await;
    store.close().await;
    outcome
}

fn replay_error(error: wakelog_persister::Error) -> Error {
    use wakelog_persister::Error as Replaying;
    match error {
        Replaying::Store(error) => refused_target(error),
        error @ Replaying::OtherReplay { .. } => {
            Error::refused(with_sources(&error)).or_hint("run that one again, or give another empty database")
        }
        error @ Replaying::OtherOwner { .. } => Error::refused(with_sources(&error))
            .or_hint("is another replay running on this database?"),
        error @ Replaying::OtherLog(_) => Error::dependency(with_sources(&error))
            .or_hint("are --topic, --brokers and --s3-bucket right? A topic that was made anew has an archive of its own"),
        error @ Replaying::Coverage { .. } => Error::dependency(with_sources(&error)).or_hint(
            "an archiver of another version wrote it, or it is damaged; one that runs on the topic's database writes it anew",
        ),
        error @ Replaying::DroppedMeanwhile { .. } => Error::refused(with_sources(&error))
            .or_hint("drop this database, and run the same command into another empty one"),
        Replaying::Interrupted => {
            Error::failed("interrupted").or_hint("the same command goes on where this one stopped")
        }
        error @ Replaying::LogTooShort { .. } => Error::dependency(with_sources(&error)).or_hint(
            "was the topic made anew, or did it lose its end? What was archived belongs to a longer log",
        ),
        error @ Replaying::Stopped {
            reason: StopReason::Undecodable { .. },
            ..
        } => Error::dependency(with_sources(&error)).or_hint(
            "a newer wakelog may have written them: use that version; --accept-undecodable puts them aside",
        ),
        error @ Replaying::Stopped { .. } => Error::dependency(with_sources(&error))
            .or_hint("the same command goes on where this one stopped, once that is mended"),
        Replaying::Stream(error) => stream_error(error),
        Replaying::Archive(error) => archive::archive_error(error),
        error => Error::failed(with_sources(&error)),
    }
}

/// Why nothing can be built in this database, or not now.
fn refused_target(error: wakelog_store::Error) -> Error {
    use wakelog_store::Error as Target;
    let hint = match &error {
        Target::NotEmpty => {
            "--into names an empty database: a replay adds nothing to one that holds something"
        }
        Target::AlreadyBuilt { .. } => "there is nothing to do; to build another one, name an empty database",
        Target::InUse { .. } => {
            "stop the services that were started on this database: a replay needs it for itself"
        }
        Target::RebuildRunning | Target::RebuildFenced => {
            "wait for it; when it was interrupted, the same command goes on where it stopped"
        }
        _ => return store_error(error),
    };
    Error::refused(with_sources(&error)).or_hint(hint)
}
