//! A session is erased by hand.

use crate::ran::{DONE, NOT_FOUND, REFUSED, USAGE, client, import, keys, resume, run_with_input};
use crate::support::embedded::EmbeddedStack as Stack;

/// Nothing is erased unasked; what was is not there for any command, and its owner may ask again.
#[tokio::test(flavor = "multi_thread")]
async fn opaque_absence_after_an_erasure_by_hand() {
    let mut stack = Stack::start().await;
    let session = import(&stack, b"one\n", "kind=erased");
    let other = import(&stack, b"other\n", "kind=kept");
    client(&stack, &["erase", &session])
        .with(USAGE)
        .saying(&["--yes"]);
    assert_eq!(resume(&stack, &session), b"one\n", "nothing was erased unasked");
    client(&stack, &["erase", "no-id", "--yes"]).with(USAGE);
    let unknown = uuid::Uuid::new_v4().to_string();
    client(&stack, &["erase", &unknown, "--yes"]).with(NOT_FOUND);

    for _ in 0..2 {
        let erased = client(&stack, &["erase", &session, "--yes", "--json"])
            .with(DONE)
            .object();
        assert_eq!(keys(&erased), ["session_id", "erased"].into());
        assert_eq!(
            (&erased["session_id"], &erased["erased"]),
            (&session.as_str().into(), &true.into())
        );
    }
    let out = stack.folder().join("out");
    let out = out.to_str().unwrap();
    for args in [
        &["tail", &session][..],
        &["history", &session],
        &["sessions", "show", &session],
        &["export", &session, "--out", out],
        &["resume", &session, "--out", out],
        &["resume", &session, "--at", "1", "--out", out],
    ] {
        client(&stack, args).with(NOT_FOUND);
    }
    assert!(!std::path::Path::new(out).exists());
    let appended = run_with_input(&mut stack.client(&["append", &session]), b"late\n");
    assert!(
        [NOT_FOUND, REFUSED].map(Some).contains(&appended.code),
        "{}",
        appended.stderr
    );
    assert_eq!(resume(&stack, &other), b"other\n");
    assert!(stack.stop().success());
    stack.verify();
}
