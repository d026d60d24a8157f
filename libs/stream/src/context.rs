//! What librdkafka says besides answering, as logs and metrics.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// For clients that need no callbacks.
pub(crate) struct QuietContext;

impl ClientContext for QuietContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log_line(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        log_error(&error, reason);
    }
}

impl ConsumerContext for QuietContext {}

/// For a client whose calls say only that no broker answered: keeps what it said besides.
#[derive(Default)]
pub(crate) struct RememberingContext {
    last: Mutex<Option<Trouble>>,
}

/// What a client said last that is no mere consequence of something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) code: RDKafkaErrorCode,
    pub(crate) reason: String,
}

impl RememberingContext {
    /// What was said last, and forgets it.
    pub(crate) fn take(&self) -> Option<Trouble> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Trouble>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for RememberingContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log_line(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        log_error(&error, reason);
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
        if code != RDKafkaErrorCode::AllBrokersDown {
            let reason = reason.to_owned();
            *self.lock() = Some(Trouble { code, reason });
        }
    }
}

impl ConsumerContext for RememberingContext {}

pub(crate) fn log_line(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg
        | RDKafkaLogLevel::Alert
        | RDKafkaLogLevel::Critical
        | RDKafkaLogLevel::Error
        | RDKafkaLogLevel::Warning => tracing::warn!(facility, message, "broker client warns"),
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
            tracing::info!(facility, message, "broker client says");
        }
        RDKafkaLogLevel::Debug => tracing::debug!(facility, message, "broker client says"),
    }
}

pub(crate) fn log_error(error: &KafkaError, reason: &str) {
    let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
    metrics::counter!("wakelog_stream_client_errors_total", "code" => format!("{code:?}")).increment(1);
    match code {
        // Repeated many times a second while brokers are away, which the client's own log lines say as well.
        RDKafkaErrorCode::AllBrokersDown | RDKafkaErrorCode::BrokerTransportFailure => {
            tracing::debug!(?code, reason, "broker client reports an error");
        }
        _ => tracing::warn!(?code, reason, "broker client reports an error"),
    }
}
