use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_service_that_ends_or_panics_is_started_again() {
    let health = Health::expecting(&["it"]);
    let shutdown = CancellationToken::new();
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = starts.clone();
    let supervised = tokio::spawn(supervise("it", health.clone(), shutdown.clone(), move |stop| {
        let start = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match start {
                0 => Err(Error::failed("the log is away")),
                1 => panic!("a bug"),
                _ => {
                    stop.cancelled().await;
                    Ok(())
                }
            }
        }
    }));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(health.obstacles(), ["it is being restarted: the log is away"]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(health.obstacles().is_empty());
    assert_eq!(starts.load(Ordering::SeqCst), 3);
    shutdown.cancel();
    supervised.await.unwrap().unwrap();
    assert_eq!(health.obstacles(), ["it is stopping"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_pause_too() {
    let shutdown = CancellationToken::new();
    let supervised = supervise("it", Health::default(), shutdown.clone(), |_| async {
        Err(Error::failed("always"))
    });
    let supervised = tokio::spawn(supervised);
    tokio::time::sleep(Duration::from_secs(100)).await;
    shutdown.cancel();
    supervised.await.unwrap().unwrap();
}
