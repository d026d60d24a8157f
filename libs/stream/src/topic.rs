//! How the topic is created, and which settings of it are worth a warning.

use std::collections::HashMap;
use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::error::RDKafkaErrorCode;

use crate::config;
use crate::context::QuietContext;
use crate::error::Error;
use crate::options::Options;
use crate::reader::LogReader;
use crate::retry::{RetryPolicy, retry};

#[cfg(test)]
mod tests;

/// The largest record that services publish: a part of 512 KiB, its key and what the encoding adds.
const LARGEST_RECORD: i64 = (512 + 64) << 10;

/// What the topic is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicReport {
    /// How many partitions it has.
    pub partitions: i32,
    /// Whether this call made it.
    pub created: bool,
    /// How long it keeps its records; `None`: for ever, or the broker does not say.
    pub retention: Option<Duration>,
    /// Settings that weaken a guarantee, one sentence each.
    pub warnings: Vec<String>,
}

/// Creates the topic if there is none, and looks at its settings in any case.
pub async fn ensure_topic(options: &Options) -> Result<TopicReport, Error> {
    if let Some(report) = describe_topic(options).await? {
        return Ok(report);
    }
    let admin = Admin::new(options)?;
    let created = admin.create_topic().await;
    admin.close().await;
    let created = created?;
    // A new topic takes a moment to reach every broker.
    let policy = RetryPolicy::within(options.request_timeout);
    let not_there = || Error::NoTopic {
        topic: options.topic.clone(),
    };
    let report = retry(
        policy,
        |error: &Error| matches!(error, Error::NoTopic { .. }) || error.is_transient(),
        || async { describe_topic(options).await?.ok_or_else(not_there) },
    )
    .await?;
    Ok(TopicReport { created, ..report })
}

