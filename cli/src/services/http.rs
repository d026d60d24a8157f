//! `/healthz`, `/readyz` and `/metrics`.

use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;

use super::health::Health;
use crate::exit::Error;

/// How often histograms are folded, so that they do not grow without a scrape.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Seconds: from a fast append to a slow resume.
const SECONDS_BUCKETS: [f64; 15] = [
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// The recorder is the process's, whatever is started how often in it.
static RECORDER: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

#[derive(Clone)]
struct Page {
    health: Health,
    metrics: PrometheusHandle,
}

/// Serves the pages until `shutdown`.
pub(crate) async fn serve(
    listener: TcpListener,
    health: Health,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let wrong = |error: std::io::Error| Error::io("the http listener", &error);
    let listener = tokio::net::TcpListener::from_std(listener).map_err(wrong)?;
    let metrics = recorder()?;
    let upkeep = keep_up(metrics.clone());
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_page))
        .with_state(Page { health, metrics });
    let server = axum::serve(listener, router).with_graceful_shutdown(shutdown.cancelled_owned());
    tokio::select! {
        served = server.into_future() => served.map_err(wrong),
        never = upkeep => match never {},
    }
}

/// The process's metrics recorder, installed at the first call.
pub(crate) fn recorder() -> Result<PrometheusHandle, Error> {
    let mut recorder = RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = recorder.as_ref() {
        return Ok(handle.clone());
    }
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| Error::failed(format!("the metrics recorder: {error}")))?;
    metrics::gauge!("wakelog_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    *recorder = Some(handle.clone());
    Ok(handle)
}

async fn keep_up(metrics: PrometheusHandle) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(UPKEEP_INTERVAL).await;
        metrics.run_upkeep();
    }
}

async fn readyz(State(page): State<Page>) -> impl IntoResponse {
    let obstacles = page.health.obstacles();
    if obstacles.is_empty() {
        return (StatusCode::OK, "ready\n".to_owned());
    }
    (StatusCode::SERVICE_UNAVAILABLE, obstacles.join("\n") + "\n")
}

async fn metrics_page(State(page): State<Page>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        page.metrics.render(),
    )
}
