use super::*;

#[test]
fn a_line_says_what_is_wrong_and_how_to_mend_it() {
    let line = Finding::fail("database", "it is away", "start it").line();
    assert_eq!(
        line,
        "fail  database          it is away\n                        start it\n"
    );
    assert_eq!(
        Finding::ok("log", "fine").line(),
        "ok    log               fine\n"
    );
}

#[test]
fn the_doctor_does_not_send_to_the_doctor() {
    let without = |hint: &str| {
        Finding::error("server", Error::failed("x").or_hint(hint))
            .mend
            .unwrap()
    };
    assert_eq!(
        without("is `wakelog up`, or the service, running there? `wakelog doctor` looks at every dependency"),
        "is `wakelog up`, or the service, running there?"
    );
    assert_eq!(
        without("try again in a moment; `wakelog doctor` says what is away"),
        "try again in a moment"
    );
    assert_eq!(
        without("`wakelog doctor` looks at every dependency"),
        "the log of its process says more"
    );
    assert_eq!(
        without("chmod 600 it, or another file"),
        "chmod 600 it, or another file"
    );
}

#[test]
fn an_answer_of_readyz_is_read() {
    assert_eq!(
        server::read_answer("HTTP/1.1 200 OK\r\na: b\r\n\r\nready\n"),
        Some((200, "ready"))
    );
    assert_eq!(
        server::read_answer("HTTP/1.1 503 X\r\n\r\na\nb\n"),
        Some((503, "a\nb"))
    );
    assert_eq!(server::read_answer("SSH-2.0\r\n"), None);
}
