//! Log and database, if they are named; embedded ones are behind the stack that holds them.

use std::time::Duration;

use wakelog_persister::StopReason;
use wakelog_store::{Progress, Store, Use, Weakness};
use wakelog_stream::{LogReader, check_creatable, describe_topic};

use super::Finding;
use crate::commands::announced;
use crate::config::Settings;
use crate::discovery::Announcement;
use crate::exit::Error;
use crate::services::topic::{
    FEWER_PARTITIONS_HINT, GONE_HINT, OTHER_TOPIC_HINT, UNFINISHED_HINT, fewer_partitions, folded_records,
    gone, other_topic, short_retention, unfinished_rebuild,
};
use crate::services::{connect_unguarded, service_error, store_error, stream_error, stream_options};

const LOG: &str = "log";
const TOPIC: &str = "topic";
const DATABASE: &str = "database";
const SCHEMA: &str = "schema";
const PERSISTER: &str = "persister";

/// An embedded engine is reached by the process that holds it and by no other.
const EMBEDDED: &str = "embedded, so it was not looked at: only its own stack can, and says so on /readyz";

/// The same for one of the user's own that is not named here.
const BEHIND_STACK: &str = "behind their stack, so it was not looked at: the stack says on /readyz whether it answers, this \
                            command looks closer with --brokers and --database-url";

/// How long a partition that is behind may take to move.
const MOVES_WITHIN: Duration = Duration::from_secs(3);

pub(super) struct Log {
    pub(super) findings: Vec<Finding>,
    pub(super) topic: Topic,
}

/// The topic, as far as the log's answers go.
pub(super) enum Topic {
    Unknown,
    Absent {
        /// Whether the first service could create it.
        creatable: bool,
    },
    There(LogReader),
}

impl Topic {
    /// What reads it, if it is there.
    pub(super) fn reader(&self) -> Option<LogReader> {
        match self {
            Self::There(reader) => Some(reader.clone()),
            Self::Unknown | Self::Absent { .. } => None,
        }
    }
}

pub(super) async fn log(settings: &Settings) -> Log {
    if settings.brokers.is_none() {
        return Log {
            findings: vec![not_named(LOG, settings, |announced| announced.embedded_log)],
            topic: Topic::Unknown,
        };
    }
    let mut findings = Vec::new();
    let topic = look_at_log(settings, &mut findings).await;
    Log { findings, topic }
}

/// An engine that is not named is the one of the stack that is used.
fn not_named(
    check: &'static str,
    settings: &Settings,
    is_embedded: impl Fn(&Announcement) -> bool,
) -> Finding {
    let of_stack = announced(settings).ok().flatten();
    // Of a server that is named and not announced, nothing is known.
    let embedded = of_stack.map_or(settings.server.is_none(), |stack| is_embedded(&stack));
    Finding::skip(check, if embedded { EMBEDDED } else { BEHIND_STACK })
}

async fn look_at_log(settings: &Settings, findings: &mut Vec<Finding>) -> Topic {
    let described = match stream_options(settings) {
        Ok(options) => describe_topic(&options)
            .await
            .map_err(stream_error)
            .map(|report| (options, report)),
        Err(error) => Err(error),
    };
    let (options, report) = match described {
        Ok(described) => described,
        Err(error) => {
            findings.push(Finding::error(LOG, error));
            return Topic::Unknown;
        }
    };
    findings.push(Finding::ok(LOG, format!("{} answers", options.brokers)));
    let Some(report) = report else {
        let creatable = check_creatable(&options).await.map_err(stream_error);
        let topic = Topic::Absent {
            creatable: creatable.is_ok(),
        };
        findings.extend(creatable.err().map(|error| Finding::error(TOPIC, error)));
        return topic;
    };
    findings.push(Finding::ok(
        TOPIC,
        format!("{} has {} partitions", options.topic, report.partitions),
    ));
    findings.extend(report.flaws.iter().map(|flaw| match flaw.breaks_durability {
        true => Finding::fail(TOPIC, flaw.what.clone(), flaw.mend),
        false => Finding::warn(TOPIC, flaw.what.clone(), flaw.mend),
    }));
    let retention = short_retention(report.retention, settings.s3.bucket.is_some());
    findings.extend(retention.map(|(short, mend)| Finding::warn(TOPIC, short, mend)));
    match LogReader::new(&options) {
        Ok(reader) => Topic::There(reader),
        Err(error) => {
            findings.push(Finding::error(LOG, stream_error(error)));
            Topic::Unknown
        }
    }
}

