//! How the topic is created, and what is known of it.

use std::collections::HashMap;
use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, ConfigResource, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::error::RDKafkaErrorCode;

use crate::config;
use crate::context::QuietContext;
use crate::error::Error;
use crate::flaws::{self, Flaw};
use crate::greeting;
use crate::options::Options;
use crate::reader::{Layout, LogReader};
use crate::retry::{RetryPolicy, retry};

/// What the topic is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicReport {
    /// How many partitions it has.
    pub partitions: i32,
    /// Whether this call made it.
    pub created: bool,
    /// How long it keeps its records; `None`: for ever, or the broker does not say.
    pub retention: Option<Duration>,
    /// What of it weakens a guarantee, or breaks one.
    pub flaws: Vec<Flaw>,
}

/// Creates the topic if there is none, and looks at its settings in any case.
pub async fn ensure_topic(options: &Options) -> Result<TopicReport, Error> {
    if let Some(report) = describe_topic(options).await? {
        return Ok(report);
    }
    let admin = Admin::new(options)?;
    let created = admin.create_topic(Creation::Real).await;
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
    let layout = match LogReader::new(options)?.layout().await {
        Ok(layout) => Some(layout),
        Err(Error::NoTopic { .. }) => None,
        Err(error) if options.embedded => return Err(error),
        Err(error) => return Err(greeting::explain(options, error).await),
    };
    if !options.embedded {
        greeting::check_version(options).await?;
    }
    let Some(layout) = layout else {
        return Ok(None);
    };
    // The embedded broker reports only what was set explicitly.
    let (retention, flaws) = match options.embedded {
        true => (None, Vec::new()),
        false => look_at_settings(options, layout).await?,
    };
    Ok(Some(TopicReport {
        partitions: layout.partitions,
        created: false,
        retention,
        flaws,
    }))
}

/// Whether the topic could be created as the options say. Creates nothing.
pub async fn check_creatable(options: &Options) -> Result<(), Error> {
    // The embedded broker creates what it is asked for.
    if options.embedded {
        return Ok(());
    }
    let admin = Admin::new(options)?;
    let checked = admin.create_topic(Creation::Trial).await;
    admin.close().await;
    checked.map(drop)
}

async fn look_at_settings(options: &Options, layout: Layout) -> Result<(Option<Duration>, Vec<Flaw>), Error> {
    let admin = Admin::new(options)?;
    let settings = admin.settings().await;
    admin.close().await;
    let mut flaws = flaws::of_layout(options, layout);
    Ok(match settings {
        Ok(settings) => {
            flaws.extend(flaws::of_settings(options, &settings));
            (retention_of(&settings), flaws)
        }
        Err(error) => {
            flaws.push(flaws::unreadable(&error));
            (None, flaws)
        }
    })
}

/// Whether the topic is created, or only the broker asked whether it would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Creation {
    Real,
    Trial,
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
    async fn create_topic(&self, creation: Creation) -> Result<bool, Error> {
        let mut settings = vec![("cleanup.policy", "delete")];
        if !self.options.embedded {
            settings.push(("message.timestamp.type", "LogAppendTime"));
            settings.push(("retention.bytes", "-1"));
            if self.options.replication >= flaws::REPLICAS_THAT_MAY_LOSE_ONE {
                settings.push(("min.insync.replicas", "2"));
            }
        }
        match self.create_topic_with(&settings, creation).await {
            Err(Error::Kafka { source, .. }) if is_refused_setting(source.rdkafka_error_code()) => {
                tracing::warn!(
                    topic = self.options.topic,
                    "broker refuses topic settings, its defaults are taken"
                );
                self.create_topic_with(&[], creation).await
            }
            outcome => outcome,
        }
    }

    async fn create_topic_with(&self, settings: &[(&str, &str)], creation: Creation) -> Result<bool, Error> {
        let operation = "create topic";
        let replication = TopicReplication::Fixed(self.options.replication);
        let topic = NewTopic::new(&self.options.topic, self.options.partitions, replication);
        let topic = settings
            .iter()
            .fold(topic, |topic, (key, value)| topic.set(key, value));
        let admin_options = self
            .admin_options()
            .operation_timeout(Some(self.options.request_timeout))
            .validate_only(creation == Creation::Trial);
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
