use bytes::Bytes;
use wakelog_proto::v1::{EntryPart, LifetimeBound, LifetimeEnded, SessionErased, SessionOpened};

use super::*;

fn record(payload: Payload) -> Record {
    let value = SessionRecord {
        record: Some(payload),
    }
    .encode_to_vec();
    let key = session().to_string();
    Record::new(0, 0, Bytes::from(key), Bytes::from(value), None)
}

fn session() -> SessionId {
    SessionId::for_request("ann", "one")
}

#[test]
fn complete_entries_ends_and_erasures_wake() {
    let part = |last| {
        Payload::EntryPart(EntryPart {
            last,
            ..EntryPart::default()
        })
    };
    let cases = [
        (part(true), Some(Job::Tail(session()))),
        (part(false), None),
        (
            Payload::LifetimeEnded(LifetimeEnded::default()),
            Some(Job::Snapshot(session(), SnapshotCause::SessionEnd)),
        ),
        (
            Payload::SessionErased(SessionErased {}),
            Some(Job::Erasure(session())),
        ),
        (Payload::LifetimeBound(LifetimeBound::default()), None),
        (Payload::SessionOpened(SessionOpened::default()), None),
    ];
    for (payload, expected) in cases {
        assert_eq!(wakes(&record(payload.clone())), expected, "{payload:?}");
    }
}

#[test]
fn what_can_not_be_read_wakes_nobody() {
    let key = Bytes::from(session().to_string());
    for (key, value) in [
        (Bytes::from_static(b"no session"), Bytes::new()),
        (Bytes::from_static(b"\xff"), Bytes::new()),
        (key.clone(), Bytes::from_static(b"\xff\xff")),
        (key, Bytes::new()),
    ] {
        assert_eq!(wakes(&Record::new(0, 0, key, value, None)), None);
    }
}
