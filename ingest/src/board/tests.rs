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
    assert!(board.somebody_waits(BOUND));
    board.post_progress(BTreeMap::from([(1, 99), (2, 6)]), Instant::now());
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    board.post_progress(BTreeMap::from([(2, 7)]), Instant::now());
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

/// Invariant acked-is-durable: a store that was away may have come back with less than was read before.
#[tokio::test]
async fn a_waiter_does_not_pass_by_what_was_read_before() {
    let board = Arc::new(Board::default());
    let before = Instant::now();
    board.post_progress(BTreeMap::from([(2, 7)]), before);
    let waiting = tokio::spawn({
        let board = Arc::clone(&board);
        async move { board.wait_for_offset(2, 7, BOUND).await }
    });
    board.woken().await;
    // One that began before the call, and ended after it.
    board.post_progress(BTreeMap::from([(2, 8)]), before);
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    board.post_progress(BTreeMap::from([(2, 7)]), Instant::now());
    assert!(waiting.await.unwrap());
}

/// Invariant one-writer: binds may be in what the store has lost.
#[test]
fn a_store_that_went_back_is_known_until_it_has_caught_up() {
    let board = Board::default();
    assert!(!board.went_back(2, 0));
    for (next_offset, went_back) in [(7, false), (5, true), (6, true), (7, false), (9, false)] {
        board.post_progress(BTreeMap::from([(2, next_offset)]), Instant::now());
        assert_eq!(board.went_back(2, next_offset), went_back, "{next_offset}");
    }
    board.post_progress(BTreeMap::from([(1, 1)]), Instant::now());
    assert!(board.went_back(2, 0), "its row is gone");
}