pub(super) async fn database(settings: &Settings, log: Topic) -> Vec<Finding> {
    let topic = settings.topic.as_str();
    // Whether an absent topic is a new one or one that has gone, only the database can tell.
    let mut findings: Vec<Finding> = matches!(log, Topic::Absent { creatable: true })
        .then(|| absent(topic))
        .into_iter()
        .collect();
    if settings.database_url.is_none() {
        findings.push(not_named(DATABASE, settings, |announced| {
            announced.embedded_database
        }));
        return findings;
    }
    let store = match connect_unguarded(settings).await {
        Ok(store) => store,
        Err(error) => {
            findings.push(Finding::error(DATABASE, error));
            return findings;
        }
    };
    match store.server_version().await {
        Ok(version) => findings.push(Finding::ok(DATABASE, format!("it answers, version {version}"))),
        Err(error) => findings.push(Finding::error(DATABASE, store_error(error))),
    }
    findings.extend(weaknesses(&store).await);
    match store.check_schema().await {
        Ok(()) => {
            findings.push(Finding::ok(SCHEMA, "all migrations of this build are applied"));
            findings.extend(allowed(&store).await);
            let fit = fit_of_log(&store, log, topic).await;
            if !fit.is_empty() {
                findings.retain(|finding| finding.check != TOPIC);
            }
            findings.extend(fit);
        }
        Err(error) => findings.push(Finding::error(SCHEMA, store_error(error))),
    }
    store.close().await;
    findings
}

/// Whether services could write what they have to, as this user on this server.
async fn allowed(store: &Store) -> Option<Finding> {
    let checked = match store.check_writable().await {
        Ok(()) => store.check_rights(&Use::ALL).await,
        read_only => read_only,
    };
    checked
        .err()
        .map(|error| Finding::error(DATABASE, store_error(error)))
}

/// What the server may lose although it has confirmed it.
async fn weaknesses(store: &Store) -> Vec<Finding> {
    match store.weaknesses().await {
        Ok(found) => {
            let warn = |weak: Weakness| Finding::warn(DATABASE, weak.what, weak.mend);
            found.into_iter().map(warn).collect()
        }
        Err(error) => vec![Finding::error(DATABASE, store_error(error))],
    }
}

/// A topic that nobody has used yet, as far as is known.
fn absent(topic: &str) -> Finding {
    Finding::warn(
        TOPIC,
        format!("topic {topic} does not exist"),
        "the first service that starts creates it",
    )
}

/// Whether the log is the one that was folded, and if so how far.
async fn fit_of_log(store: &Store, log: Topic, topic: &str) -> Vec<Finding> {
    match other_topic(store, topic).await {
        Ok(None) => {}
        Ok(Some(other)) => return vec![Finding::fail(TOPIC, other, OTHER_TOPIC_HINT)],
        Err(error) => return vec![Finding::error(DATABASE, error)],
    }
    match unfinished_rebuild(store).await {
        Ok(None) => {}
        Ok(Some(unfinished)) => return vec![Finding::fail(DATABASE, unfinished, UNFINISHED_HINT)],
        Err(error) => return vec![Finding::error(DATABASE, error)],
    }
    let reader = match log {
        Topic::Unknown => return Vec::new(),
        Topic::There(reader) => reader,
        Topic::Absent { .. } => {
            return match folded_records(store, topic).await {
                Ok(0) => Vec::new(),
                Ok(folded) => vec![Finding::fail(TOPIC, gone(topic, folded), GONE_HINT)],
                Err(error) => vec![Finding::error(DATABASE, error)],
            };
        }
    };
    match fewer_than_folded(store, &reader, topic).await {
        Ok(None) => {}
        Ok(Some(fewer)) => return vec![Finding::fail(TOPIC, fewer, FEWER_PARTITIONS_HINT)],
        Err(error) => return vec![Finding::error(LOG, error)],
    }
    let misfits = misfits(store, &reader, topic).await;
    // Lags of a log that is another one say nothing.
    match misfits.is_empty() {
        true => persister(store, &reader, topic).await,
        false => misfits,
    }
}

