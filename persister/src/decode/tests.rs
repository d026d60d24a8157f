use bytes::Bytes;
use prost::Message as _;
use wakelog_proto::v1::SessionRecord;
use wakelog_proto::v1::session_record::Record as Variant;
use wakelog_stream::Record;

use super::{Content, RefusedReason, decode};
use crate::testing::{entry, log_record, opened, raw_record, session};

fn refused(record: &Record) -> (RefusedReason, String) {
    match decode(record).content {
        Content::Refused(refused) => (refused.reason, refused.detail),
        Content::Foldable(record) => panic!("{record:?} was decoded"),
    }
}

fn part_with(change: impl FnOnce(&mut wakelog_proto::v1::EntryPart)) -> Record {
    let mut record = entry(session(1), 1, 1, b'a');
    let Some(Variant::EntryPart(part)) = &mut record.record else {
        panic!()
    };
    change(part);
    log_record(0, session(1), &record)
}

#[test]
fn what_a_writer_publishes_is_foldable() {
    for record in [opened(None), entry(session(1), 1, 1, b'a')] {
        let decoded = decode(&log_record(5, session(1), &record));
        assert!(matches!(&decoded.content, Content::Foldable(found) if *found == record));
        assert_eq!((decoded.offset, decoded.session), (5, Some(session(1))));
        assert_eq!(decoded.undecodable_key(), None);
    }
}

#[test]
fn a_key_must_be_a_session_id_in_its_one_written_form() {
    let value = opened(None).encode_to_vec();
    let upper = session(0xab).to_string().to_uppercase();
    for key in [&b""[..], b"\xff\xfe", b"session", upper.as_bytes()] {
        let record = Record::new(
            3,
            0,
            Bytes::copy_from_slice(key),
            Bytes::from(value.clone()),
            None,
        );
        let (reason, detail) = refused(&record);
        assert_eq!(reason, RefusedReason::Undecodable);
        assert!(detail.starts_with("the key is"), "{detail}");
        assert_eq!(decode(&record).undecodable_key(), Some(key));
        assert_eq!(decode(&record).session, None);
    }
}

#[test]
fn a_value_must_hold_a_known_variant() {
    let key = session(1).to_string();
    for value in [&b"\xff\xff\xff"[..], b"", b"\x7a\x01x"] {
        let record = raw_record(0, &key, value);
        let (reason, detail) = refused(&record);
        assert_eq!(reason, RefusedReason::Undecodable, "{detail}");
        assert_eq!(
            decode(&record).session,
            Some(session(1)),
            "an erased session's records are not kept"
        );
    }
}

#[test]
fn an_encoding_of_a_later_build_is_told_from_a_broken_body() {
    let (reason, detail) = refused(&part_with(|part| part.encoding = 9));
    assert_eq!(
        (reason, detail.contains('9')),
        (RefusedReason::UnknownEncoding, true)
    );
    assert!(RefusedReason::UnknownEncoding.may_be_a_bad_deploy());

    let broken = [
        part_with(|part| part.plain_length += 1),
        part_with(|part| part.part_digest = Bytes::from_static(&[0; 16])),
        part_with(|part| part.body = Bytes::from_static(b"other")),
        part_with(|part| part.encoding = 2),
    ];
    for record in &broken {
        assert_eq!(refused(record).0, RefusedReason::Malformed);
        assert_eq!(
            decode(record).undecodable_key(),
            None,
            "no writer can stop a partition"
        );
    }
}

#[test]
fn a_part_without_a_digest_is_left_to_the_fold() {
    let decoded = decode(&part_with(|part| part.part_digest = Bytes::new()));
    assert!(matches!(decoded.content, Content::Foldable(SessionRecord { .. })));
}
