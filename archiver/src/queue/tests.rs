use super::*;

fn queue(jobs: usize) -> Queue<u8> {
    Queue::new(QueueLimits {
        jobs,
        first_pause: Duration::from_secs(1),
        longest_pause: Duration::from_secs(5),
    })
}

#[test]
fn a_job_that_is_woken_often_is_done_once_and_at_the_earliest_time() {
    let (mut queue, now) = (queue(9), Instant::now());
    for delay in [9, 3, 7] {
        queue.wake(1, now + Duration::from_secs(delay));
    }
    assert_eq!(queue.take_due(now + Duration::from_secs(2)), None);
    assert_eq!(queue.next_due(), Some(now + Duration::from_secs(3)));
    assert_eq!(queue.take_due(now + Duration::from_secs(3)), Some(1));
    assert_eq!(queue.take_due(now + Duration::from_secs(99)), None);
}

#[test]
fn who_waited_longest_comes_first() {
    let (mut queue, now) = (queue(9), Instant::now());
    for number in [3, 1, 2] {
        queue.wake(number, now + Duration::from_millis(number.into()));
    }
    let later = now + Duration::from_secs(1);
    let order: Vec<_> = std::iter::from_fn(|| queue.take_due(later)).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn one_that_fails_waits_longer_each_time_and_nothing_wakes_it_earlier() {
    let (mut queue, mut now) = (queue(9), Instant::now());
    for seconds in [1, 2, 4, 5, 5] {
        assert_eq!(queue.failed(1, now), Duration::from_secs(seconds));
        queue.wake(1, now);
        queue.wake(2, now);
        assert_eq!(queue.take_due(now), Some(2), "others are not held up");
        assert_eq!(queue.take_due(now), None);
        now += Duration::from_secs(seconds);
        assert_eq!(queue.take_due(now), Some(1));
    }
    queue.succeeded(1);
    assert_eq!(queue.failed(1, now), Duration::from_secs(1));
}

#[test]
fn what_has_no_room_is_noticed() {
    let (mut queue, now) = (queue(2), Instant::now());
    for number in 0..3 {
        queue.wake(number, now);
    }
    assert_eq!(queue.len(), 2);
    assert!(queue.take_overflowed());
    assert!(!queue.take_overflowed());
}
