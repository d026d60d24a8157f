use super::*;

const SESSION: &str = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";

#[test]
fn a_nonce_is_kept_until_its_answer_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let nonce = {
        let mut state = WriterState::open_in(folder.path(), SESSION).unwrap();
        state.nonce().unwrap()
    };
    let mut state = WriterState::open_in(folder.path(), SESSION).unwrap();
    assert_eq!(state.nonce().unwrap(), nonce);
    state.remember(&[7; 16]).unwrap();
    assert_ne!(state.nonce().unwrap(), nonce);
    assert_eq!(
        state.memory.lifetime_id.as_deref(),
        Some(hex::encode([7; 16]).as_str())
    );
}

#[test]
fn one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = WriterState::open_in(folder.path(), SESSION).unwrap();
    let second = WriterState::open_in(folder.path(), SESSION);
    assert_eq!(second.err().unwrap().exit, wakelog_contract::Exit::Refused);
    drop(first);
    assert!(WriterState::open_in(folder.path(), SESSION).is_ok());
}

#[test]
fn a_broken_memory_is_an_error_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(format!("{SESSION}.json")), b"nonsense").unwrap();
    assert!(
        WriterState::open_in(folder.path(), SESSION)
            .err()
            .unwrap()
            .hint
            .is_some()
    );
}
