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

#[test]
fn a_persister_outside_of_its_group_is_not_ready() {
    let health = Health::default();
    health.set_persister(StatusHandle::default());
    assert_eq!(health.obstacles().len(), 1);
}
