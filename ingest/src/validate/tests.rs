use wakelog_contract::{reason_of, refusal_of};
use wakelog_proto::v1::{SessionEvent, TranscriptEntry};

use super::*;

const KEY: &str = "01010101010101010101010101010101-7";
const MAX: u64 = 1 << 30;

fn frame(entry: &'static [u8], entry_seq: u64) -> Option<AgentFrame> {
    let entry = TranscriptEntry {
        entry: Bytes::from_static(entry),
        checkpoint: true,
        entry_seq,
    };
    Some(AgentFrame {
        frame: Some(Frame::TranscriptEntry(entry)),
    })
}

fn part(entry_seq: u64, part: u32, last: bool, length: usize) -> TranscriptPart {
    TranscriptPart {
        entry_seq,
        part,
        last,
        checkpoint: false,
        content: vec![b'x'; length].into(),
    }
}

fn message(part: TranscriptPart) -> CommitConversationPartsRequest {
    CommitConversationPartsRequest {
        message: Some(commit_conversation_parts_request::Message::Part(part)),
    }
}

fn reason<T: std::fmt::Debug>(result: Result<T, Status>) -> RefusalReason {
    reason_of(&result.unwrap_err()).unwrap()
}

#[test]
fn a_unary_entry_is_taken_verbatim() {
    let entry = unary_entry(KEY, frame(b"\0\xff", 7), 0, MAX).unwrap();
    assert_eq!(entry.nonce, WriterNonce([1; 16]));
    assert_eq!((entry.seq, entry.checkpoint, entry.asked), (7, true, Level::Log));
    assert_eq!(&entry.content[..], b"\0\xff");
    assert_eq!(
        unary_entry(KEY, frame(b"x", 7), 2, MAX).unwrap().asked,
        Level::Store
    );
}

#[test]
fn unary_requests_that_are_not_well_formed_say_why() {
    let session = Some(AgentFrame {
        frame: Some(Frame::Session(SessionEvent::default())),
    });
    assert_eq!(
        reason(unary_entry(KEY, session, 0, MAX)),
        RefusalReason::Malformed
    );
    assert_eq!(reason(unary_entry(KEY, None, 0, MAX)), RefusalReason::Malformed);
    assert_eq!(
        reason(unary_entry("nonsense", frame(b"x", 7), 0, MAX)),
        RefusalReason::Malformed
    );
    assert_eq!(
        reason(unary_entry(KEY, frame(b"x", 8), 0, MAX)),
        RefusalReason::Malformed
    );
    let zero = "01010101010101010101010101010101-0";
    assert_eq!(
        reason(unary_entry(zero, frame(b"x", 0), 0, MAX)),
        RefusalReason::Malformed
    );
    assert_eq!(
        reason(unary_entry(KEY, frame(b"x", 7), 9, MAX)),
        RefusalReason::Malformed
    );
    assert_eq!(
        reason(unary_entry(KEY, frame(b"", 7), 0, MAX)),
        RefusalReason::EmptyEntry
    );
}

#[test]
fn a_unary_entry_beyond_the_limit_names_it() {
    static LARGE: [u8; MAX_UNARY_ENTRY_BYTES + 1] = [b'x'; MAX_UNARY_ENTRY_BYTES + 1];
    let status = unary_entry(KEY, frame(&LARGE, 7), 0, MAX).unwrap_err();
    assert_eq!(refusal_of(&status).unwrap().limit, MAX_UNARY_ENTRY_BYTES as u64);
    assert!(unary_entry(KEY, frame(&LARGE[1..], 7), 0, MAX).is_ok());
    let status = unary_entry(KEY, frame(b"12345", 7), 0, 4).unwrap_err();
    assert_eq!(refusal_of(&status).unwrap().limit, 4);
}

