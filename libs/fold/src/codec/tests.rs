//! What is stored is read back, and nothing else is.

use bytes::Bytes;
use prost::Message as _;
use wakelog_model::{LifetimeId, SessionId};
use wakelog_proto::v1::{AccessRole, FoldState, LifetimeFoldState, LifetimeStatus, OpenEntry, SessionOpened};

use crate::{Error, Malformed, SessionState};

const NONCE: [u8; 16] = [7; 16];

/// A state with every field set: base 4, a checkpoint at 3, two entries of the lifetime, two parts of a third.
fn full() -> FoldState {
    let session = SessionId::for_request("alice", "a session");
    let lifetime = LifetimeFoldState {
        lifetime_id: Bytes::copy_from_slice(LifetimeId::for_bind(session, "request", 2).as_bytes()),
        generation: 2,
        request_id: "request".into(),
        base: 4,
        body_start: 3,
        writer_nonce: Bytes::copy_from_slice(&NONCE),
        status: LifetimeStatus::Ended.into(),
        last_seq: 2,
        remembered: vec![1; 32].into(),
        open_entry: Some(OpenEntry {
            checkpoint: true,
            part_digests: vec![2; 32].into(),
        }),
    };
    FoldState {
        opened: Some(SessionOpened {
            owner: "alice".into(),
            labels: [("key".into(), "value".into())].into(),
            parent_session_id: session.to_string(),
            subpath: "sub".into(),
            partition: 3,
        }),
        access: [("bob".to_owned(), AccessRole::Subscriber.into())].into(),
        erased: false,
        last_entry_seq: 6,
        last_checkpoint_seq: 3,
        lifetime: Some(lifetime),
    }
}

fn changed(change: impl FnOnce(&mut FoldState)) -> Result<SessionState, Error> {
    let mut stored = full();
    change(&mut stored);
    SessionState::decode(&stored.encode_to_vec())
}

fn changed_lifetime(change: impl FnOnce(&mut LifetimeFoldState)) -> Result<SessionState, Error> {
    changed(|stored| change(stored.lifetime.as_mut().unwrap()))
}

#[track_caller]
fn assert_inconsistent(decoded: Result<SessionState, Error>, about: &str) {
    match decoded {
        Err(Error::Inconsistent { what }) => assert!(what.contains(about), "{what}"),
        other => panic!("{about}: {other:?}"),
    }
}

#[test]
fn a_full_state_round_trips() {
    let bytes = full().encode_to_vec();
    let state = SessionState::decode(&bytes).unwrap();
    assert_eq!(state.encode(), bytes);
    assert_eq!(SessionState::decode(&state.encode()).unwrap(), state);
    assert_eq!(state.digest(), SessionState::decode(&bytes).unwrap().digest());
    assert_ne!(state.digest(), SessionState::default().digest());
    let lifetime = state.lifetime().unwrap();
    assert_eq!(
        (lifetime.open_parts(), lifetime.last_seq(), lifetime.base()),
        (2, 2, 4)
    );
    assert_eq!(lifetime.status(), LifetimeStatus::Ended);
    assert_eq!(state.access()["bob"], AccessRole::Subscriber);
}

#[test]
fn the_least_states_round_trip() {
    changed(|stored| {
        stored.lifetime = None;
        stored.last_entry_seq = 0;
        stored.last_checkpoint_seq = 0;
        stored.access.clear();
    })
    .unwrap();
    let bound = changed(|stored| {
        (stored.last_entry_seq, stored.last_checkpoint_seq) = (0, 0);
        let lifetime = stored.lifetime.as_mut().unwrap();
        (lifetime.base, lifetime.body_start, lifetime.last_seq) = (0, 1, 0);
        lifetime.writer_nonce.clear();
        lifetime.remembered.clear();
        lifetime.open_entry = None;
    });
    assert_eq!(bound.unwrap().lifetime().unwrap().nonce(), None);
    assert_eq!(SessionState::decode(&[]), Ok(SessionState::default()));
}

#[test]
fn garbage_is_undecodable() {
    for garbage in [&b"\xff"[..], b"\x0a\x05ab", b"garbage", &[0; 8]] {
        assert!(
            matches!(SessionState::decode(garbage), Err(Error::Undecodable(_))),
            "{garbage:?}"
        );
    }
    let bytes = full().encode_to_vec();
    assert!(SessionState::decode(&bytes[..bytes.len() - 1]).is_err());
}

#[test]
fn what_this_build_would_lose_is_refused() {
    let mut newer = full().encode_to_vec();
    newer.extend_from_slice(&[0xa2, 0x06, 0x01, b'x']);
    assert_eq!(SessionState::decode(&newer), Err(Error::NotCanonical));
    let explicit_default = [0x18, 0x00];
    assert_eq!(SessionState::decode(&explicit_default), Err(Error::NotCanonical));
}

