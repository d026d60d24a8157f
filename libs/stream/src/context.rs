//! What librdkafka says besides answering, as logs and metrics.

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
