//! How a process is asked to stop: once to drain, twice to end at once.

use tokio_util::sync::CancellationToken;

use crate::exit::Error;

/// A token that the first SIGTERM or SIGINT cancels. The second ends the process at once.
pub(crate) fn shutdown_token() -> Result<CancellationToken, Error> {
    let token = CancellationToken::new();
    let mut signals = Signals::listen()?;
    let asked = token.clone();
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("asked to stop, draining; a second signal ends at once");
        asked.cancel();
        signals.next().await;
        tracing::warn!("asked to stop again, ending at once");
        std::process::exit(i32::from(wakelog_contract::Exit::Failed.code()));
    });
    Ok(token)
}

/// Waits for the first SIGTERM or SIGINT. For what has nothing to drain: who waits drops what it is doing.
pub(crate) async fn asked_to_stop() -> Result<(), Error> {
    Signals::listen()?.next().await;
    Ok(())
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> Result<Self, Error> {
        use tokio::signal::unix::{SignalKind, signal};
        let wrong = |error: std::io::Error| Error::io("listening for signals", &error);
        let terminate = signal(SignalKind::terminate()).map_err(wrong)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(wrong)?;
        Ok(Self { terminate, interrupt })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Result<Self, Error> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
