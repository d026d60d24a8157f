//! Names are read as they are printed, and nothing else is read.

use proptest::prelude::*;
use uuid::Uuid;
use wakelog_model::SessionId;

use super::*;

fn session() -> SessionId {
    SessionId(Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef))
}

const SESSION: &str = "01234567-89ab-cdef-0123-456789abcdef";

#[test]
fn every_kind_of_object_has_the_documented_name() {
    let snapshot = SnapshotKey {
        session: session(),
        incarnation: 2,
        offset: 77,
    };
    let covered = CoveredKey {
        incarnation: 1,
        partition: 3,
        offset: 500,
    };
    let names = [
        (
            ObjectName::Segment(SegmentKey::new(session(), 1, 20, &[0xab; 32])),
            format!(
                "sessions/{SESSION}/00000000000000000001-00000000000000000020-abababababababab.jsonl.zst"
            ),
        ),
        (
            ObjectName::State(snapshot),
            format!("sessions/{SESSION}/state-00000000000000000002-00000000000000000077.pb"),
        ),
        (
            ObjectName::Parts(snapshot),
            format!("sessions/{SESSION}/parts-00000000000000000002-00000000000000000077.pb"),
        ),
        (
            ObjectName::Covered(covered),
            "covered/00000000000000000001-00000000000000000003-00000000000000000500".to_owned(),
        ),
        (ObjectName::Erased(session()), format!("erased/{SESSION}")),
    ];
    for (name, text) in names {
        assert_eq!(name.to_string(), text);
        assert_eq!(ObjectName::parse(&text), name);
    }
    assert_eq!(session_prefix(session()), format!("sessions/{SESSION}/"));
}

#[test]
fn what_is_not_exactly_a_name_of_ours_is_unknown() {
    let good = SegmentKey::new(session(), 5, 9, &[1; 32]).to_string();
    let bad = [
        String::new(),
        "sessions/".to_owned(),
        good.replace("sessions/", "session/"),
        good.replace(SESSION, &SESSION.to_uppercase()),
        good.replace(SESSION, ".."),
        good.replace("00000000000000000005", "5"),
        good.replace("00000000000000000005", "+0000000000000000005"),
        good.replace("00000000000000000005", "00000000000000000000"),
        good.replace("00000000000000000005", "00000000000000000010"),
        good.replace("00000000000000000009", "99999999999999999999"),
        good.replace("0101010101010101", "01010101010101"),
        good.replace("0101010101010101", "0101010101010101-"),
        good.replace("0101010101010101", "AB01010101010101"),
        good.replace(".jsonl.zst", ".jsonl"),
        format!("{good}.tmp"),
        format!("/{good}"),
        format!("sessions/{SESSION}/state-00000000004294967296-00000000000000000077.pb"),
        format!("sessions/{SESSION}/state-00000000000000000001.pb"),
        "covered/00000000000000000001-00000000000000000003".to_owned(),
        "covered/00000000000000000001-00000000004294967296-00000000000000000003".to_owned(),
        format!("erased/{SESSION}/"),
        "ü".repeat(40),
    ];
    for text in bad {
        assert_eq!(ObjectName::parse(&text), ObjectName::Unknown(text.clone()));
        assert!(text.parse::<SegmentKey>().is_err(), "{text}");
    }
    assert!(good.parse::<SegmentKey>().is_ok());
}

#[test]
fn a_key_names_objects_with_its_digest_only() {
    let key = SegmentKey::new(session(), 1, 1, &[7; 32]);
    let mut other = [7; 32];
    other[7] = 8;
    assert!(key.names(&[7; 32]));
    assert!(!key.names(&other));
}

proptest! {
    #[test]
    fn keys_read_as_printed_and_sort_by_number(
        bits in any::<u128>(), min in 1..u64::MAX, more in 0_u64..100_000, other in 1..u64::MAX, digest in any::<[u8; 32]>(),
    ) {
        let session = SessionId(Uuid::from_u128(bits));
        let key = SegmentKey::new(session, min, min.saturating_add(more), &digest);
        prop_assert_eq!(key.to_string().parse::<SegmentKey>().unwrap(), key);
        let second = SegmentKey::new(session, other, u64::MAX, &digest);
        if min != other {
            prop_assert_eq!(key.to_string() < second.to_string(), min < other);
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic_and_printed_unchanged(text in "\\PC{0,120}") {
        prop_assert_eq!(ObjectName::parse(&text).to_string(), text);
    }
}
