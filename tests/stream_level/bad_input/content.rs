//! Bytes that others would touch.

use rand::RngCore as _;

use crate::support::bystander::Bystander;
use crate::support::relay::PART_BYTES;
use crate::support::seed;
use crate::support::session::resume;
use crate::support::stack::Stack;
use crate::support::subject::Subject;

fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    seed::rng(seed).fill_bytes(&mut bytes);
    bytes
}

fn contents() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("one newline", b"\n".to_vec()),
        ("one NUL", b"\0".to_vec()),
        ("NULs between", b"{\"a\":\"\0\0\"}\0\n\0".to_vec()),
        (
            "invalid UTF-8",
            b"\xff\xfe\xc0\x80\xed\xa0\x80\xf8\x88\x80\x80\x80 \xe2\x28\xa1\n".to_vec(),
        ),
        ("a cut UTF-8 sequence", b"{\"a\":\"\xf0\x9f\x98".to_vec()),
        ("CRLF", b"{\"a\":1}\r\n{\"b\":2}\r\n\r\r\n".to_vec()),
        ("a BOM first", b"\xef\xbb\xbf{\"a\":1}\n".to_vec()),
        (
            "line separators",
            "{\"a\":\"\u{2028}\u{2029}\u{85}\u{b}\u{c}\"}\n"
                .as_bytes()
                .to_vec(),
        ),
        (
            "lone surrogate escapes",
            br#"{"a":"\ud800","b":"\udfff\ud83d","c":"\u0000"}"#.to_vec(),
        ),
        (
            "JSON that a parser would change",
            b"{ \"z\" : 1.0e+2, \"a\":1, \"a\":2 , \"n\":9007199254740993 }  \n".to_vec(),
        ),
        ("no JSON and no newline", b"}}]] not json".to_vec()),
        ("blanks", b" \t\n \n\n".to_vec()),
        (
            "an astral letter in two forms",
            "\u{1F600} e\u{301} \u{e9}\n".as_bytes().to_vec(),
        ),
        ("all bytes", (0..=255).collect()),
        ("noise", random(1, 70_000)),
        ("a part less one", random(2, PART_BYTES - 1)),
        ("a part", random(3, PART_BYTES)),
        ("a part and one", random(4, PART_BYTES + 1)),
        ("zeros", vec![0; 2 * PART_BYTES]),
        ("what zstd writes first", b"\x28\xb5\x2f\xfd\x00\x00".to_vec()),
    ]
}

/// Invariant byte-exact: whatever the bytes and however they came, they come back.
#[tokio::test(flavor = "multi_thread")]
async fn byte_exact_of_every_kind_of_content() {
    let mut stack = Stack::start().await;
    let connection = stack.connect().await;
    let mut subject = Subject::open(&connection, "content").await;
    let mut bystander = Bystander::open_on(&connection, "bystander", subject.partition).await;
    for (what, content) in contents() {
        subject.write(&connection, &content).await;
        subject.check(&connection, what).await;
        subject.write_parts(&connection, &content).await;
        subject.check(&connection, what).await;
    }
    bystander.goes_on(&connection, "every kind of delta").await;
    for (what, content) in contents() {
        subject.checkpoint(&connection, &content).await;
        subject.check(&connection, what).await;
    }

    // One line of 12 MB, with no newline at its end.
    let mut line = b"{\"text\":\"".to_vec();
    line.extend(
        random(5, 6_000_000)
            .iter()
            .flat_map(|byte| [b'a' + byte % 26, b'0' + byte % 10]),
    );
    line.extend_from_slice(b"\"}");
    subject.write_parts(&connection, &line).await;
    subject.check(&connection, "a line of 12 MB").await;
    let (lifetime, body) = resume(&connection, &subject.session, "a resume")
        .await
        .expect("it resumes");
    assert!(body == subject.body, "a resume gives the same bytes as an export");
    assert_eq!(lifetime.generation, 2);
    bystander.goes_on(&connection, "a line of 12 MB").await;
    assert!(
        stack.stop().success(),
        "a drained stop ends well\n{}",
        stack.log()
    );
    assert_eq!(stack.verify_counting(), 0);
}
