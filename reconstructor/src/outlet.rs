//! Handing messages to a receiver that may be slow, or gone.

use std::pin::Pin;
use std::time::Duration;

use futures::Stream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::Error;

/// Messages between the task that makes them and the receiver.
const QUEUED_MESSAGES: usize = 2;

/// A response stream.
pub(crate) type Outgoing<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Where a call's task puts its messages.
pub(crate) struct Outlet<T> {
    sender: mpsc::Sender<T>,
    stopped: CancellationToken,
    receiver_timeout: Duration,
}

impl<T> Outlet<T> {
    /// Waits until the receiver has room, and hands over the message.
    pub(crate) async fn send(&self, message: T) -> Result<(), Error> {
        let room = tokio::select! {
            room = tokio::time::timeout(self.receiver_timeout, self.sender.reserve()) => room,
            () = self.stopped.cancelled() => return Err(Error::ShuttingDown),
        };
        match room {
            Ok(Ok(permit)) => {
                permit.send(message);
                Ok(())
            }
            Ok(Err(_)) => Err(Error::Abandoned),
            Err(_) => Err(Error::StalledReceiver(self.receiver_timeout)),
        }
    }

    /// Ends when the receiver has gone.
    pub(crate) async fn receiver_gone(&self) {
        self.sender.closed().await;
    }
}

/// How the call's task says how it ended.
pub(crate) type Ending = oneshot::Sender<Result<(), Error>>;

/// An outlet, the way to say how it ended, and the response stream.
///
/// The stream ends well only if its task says so: what breaks off, for whatever reason, ends with an error after the
/// messages that were handed over.
pub(crate) fn outlet<T: Send + 'static>(
    stopped: CancellationToken,
    receiver_timeout: Duration,
) -> (Outlet<T>, Ending, Outgoing<T>) {
    let (sender, mut messages) = mpsc::channel(QUEUED_MESSAGES);
    let (ending, ended) = oneshot::channel();
    let stream = async_stream::stream! {
        while let Some(message) = messages.recv().await {
            yield Ok(message);
        }
        if let Err(error) = ended.await.unwrap_or(Err(Error::TaskDied)) {
            yield Err(error.into_status());
        }
    };
    (
        Outlet {
            sender,
            stopped,
            receiver_timeout,
        },
        ending,
        Box::pin(stream),
    )
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use tonic::Code;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_stream_ends_well_only_if_its_task_says_so() {
        let (outlet, ending, mut stream) = outlet::<u8>(CancellationToken::new(), TIMEOUT);
        outlet.send(1).await.unwrap();
        drop(outlet);
        ending.send(Ok(())).unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn an_error_comes_after_the_messages_that_were_handed_over() {
        let (outlet, ending, mut stream) = outlet::<u8>(CancellationToken::new(), TIMEOUT);
        outlet.send(1).await.unwrap();
        outlet.send(2).await.unwrap();
        drop(outlet);
        ending.send(Err(Error::Corrupt("x".to_owned()))).unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        assert_eq!(stream.next().await.unwrap().unwrap(), 2);
        assert_eq!(stream.next().await.unwrap().unwrap_err().code(), Code::Internal);
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn a_task_that_dies_never_looks_like_an_end() {
        let (outlet, ending, mut stream) = outlet::<u8>(CancellationToken::new(), TIMEOUT);
        drop((outlet, ending));
        assert_eq!(
            stream.next().await.unwrap().unwrap_err().code(),
            Code::Unavailable
        );
    }

    #[tokio::test]
    async fn a_receiver_that_takes_nothing_is_given_up() {
        let short = Duration::from_millis(20);
        let (outlet, _ending, _stream) = outlet::<u8>(CancellationToken::new(), short);
        for message in 0..QUEUED_MESSAGES as u8 {
            outlet.send(message).await.unwrap();
        }
        assert!(matches!(
            outlet.send(9).await,
            Err(Error::StalledReceiver(waited)) if waited == short
        ));
    }

    #[tokio::test]
    async fn a_receiver_that_has_gone_is_noticed() {
        let (outlet, _ending, stream) = outlet::<u8>(CancellationToken::new(), TIMEOUT);
        drop(stream);
        outlet.receiver_gone().await;
        assert!(matches!(outlet.send(1).await, Err(Error::Abandoned)));
    }

    #[tokio::test]
    async fn a_stopped_service_waits_for_no_receiver() {
        let stopped = CancellationToken::new();
        let (outlet, _ending, _stream) = outlet::<u8>(stopped.clone(), TIMEOUT);
        for message in 0..QUEUED_MESSAGES as u8 {
            outlet.send(message).await.unwrap();
        }
        stopped.cancel();
        assert!(matches!(outlet.send(9).await, Err(Error::ShuttingDown)));
    }
}