/// Looks at the topic and its settings; `None` if there is none.
pub async fn describe_topic(options: &Options) -> Result<Option<TopicReport>, Error> {
    let partitions = match LogReader::new(options)?.partition_count().await {
        Ok(partitions) => partitions,
        Err(Error::NoTopic { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    // The embedded broker reports only what was set explicitly.
    let (retention, warnings) = match options.embedded {
        true => (None, Vec::new()),
        false => look_at_settings(options).await?,
    };
    for warning in &warnings {
        tracing::warn!(topic = options.topic, warning, "topic setting");
    }
    Ok(Some(TopicReport {
        partitions,
        created: false,
        retention,
        warnings,
    }))
}

async fn look_at_settings(options: &Options) -> Result<(Option<Duration>, Vec<String>), Error> {
    let admin = Admin::new(options)?;
    let settings = admin.settings().await;
    admin.close().await;
    Ok(settings.map_or_else(
        |error| {
            let warning = format!("the settings of the topic can't be read: {error}");
            (None, vec![warning])
        },
        |settings| (retention_of(&settings), warnings_of(&settings)),
    ))
}

struct Admin<'a> {
    client: AdminClient<QuietContext>,
    options: &'a Options,
}

impl<'a> Admin<'a> {
    fn new(options: &'a Options) -> Result<Self, Error> {
        let client = config::admin(options)?
            .create_with_context(QuietContext)
            .map_err(|error| Error::from_kafka("create admin client", error))?;
        Ok(Self { client, options })
    }

    /// Dropping the client joins its thread.
    async fn close(self) {
        let client = self.client;
        tokio::task::spawn_blocking(move || drop(client)).await.ok();
    }

    /// Whether it was made by this call.
    async fn create_topic(&self) -> Result<bool, Error> {
        let mut settings = vec![("cleanup.policy", "delete")];
        if !self.options.embedded {
            settings.push(("message.timestamp.type", "LogAppendTime"));
            settings.push(("retention.bytes", "-1"));
            if self.options.replication >= 3 {
                settings.push(("min.insync.replicas", "2"));
            }
        }
        match self.create_topic_with(&settings).await {
            Err(Error::Kafka { source, .. }) if is_refused_setting(source.rdkafka_error_code()) => {
                tracing::warn!(
                    topic = self.options.topic,
                    "broker refuses topic settings, its defaults are taken"
                );
                self.create_topic_with(&[]).await
            }
            outcome => outcome,
        }
    }

    async fn create_topic_with(&self, settings: &[(&str, &str)]) -> Result<bool, Error> {
        let operation = "create topic";
        let replication = TopicReplication::Fixed(self.options.replication);
        let topic = NewTopic::new(&self.options.topic, self.options.partitions, replication);
        let topic = settings
            .iter()
            .fold(topic, |topic, (key, value)| topic.set(key, value));
        let admin_options = self
            .admin_options()
            .operation_timeout(Some(self.options.request_timeout));
        let answers = self
            .bounded(operation, self.client.create_topics(&[topic], &admin_options))
            .await?;
        match answers.into_iter().next() {
            Some(Ok(_)) => Ok(true),
            Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => Ok(false),
            Some(Err((_, RDKafkaErrorCode::InvalidReplicationFactor))) => Err(Error::TooFewBrokers {
                topic: self.options.topic.clone(),
                replication: self.options.replication,
            }),
            Some(Err((_, code))) => Err(Error::from_code(operation, code)),
            None => Err(Error::from_code(operation, RDKafkaErrorCode::Unknown)),
        }
    }

    async fn settings(&self) -> Result<HashMap<String, String>, Error> {
        let operation = "describe topic settings";
        let topic = [ResourceSpecifier::Topic(&self.options.topic)];
        let admin_options = self.admin_options();
        let answers = self
            .bounded(operation, self.client.describe_configs(&topic, &admin_options))
            .await?;
        match answers.into_iter().next() {
            Some(Ok(ConfigResource { entries, .. })) => Ok(entries
                .into_iter()
                .filter_map(|entry| Some((entry.name, entry.value?)))
                .collect()),
            Some(Err(code)) => Err(Error::from_code(operation, code)),
            None => Err(Error::from_code(operation, RDKafkaErrorCode::Unknown)),
        }
    }

    fn admin_options(&self) -> AdminOptions {
        AdminOptions::new().request_timeout(Some(self.options.request_timeout))
    }

    /// The client has a bound of its own; this one is for the case that it does not keep it.
    async fn bounded<T>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<T, rdkafka::error::KafkaError>>,
    ) -> Result<T, Error> {
        let bound = self.options.request_timeout + Duration::from_secs(1);
        match tokio::time::timeout(bound, answer).await {
            Ok(answer) => answer.map_err(|error| match error {
                rdkafka::error::KafkaError::AdminOp(code) => Error::from_code(operation, code),
                error => Error::from_kafka(operation, error),
            }),
            Err(_) => Err(Error::TimedOut { operation, bound }),
        }
    }
}

fn is_refused_setting(code: Option<RDKafkaErrorCode>) -> bool {
    matches!(
        code,
        Some(
            RDKafkaErrorCode::InvalidConfig
                | RDKafkaErrorCode::PolicyViolation
                | RDKafkaErrorCode::InvalidRequest
        )
    )
}

/// How long records are kept; -1 is for ever.
fn retention_of(settings: &HashMap<String, String>) -> Option<Duration> {
    let milliseconds = settings.get("retention.ms")?.parse().ok()?;
    Some(Duration::from_millis(milliseconds))
}

/// What of these settings weakens a guarantee. A setting that the broker does not report is not judged.
fn warnings_of(settings: &HashMap<String, String>) -> Vec<String> {
    let text = |name: &str| settings.get(name).map(String::as_str);
    let number = |name: &str| text(name).and_then(|value| value.parse::<i64>().ok());
    let mut warnings = Vec::new();
    if let Some(policy) = text("cleanup.policy").filter(|policy| *policy != "delete") {
        warnings.push(format!(
            "cleanup.policy is {policy:?}: compaction deletes entries, it must be \"delete\""
        ));
    }
    if let Some(kind) = text("message.timestamp.type").filter(|kind| *kind != "LogAppendTime") {
        warnings.push(format!(
            "message.timestamp.type is {kind:?}: retention then depends on producers' clocks, it should be \
             \"LogAppendTime\""
        ));
    }
    if let Some(bytes) = number("retention.bytes").filter(|bytes| *bytes >= 0) {
        warnings.push(format!(
            "retention.bytes is {bytes}: a busy partition loses records before their time, it should be -1"
        ));
    }
    if number("min.insync.replicas") == Some(1) {
        warnings.push(
            "min.insync.replicas is 1: an acknowledged record may exist on one broker only and be lost with it"
                .to_owned(),
        );
    }
    if let Some(bytes) = number("max.message.bytes").filter(|bytes| *bytes < LARGEST_RECORD) {
        warnings.push(format!(
            "max.message.bytes is {bytes}: a full part does not fit, it must be at least {LARGEST_RECORD}"
        ));
    }
    warnings
}
