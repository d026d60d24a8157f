use super::*;

const SESSION: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

fn limit_of(result: Result<(), Error>) -> u64 {
    match result {
        Err(Error::TooLarge { limit, actual, .. }) if actual > limit => limit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_id_has_one_written_form() {
    assert_eq!(session_id(SESSION).unwrap().to_string(), SESSION);
    for value in [
        "",
        "x",
        &SESSION.to_uppercase(),
        &SESSION.replace('-', ""),
        &format!("{{{SESSION}}}"),
    ] {
        assert!(matches!(session_id(value), Err(Error::Malformed(_))), "{value}");
    }
}

#[test]
fn a_malformed_session_id_is_named_and_shortened() {
    let Err(Error::Malformed(message)) = session_id(&"z".repeat(5_000)) else {
        panic!()
    };
    assert!(message.contains("zzz") && message.len() < 200, "{message}");
}

#[test]
fn no_parent_and_no_lifetime_are_empty() {
    assert_eq!(parent_id("").unwrap(), None);
    assert_eq!(parent_id(SESSION).unwrap(), Some(session_id(SESSION).unwrap()));
    assert!(parent_id("x").is_err());
    assert_eq!(lifetime_id(&[]).unwrap(), None);
    assert_eq!(lifetime_id(&[1; 16]).unwrap(), Some(LifetimeId([1; 16])));
    assert!(matches!(lifetime_id(&[1; 15]), Err(Error::Malformed(_))));
}

#[test]
fn a_writer_always_has_a_nonce_of_16_bytes() {
    assert_eq!(writer_nonce(&[2; 16]).unwrap(), WriterNonce([2; 16]));
    for length in [0, 15, 17] {
        assert!(
            matches!(writer_nonce(&vec![2; length]), Err(Error::Malformed(_))),
            "{length}"
        );
    }
}

#[test]
fn an_empty_request_id_is_drawn() {
    let (one, other) = (request_id("").unwrap(), request_id("").unwrap());
    assert_ne!(one, other);
    assert!(!one.is_empty() && one.len() <= MAX_REQUEST_ID_BYTES);
    assert_eq!(request_id("mine").unwrap(), "mine");
}

#[test]
fn request_ids_are_bounded_and_hold_no_nul() {
    assert!(request_id(&"r".repeat(128)).is_ok());
    assert_eq!(limit_of(request_id(&"r".repeat(129)).map(drop)), 128);
    // Bytes count, not characters.
    assert_eq!(limit_of(request_id(&"ü".repeat(65)).map(drop)), 128);
    assert!(matches!(request_id("a\0b"), Err(Error::Malformed(_))));
}

#[test]
fn labels_are_bounded_in_number_and_size() {
    let many = |count: usize| -> Labels { (0..count).map(|at| (format!("k{at}"), String::new())).collect() };
    let one = |key: &str, value: &str| Labels::from([(key.to_owned(), value.to_owned())]);
    assert!(labels(&many(32)).is_ok());
    assert_eq!(limit_of(labels(&many(33))), 32);
    assert!(labels(&one(&"k".repeat(64), &"v".repeat(256))).is_ok());
    assert_eq!(limit_of(labels(&one(&"k".repeat(65), "v"))), 64);
    assert_eq!(limit_of(labels(&one("k", &"v".repeat(257)))), 256);
    for broken in [one("", "v"), one("k\0", "v"), one("k", "\0")] {
        assert!(matches!(labels(&broken), Err(Error::Malformed(_))), "{broken:?}");
    }
}

#[test]
fn a_container_becomes_a_label() {
    assert_eq!(container_label("").unwrap(), Labels::new());
    assert_eq!(
        container_label("box")
            .unwrap()
            .get("container")
            .map(String::as_str),
        Some("box")
    );
    assert_eq!(limit_of(container_label(&"c".repeat(257)).map(drop)), 256);
}

#[test]
fn a_subpath_is_below_a_parent() {
    assert!(subpath("", false).is_ok());
    assert!(subpath("", true).is_ok());
    assert!(subpath("agents/1", true).is_ok());
    assert!(matches!(subpath("agents/1", false), Err(Error::Malformed(_))));
    assert_eq!(limit_of(subpath(&"s".repeat(513), true)), 512);
    assert!(matches!(subpath("a\0", true), Err(Error::Malformed(_))));
}

#[test]
fn pages_have_a_default_and_a_limit() {
    assert_eq!(page_size(0).unwrap(), 100);
    assert_eq!(page_size(1).unwrap(), 1);
    assert_eq!(page_size(1_000).unwrap(), 1_000);
    assert_eq!(limit_of(page_size(1_001).map(drop)), 1_000);
}
