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
