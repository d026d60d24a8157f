use super::*;

#[test]
fn a_process_is_ready_when_all_its_parts_run() {
    let health = Health::expecting(&["a", "b"]);
    assert_eq!(health.obstacles().len(), 2);
    health.set("a", PartState::Running);
    health.set("b", PartState::Running);
    assert!(health.obstacles().is_empty());
    health.set(
        "b",
        PartState::Restarting {
            reason: "the log is away".to_owned(),
        },
    );
    assert_eq!(health.obstacles(), ["b is being restarted: the log is away"]);
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_is_away_for_long_is_an_obstacle() {
    let health = Health::default();
    health.answered("log");
    tokio::time::advance(AWAY).await;
    health.in_trouble("log", "nobody is there".to_owned());
    assert!(health.obstacles().is_empty());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(
        health.obstacles(),
        ["no good answer of the log for 11 s: nobody is there"]
    );
    health.answered("log");
    assert!(health.obstacles().is_empty());
    // A question that hangs is no answer either.
    tokio::time::advance(AWAY * 2).await;
    assert_eq!(
        health.obstacles(),
        ["no good answer of the log for 20 s: no answer"]
    );
}

#[test]
fn a_persister_outside_of_its_group_is_not_ready() {
    let health = Health::default();
    health.set_persister(StatusHandle::default());
    assert_eq!(health.obstacles().len(), 1);
}
