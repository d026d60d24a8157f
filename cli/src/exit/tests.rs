use wakelog_contract::refuse;

use super::*;

fn exit_for(reason: RefusalReason) -> Exit {
    Error::from(refuse(reason, "no").build()).exit
}

#[test]
fn refusals_have_the_exit_codes_of_the_contract() {
    assert_eq!(exit_for(RefusalReason::SessionNotFound), Exit::NotFound);
    assert_eq!(exit_for(RefusalReason::TokenMissing), Exit::NotFound);
    assert_eq!(exit_for(RefusalReason::Superseded), Exit::Refused);
    assert_eq!(exit_for(RefusalReason::BindLost), Exit::Refused);
    assert_eq!(exit_for(RefusalReason::Conflict), Exit::Refused);
    assert_eq!(exit_for(RefusalReason::EmptyEntry), Exit::Refused);
    assert_eq!(exit_for(RefusalReason::TooLarge), Exit::Refused);
    assert_eq!(exit_for(RefusalReason::Malformed), Exit::Usage);
    assert_eq!(exit_for(RefusalReason::DependencyUnavailable), Exit::Dependency);
    assert_eq!(exit_for(RefusalReason::StoreCorrupt), Exit::Failed);
}

#[test]
fn a_body_that_does_not_fit_its_close_is_a_failure() {
    let error = Error::from(wakelog_client::Error::CutShort { received: 3 });
    assert_eq!(error.exit, Exit::Failed);
    assert!(error.hint.is_some());
}

#[test]
fn the_first_hint_stays() {
    let error = Error::failed("x")
        .or_hint("close")
        .or_hint("far")
        .while_doing("doing y");
    assert_eq!(
        (error.hint.as_deref(), error.message.as_str()),
        (Some("close"), "doing y: x")
    );
}

#[test]
fn causes_are_told_once() {
    let cause = io::Error::other("disk full");
    let error = wakelog_client::Error::Sink(cause);
    assert_eq!(
        with_sources(&error),
        "the received body could not be written: disk full"
    );
}

#[test]
fn a_hint_may_depend_on_what_was_refused() {
    let refused = || Error::from(refuse(RefusalReason::Superseded, "no").build());
    let hinted = refused().with_hint_on(RefusalReason::Superseded, "another name");
    assert_eq!(hinted.hint.as_deref(), Some("another name"));
    let other = refused().with_hint_on(RefusalReason::Conflict, "another name");
    assert!(other.hint.is_some_and(|hint| hint.contains("--take-over")));
}

#[test]
fn a_server_is_named_where_it_is_the_trouble() {
    let lost = wakelog_client::Error::Lost {
        reason: "connection refused".to_owned(),
    };
    let error = Error::from(lost).at("http://a:1");
    assert_eq!(
        error.message,
        "http://a:1: the connection failed: connection refused"
    );
    assert_eq!(error.exit, Exit::Dependency);
    let refused = Error::from(refuse(RefusalReason::SessionNotFound, "no such session").build());
    assert!(!refused.at("http://a:1").message.contains("http://a:1"));
}