async fn fewer_than_folded(store: &Store, reader: &LogReader, topic: &str) -> Result<Option<String>, Error> {
    let partitions = reader.partition_count().await.map_err(stream_error)?;
    fewer_partitions(store, topic, partitions).await
}

/// The partitions whose log is not, or not wholly, the one that was folded.
async fn misfits(store: &Store, reader: &LogReader, topic: &str) -> Vec<Finding> {
    let progress = match store.progress_of_topic(topic).await {
        Ok(progress) => progress,
        Err(error) => return vec![Finding::error(PERSISTER, store_error(error))],
    };
    let mut findings = Vec::new();
    for partition in progress {
        match wakelog_persister::log_fits(&partition, reader).await {
            Ok(None) => {}
            Ok(Some(reason)) => findings.push(Finding::fail(
                LOG,
                format!("partition {} stops: {reason}", partition.partition),
                remedy(&reason),
            )),
            Err(error) => findings.push(Finding::error(LOG, service_error("persister", &error))),
        }
    }
    findings
}

fn remedy(reason: &StopReason) -> &'static str {
    match reason {
        StopReason::RetentionHole { .. } => {
            "the topic's retention was shorter than the persister was away; raise it, and build a new database with `wakelog \
             replay --from-archive`: it says what the archive does not cover"
        }
        StopReason::LogReplaced { .. } | StopReason::BeyondEnd { .. } => {
            "was the topic deleted and made again, or did its broker lose its disk? Put the old log back, or start on a new \
             database with a topic of another name"
        }
        _ => "its persister's log and /readyz say more",
    }
}

async fn persister(store: &Store, reader: &LogReader, topic: &str) -> Vec<Finding> {
    let partitions = match reader.partition_count().await {
        Ok(partitions) => partitions,
        Err(error) => return vec![Finding::error(PERSISTER, stream_error(error))],
    };
    let before = match lags(store, reader, topic, partitions).await {
        Ok(before) => before,
        Err(finding) => return vec![finding],
    };
    if before.iter().all(|lag| lag.records == 0) {
        return vec![Finding::ok(
            PERSISTER,
            format!("all {partitions} partitions are folded to their end"),
        )];
    }
    // A lag by itself is no illness, one that does not shrink is.
    tokio::time::sleep(MOVES_WITHIN).await;
    let after = match lags(store, reader, topic, partitions).await {
        Ok(after) => after,
        Err(finding) => return vec![finding],
    };
    before
        .iter()
        .zip(&after)
        .filter_map(|(before, after)| judge(before, after))
        .collect()
}

/// How far one partition is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lag {
    partition: i32,
    next_offset: i64,
    records: i64,
}

fn judge(before: &Lag, after: &Lag) -> Option<Finding> {
    if after.records == 0 {
        return None;
    }
    let Lag {
        partition,
        next_offset,
        records,
    } = *after;
    if before.next_offset < next_offset {
        return Some(Finding::ok(
            PERSISTER,
            format!("partition {partition} is {records} records behind and moves"),
        ));
    }
    Some(Finding::fail(
        PERSISTER,
        format!(
            "partition {partition} is {records} records behind, at offset {next_offset}, and does not move"
        ),
        "is a persister running? The /readyz of the persister names partitions that are stopped, and why",
    ))
}

async fn lags(store: &Store, reader: &LogReader, topic: &str, partitions: i32) -> Result<Vec<Lag>, Finding> {
    let progress = store
        .progress_of_topic(topic)
        .await
        .map_err(|error| Finding::error(PERSISTER, store_error(error)))?;
    let mut lags = Vec::new();
    for partition in 0..partitions {
        let watermarks = reader.watermarks(partition).await;
        let watermarks = watermarks.map_err(|error| Finding::error(PERSISTER, stream_error(error)))?;
        let of_partition = |progress: &&Progress| progress.partition == partition;
        let next_offset = progress
            .iter()
            .find(of_partition)
            .map_or(0, |progress| progress.next_offset);
        lags.push(Lag {
            partition,
            next_offset,
            records: (watermarks.high - next_offset).max(0),
        });
    }
    Ok(lags)
}
