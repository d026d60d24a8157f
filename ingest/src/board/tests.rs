use super::*;

const BOUND: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_waiter_passes_when_progress_reaches_its_target() {
    let board = Arc::new(Board::default());
    assert!(board.wait_for_offset(2, 0, BOUND).await, "an empty partition");
    assert!(!board.somebody_waits(BOUND));
    let waiting = tokio::spawn({
        let board = Arc::clone(&board);
        async move { board.wait_for_offset(2, 7, BOUND).await }
    });
    board.woken().await;
    board.woken().await;
    assert!(board.somebody_waits(BOUND));
    board.post_progress(BTreeMap::from([(1, 99), (2, 6)]));
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    board.post_progress(BTreeMap::from([(2, 7)]));
    assert!(waiting.await.unwrap());
    assert!(!board.somebody_waits(BOUND));
    assert_eq!((board.next_offset(2), board.next_offset(1)), (7, 0));
}

#[tokio::test]
async fn a_waiter_gives_up_at_its_bound() {
    let board = Board::default();
    assert!(!board.wait_for_offset(2, 7, Duration::from_millis(20)).await);
    assert!(!board.somebody_waits(BOUND));
}
