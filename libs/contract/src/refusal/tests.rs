use tonic_types::StatusExt as _;

use super::*;

/// Every reason with the code that its comment in `refusal.proto` starts with, read from that file.
fn documented_codes() -> Vec<(RefusalReason, Code)> {
    let proto = include_str!("../../../../proto/wakelog/v1/refusal.proto");
    let mut documented = Vec::new();
    let mut comment_code = None;
    for line in proto.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("// ") {
            comment_code =
                comment_code.or_else(|| comment.split_once(':').and_then(|(code, _)| code_named(code)));
        } else if let Some((name, _)) = line
            .split_once(" = ")
            .filter(|(name, _)| name.starts_with("REFUSAL_"))
        {
            let reason = RefusalReason::from_str_name(name).expect("a reason of the generated enum");
            if reason != RefusalReason::Unspecified {
                documented.push((
                    reason,
                    comment_code.expect("the comment of a reason starts with its code"),
                ));
            }
            comment_code = None;
        } else {
            comment_code = None;
        }
    }
    documented
}

fn code_named(name: &str) -> Option<Code> {
    (0..=16).map(Code::from_i32).find(|code| {
        let camel = format!("{code:?}");
        let mut snake = String::new();
        for (index, letter) in camel.chars().enumerate() {
            if letter.is_uppercase() && index > 0 {
                snake.push('_');
            }
            snake.push(letter.to_ascii_uppercase());
        }
        snake == name
    })
}

#[test]
fn every_reason_has_the_code_that_its_proto_comment_says() {
    let documented = documented_codes();
    assert_eq!(documented.len(), 20);
    for (reason, code) in documented {
        assert_eq!(code_of(reason), code, "{reason:?}");
    }
}

#[test]
fn names_are_the_proto_names_in_snake_case() {
    for number in 0..=20 {
        let reason = RefusalReason::try_from(number).unwrap();
        let from_proto = reason
            .as_str_name()
            .strip_prefix("REFUSAL_REASON_")
            .unwrap()
            .to_lowercase();
        assert_eq!(reason_name(reason), from_proto);
    }
    assert!(
        RefusalReason::try_from(22).is_err(),
        "a new reason needs a name and a code"
    );
}

#[test]
fn a_refusal_comes_back_from_its_status() {
    let status = refuse(RefusalReason::Gap, "entry 9 is ahead")
        .expected(7)
        .limit(3)
        .build();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(status.message(), "entry 9 is ahead");
    let refusal = refusal_of(&status).unwrap();
    assert_eq!(
        (refusal.expected, refusal.limit, refusal.retry_delay_ms),
        (7, 3, 0)
    );
    assert_eq!(reason_of(&status), Some(RefusalReason::Gap));
}

#[test]
fn a_retry_delay_is_also_the_standard_detail() {
    let status = refuse(RefusalReason::BackPressure, "full")
        .retry_delay(Duration::from_millis(1250))
        .build();
    assert_eq!(refusal_of(&status).unwrap().retry_delay_ms, 1250);
    let info = status.get_details_retry_info().unwrap();
    assert_eq!(info.retry_delay, Some(Duration::from_millis(1250)));
}

#[test]
fn a_status_of_somebody_else_carries_no_refusal() {
    assert_eq!(refusal_of(&Status::unavailable("away")), None);
    assert_eq!(
        refusal_of(&Status::with_details(
            Code::Unknown,
            "odd",
            vec![0xff, 1, 2].into()
        )),
        None
    );
    let foreign = tonic_types::pb::Status {
        code: 5,
        message: String::new(),
        details: vec![Any {
            type_url: "type.googleapis.com/other.Refusal".into(),
            value: vec![],
        }],
    };
    let status = Status::with_details(Code::NotFound, "", foreign.encode_to_vec().into());
    assert_eq!(refusal_of(&status), None);
}

#[test]
fn long_messages_are_cut_at_a_character() {
    let status = refuse(RefusalReason::Malformed, "ä".repeat(5000)).build();
    assert_eq!(status.message().chars().count(), MAX_MESSAGE_CHARS);
}