#[test]
fn malformed_fields_are_refused() {
    let length = |field, actual| {
        Error::Malformed(Malformed::Length {
            field,
            expected: 16,
            actual,
        })
    };
    let bytes = |length: usize| Bytes::from(vec![1; length]);
    let table = [
        (
            changed(|s| s.opened.as_mut().unwrap().owner.clear()),
            Malformed::TextEmpty { field: "owner" }.into(),
        ),
        (
            changed(|s| s.access = [(String::new(), 1)].into()),
            Malformed::TextEmpty { field: "account" }.into(),
        ),
        (
            changed(|s| s.access = [("bob".into(), 2)].into()),
            Malformed::UnknownRole { number: 2 }.into(),
        ),
        (
            changed_lifetime(|l| l.lifetime_id = bytes(15)),
            length("lifetime_id", 15),
        ),
        (
            changed_lifetime(|l| l.generation = 0),
            Malformed::GenerationOutOfRange { generation: 0 }.into(),
        ),
        (
            changed_lifetime(|l| l.request_id.clear()),
            Malformed::TextEmpty { field: "request_id" }.into(),
        ),
        (
            changed_lifetime(|l| l.writer_nonce = bytes(15)),
            length("writer_nonce", 15),
        ),
        (
            changed_lifetime(|l| l.remembered = bytes(33)),
            length("remembered", 1),
        ),
        (
            changed_lifetime(|l| l.open_entry.as_mut().unwrap().part_digests = bytes(31)),
            length("part_digests", 15),
        ),
    ];
    for (decoded, error) in table {
        assert_eq!(decoded, Err(error));
    }
}

#[test]
fn sessions_that_do_not_fit_together_are_refused() {
    assert_inconsistent(changed(|stored| stored.opened = None), "never opened");
    let erased_unknown = FoldState {
        erased: true,
        ..FoldState::default()
    };
    assert_inconsistent(
        SessionState::decode(&erased_unknown.encode_to_vec()),
        "never opened",
    );
    assert_inconsistent(
        changed(|stored| stored.access = [("bob".into(), 0)].into()),
        "no role",
    );
    assert_inconsistent(
        changed(|stored| stored.last_checkpoint_seq = 7),
        "last checkpoint",
    );
    assert!(changed(|stored| stored.last_checkpoint_seq = 6).is_ok());
    assert_inconsistent(changed(|stored| stored.lifetime = None), "no lifetime");
    assert_inconsistent(
        changed(|stored| stored.last_entry_seq = 5),
        "last entry is not the session's",
    );
    assert_inconsistent(changed(|stored| stored.last_entry_seq = 1 << 63), "out of range");
}

#[test]
fn lifetimes_that_do_not_fit_together_are_refused() {
    for status in [0, 4, -1] {
        assert_inconsistent(changed_lifetime(|lifetime| lifetime.status = status), "status");
    }
    assert_inconsistent(
        changed_lifetime(|lifetime| lifetime.base = u64::MAX),
        "last entry is not the session's",
    );
    assert_inconsistent(
        changed_lifetime(|lifetime| lifetime.body_start = 0),
        "body starts",
    );
    assert_inconsistent(
        changed_lifetime(|lifetime| lifetime.body_start = 5),
        "body starts",
    );
    assert!(changed_lifetime(|lifetime| lifetime.body_start = 4).is_ok());
    assert_inconsistent(
        changed_lifetime(|lifetime| lifetime.remembered = vec![1; 16].into()),
        "window",
    );
    assert_inconsistent(
        changed_lifetime(|lifetime| lifetime.remembered = vec![1; 48].into()),
        "window",
    );
    assert_inconsistent(
        changed_lifetime(|lifetime| lifetime.writer_nonce.clear()),
        "no writer",
    );
    let without_entries = |stored: &mut FoldState| {
        stored.last_entry_seq = 4;
        let lifetime = stored.lifetime.as_mut().unwrap();
        lifetime.last_seq = 0;
        lifetime.remembered.clear();
        lifetime.writer_nonce.clear();
    };
    assert_inconsistent(changed(without_entries), "no writer");
    let with_entries_only = changed_lifetime(|lifetime| {
        lifetime.open_entry = None;
        lifetime.writer_nonce.clear();
    });
    assert_inconsistent(with_entries_only, "no writer");
}

#[test]
fn the_remembered_window_holds_256_and_no_more() {
    let with = |last_seq: u64, hashes: usize| {
        changed(|stored| {
            stored.last_entry_seq = 4 + last_seq;
            let lifetime = stored.lifetime.as_mut().unwrap();
            lifetime.last_seq = last_seq;
            lifetime.remembered = vec![1; 16 * hashes].into();
        })
    };
    assert!(with(256, 256).is_ok());
    assert!(with(257, 256).is_ok());
    assert_inconsistent(with(257, 257), "window");
    assert_inconsistent(with(257, 255), "window");
}

#[test]
fn an_open_entry_has_parts_and_not_too_many() {
    let with_parts = |parts: usize| {
        changed_lifetime(|lifetime| {
            lifetime.open_entry.as_mut().unwrap().part_digests = vec![1; 16 * parts].into();
        })
    };
    assert_inconsistent(with_parts(0), "parts are out of range");
    assert!(with_parts(1).is_ok());
    assert!(with_parts(2048).is_ok());
    assert_inconsistent(with_parts(2049), "parts are out of range");
}

#[test]
fn an_erased_session_keeps_no_access_and_no_open_parts() {
    let erased = |keep_access: bool, keep_parts: bool| {
        changed(|stored| {
            stored.erased = true;
            if !keep_access {
                stored.access.clear();
            }
            if !keep_parts {
                stored.lifetime.as_mut().unwrap().open_entry = None;
            }
        })
    };
    assert!(erased(false, false).is_ok());
    assert_inconsistent(erased(true, false), "erased");
    assert_inconsistent(erased(false, true), "erased");
}