#[test]
fn a_stream_starts_with_hello() {
    let hello_message = WriterHello {
        session_id: "s".into(),
        writer_nonce: vec![3; 16].into(),
        ack_level: 2,
    };
    let request = CommitConversationPartsRequest {
        message: Some(commit_conversation_parts_request::Message::Hello(
            hello_message.clone(),
        )),
    };
    let said = hello(request.clone()).unwrap();
    assert_eq!((said.nonce, said.asked), (WriterNonce([3; 16]), Level::Store));
    assert_eq!(
        reason(hello(message(part(1, 0, true, 1)))),
        RefusalReason::Malformed
    );
    assert_eq!(
        reason(hello(CommitConversationPartsRequest { message: None })),
        RefusalReason::Malformed
    );
    assert_eq!(
        reason(next_part(&mut Cursor::default(), request, MAX)),
        RefusalReason::Malformed
    );
    let short = WriterHello {
        writer_nonce: vec![3; 15].into(),
        ..hello_message
    };
    let request = CommitConversationPartsRequest {
        message: Some(commit_conversation_parts_request::Message::Hello(short)),
    };
    assert_eq!(reason(hello(request)), RefusalReason::Malformed);
}

#[test]
fn parts_of_entries_follow_each_other() {
    let mut cursor = Cursor::default();
    for next in [
        part(1, 0, false, PART_SIZE),
        part(1, 1, false, PART_SIZE),
        part(1, 2, true, 1),
        part(2, 0, true, PART_SIZE),
        part(9, 0, true, 5),
    ] {
        assert_eq!(next_part(&mut cursor, message(next.clone()), MAX).unwrap(), next);
    }
    assert_eq!(cursor, Cursor::BetweenEntries);
}

#[test]
fn parts_out_of_order_are_refused() {
    let in_entry = Cursor::InEntry {
        seq: 1,
        next_part: 1,
        checkpoint: false,
        bytes: PART_SIZE as u64,
    };
    let refused = |cursor: &Cursor, next| reason(next_part(&mut cursor.clone(), message(next), MAX));
    assert_eq!(
        refused(&Cursor::default(), part(1, 1, true, 1)),
        RefusalReason::Gap
    );
    assert_eq!(
        refused(&in_entry, part(1, 0, false, PART_SIZE)),
        RefusalReason::Gap
    );
    assert_eq!(refused(&in_entry, part(1, 2, true, 1)), RefusalReason::Gap);
    assert_eq!(refused(&in_entry, part(2, 0, true, 1)), RefusalReason::Malformed);
    assert_eq!(
        refused(&Cursor::default(), part(0, 0, true, 1)),
        RefusalReason::Malformed
    );
    let other_flag = TranscriptPart {
        checkpoint: true,
        ..part(1, 1, true, 1)
    };
    assert_eq!(refused(&in_entry, other_flag), RefusalReason::Malformed);
}

#[test]
fn parts_of_a_wrong_length_are_refused() {
    let refused = |next| next_part(&mut Cursor::default(), message(next), MAX).unwrap_err();
    assert_eq!(
        reason_of(&refused(part(1, 0, true, 0))),
        Some(RefusalReason::EmptyEntry)
    );
    assert_eq!(
        reason_of(&refused(part(1, 0, false, 0))),
        Some(RefusalReason::Malformed)
    );
    assert_eq!(
        reason_of(&refused(part(1, 0, false, PART_SIZE - 1))),
        Some(RefusalReason::Malformed)
    );
    let large = refused(part(1, 0, true, PART_SIZE + 1));
    assert_eq!(reason_of(&large), Some(RefusalReason::TooLarge));
    assert_eq!(refusal_of(&large).unwrap().limit, 524_288);
}

#[test]
fn an_entry_that_grows_beyond_the_limit_is_refused_at_that_part() {
    let mut cursor = Cursor::default();
    let limit = PART_SIZE as u64 + 10;
    next_part(&mut cursor, message(part(1, 0, false, PART_SIZE)), limit).unwrap();
    let before = cursor.clone();
    let status = next_part(&mut cursor, message(part(1, 1, true, 11)), limit).unwrap_err();
    assert_eq!(refusal_of(&status).unwrap().limit, limit);
    assert_eq!(cursor, before);
    assert!(next_part(&mut cursor, message(part(1, 1, true, 10)), limit).is_ok());
}
