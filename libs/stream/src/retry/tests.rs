use super::*;

fn quick() -> RetryPolicy {
    RetryPolicy {
        initial: Duration::from_millis(1),
        max_interval: Duration::from_millis(2),
        max_elapsed: Duration::from_secs(60),
        max_attempts: 5,
        ..RetryPolicy::default()
    }
}

#[derive(Debug, PartialEq)]
enum Failure {
    Passing(u32),
    Lasting(u32),
}

/// Fails so often, then succeeds with the number of attempts.
async fn run(policy: RetryPolicy, failures: u32, lasting: bool) -> Result<u32, Failure> {
    let mut attempts = 0;
    let is_transient = |failure: &Failure| matches!(failure, Failure::Passing(_));
    retry(policy, is_transient, || {
        attempts += 1;
        let attempt = attempts;
        async move {
            match (attempt <= failures, lasting) {
                (false, _) => Ok(attempt),
                (true, false) => Err(Failure::Passing(attempt)),
                (true, true) => Err(Failure::Lasting(attempt)),
            }
        }
    })
    .await
}

#[tokio::test]
async fn passing_failures_are_tried_again() {
    assert_eq!(run(quick(), 0, false).await, Ok(1));
    assert_eq!(run(quick(), 4, false).await, Ok(5));
}

#[tokio::test]
async fn attempts_end_with_the_last_error() {
    assert_eq!(run(quick(), 100, false).await, Err(Failure::Passing(5)));
}

#[tokio::test]
async fn lasting_failures_are_not_tried_again() {
    assert_eq!(run(quick(), 100, true).await, Err(Failure::Lasting(1)));
}

#[tokio::test]
async fn time_ends_it_too() {
    let policy = RetryPolicy {
        max_elapsed: Duration::from_millis(30),
        max_attempts: u32::MAX,
        ..quick()
    };
    let Err(Failure::Passing(attempts)) = run(policy, u32::MAX, false).await else {
        panic!("it must end");
    };
    assert!(attempts > 1);
}

#[test]
fn waits_grow_up_to_their_limit() {
    let policy = RetryPolicy {
        initial: Duration::from_millis(10),
        max_interval: Duration::from_millis(35),
        jitter: 0.0,
        ..quick()
    };
    let waits = policy.waits().map(|wait| wait.as_millis()).collect::<Vec<_>>();
    assert_eq!(waits, [10, 20, 35, 35]);
}
