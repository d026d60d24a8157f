use wakelog_fold::{Context, Outcome, fold};
use wakelog_model::{Digest16, LifetimeId, SessionId, WriterNonce, part_digest};
use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{EntryPart, LifetimeBound, SessionErased, SessionOpened, SessionRecord};

use super::*;

const ME: WriterNonce = WriterNonce([1; 16]);

fn session() -> SessionId {
    SessionId::for_request("ada", "r")
}

fn lifetime(generation: u64) -> LifetimeId {
    LifetimeId::for_bind(session(), "start", generation)
}

fn entry(seq: u64, content: &'static [u8]) -> Record {
    let digest = bytes::Bytes::copy_from_slice(part_digest(content).as_bytes());
    Record::EntryPart(EntryPart {
        lifetime_id: bytes::Bytes::copy_from_slice(lifetime(1).as_bytes()),
        generation: 1,
        writer_nonce: bytes::Bytes::copy_from_slice(ME.as_bytes()),
        lifetime_seq: seq,
        part: 0,
        last: true,
        checkpoint: false,
        encoding: 1,
        plain_length: content.len() as u32,
        part_digest: digest.clone(),
        body: content.into(),
        part_count: 1,
        entry_digest: digest,
    })
}

fn bound(generation: u64) -> Record {
    Record::LifetimeBound(LifetimeBound {
        lifetime_id: bytes::Bytes::copy_from_slice(lifetime(generation).as_bytes()),
        generation,
        request_id: "start".into(),
    })
}

fn state_of(records: impl IntoIterator<Item = Record>) -> SessionState {
    let opened = Record::SessionOpened(SessionOpened {
        owner: "ada".into(),
        partition: 2,
        ..SessionOpened::default()
    });
    let mut state = SessionState::default();
    for record in [opened, bound(1)].into_iter().chain(records) {
        let record = SessionRecord { record: Some(record) };
        let outcome = fold(
            &mut state,
            session(),
            &record,
            &Context {
                partition: 2,
                root_erased: false,
            },
        );
        assert!(
            matches!(outcome, Outcome::Applied(_) | Outcome::Quarantined(_)),
            "{outcome:?}"
        );
    }
    state
}

fn request(seq: u64) -> EntryRequest {
    EntryRequest {
        generation: 1,
        nonce: ME,
        seq,
    }
}

fn hash(content: &[u8]) -> Digest16 {
    remembered_hash(false, 1, part_digest(content))
}

fn answer(state: &SessionState, seq: u64, content: &[u8]) -> RepeatAnswer {
    answer_from(state, lifetime(1), request(seq), hash(content))
}

#[test]
fn the_same_bytes_are_applied_and_others_a_conflict() {
    let state = state_of([entry(1, b"one\n"), entry(2, b"two\n")]);
    assert_eq!(answer(&state, 1, b"one\n"), RepeatAnswer::Applied);
    assert_eq!(answer(&state, 2, b"two\n"), RepeatAnswer::Applied);
    assert_eq!(answer(&state, 2, b"one\n"), RepeatAnswer::Conflict);
    let as_checkpoint = remembered_hash(true, 1, part_digest(b"two\n"));
    assert_eq!(
        answer_from(&state, lifetime(1), request(2), as_checkpoint),
        RepeatAnswer::Conflict
    );
}

#[test]
fn what_the_store_lacks_is_not_answered() {
    let state = state_of([entry(1, b"one\n")]);
    assert_eq!(answer(&state, 2, b"two\n"), RepeatAnswer::NotYet { applied: 1 });
    assert_eq!(
        answer(&SessionState::default(), 1, b"one\n"),
        RepeatAnswer::NotYet { applied: 0 }
    );
}

#[test]
fn entries_older_than_the_window_are_applied() {
    let state = state_of((1..=300).map(|seq| entry(seq, b"x\n")));
    assert_eq!(answer(&state, 1, b"other\n"), RepeatAnswer::Applied);
    assert_eq!(answer(&state, 300, b"other\n"), RepeatAnswer::Conflict);
}

#[test]
fn fences_are_found_in_the_state_too() {
    let superseded = state_of([entry(1, b"one\n"), bound(2)]);
    assert_eq!(
        answer(&superseded, 1, b"one\n"),
        RepeatAnswer::Terminal(Terminal::Superseded { current: 2 })
    );
    let failed = state_of([entry(1, b"one\n"), entry(1, b"other\n")]);
    assert_eq!(
        answer(&failed, 1, b"one\n"),
        RepeatAnswer::Terminal(Terminal::Failed)
    );
    let erased = state_of([entry(1, b"one\n"), Record::SessionErased(SessionErased {})]);
    assert_eq!(
        answer(&erased, 1, b"one\n"),
        RepeatAnswer::Terminal(Terminal::NotFound)
    );
    let state = state_of([entry(1, b"one\n")]);
    let second = EntryRequest {
        nonce: WriterNonce([2; 16]),
        ..request(1)
    };
    let answer = answer_from(&state, lifetime(1), second, hash(b"one\n"));
    assert_eq!(answer, RepeatAnswer::Terminal(Terminal::SecondWriter));
}
