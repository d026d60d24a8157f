//! A session that is not there for the caller, or holds nothing.

use wakelog_client::new_nonce;
use wakelog_proto::v1::{
    DescribeSessionRequest, ListSessionsRequest, RefusalReason, StartAgentSessionRequest,
};

use super::Scene;
use crate::support::questions::every_question;
use crate::support::refusal::refused;
use crate::support::session::{attach_first, open};
use crate::support::stack::Stack;
use crate::support::subject::Subject;

/// Invariant opaque-absence: nobody can tell a session of somebody else from one that does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn opaque_absence_of_a_session_of_another_account() {
    const ANN: &str = "the-token-of-ann-0001";
    const BOB: &str = "the-token-of-bob-0002";
    let mut stack = Stack::start_with_accounts(&[("ann", ANN), ("bob", BOB)]).await;
    let connect = async |token: Option<&str>| stack.connect_as(token).await;
    let (ann, bob) = (connect(Some(ANN)).await, connect(Some(BOB)).await);
    let mut subject = Subject::open(&ann, "anns").await;
    let empty = open(&ann, "anns empty one").await;
    let unknown = uuid::Uuid::new_v4().to_string();

    let of_unknown = every_question(&bob, &unknown).await;
    for foreign in [subject.session.clone(), empty.clone()] {
        let of_foreign = every_question(&bob, &foreign).await;
        for ((what, unknown), (_, foreign)) in of_unknown.iter().zip(of_foreign) {
            refused(what, unknown.clone(), RefusalReason::SessionNotFound);
            refused(what, foreign.clone(), RefusalReason::SessionNotFound);
            let (unknown, foreign) = (unknown.clone().unwrap_err(), foreign.unwrap_err());
            assert_eq!(foreign.code(), unknown.code(), "{what}");
            assert_eq!(foreign.message(), unknown.message(), "{what}");
            assert_eq!(foreign.details(), unknown.details(), "{what}");
        }
    }
    let listed = bob
        .sessions()
        .list_sessions(ListSessionsRequest::default())
        .await
        .expect("a list")
        .into_inner();
    assert_eq!(listed.sessions, vec![], "bob has no session");
    // The same request of another account is another session.
    let bobs = Subject::open(&bob, "anns").await;
    assert_ne!(bobs.session, subject.session);
    bobs.check(&bob, "his own session").await;
    subject.goes_on(&ann, 0, "somebody else's questions").await;

    let (nobody, stranger) = (connect(None).await, connect(Some("0123456789abcdef")).await);
    for (what, answer) in every_question(&nobody, &subject.session).await {
        refused(what, answer, RefusalReason::TokenMissing);
    }
    for (what, answer) in every_question(&stranger, &subject.session).await {
        refused(what, answer, RefusalReason::TokenForged);
    }
    subject.goes_on(&ann, 0, "strangers").await;
    assert!(
        stack.stop().success(),
        "a drained stop ends well\n{}",
        stack.log()
    );
    assert_eq!(stack.verify_counting(), 0);
}

/// Invariant resume-is-current: a session without an entry is no fresh start.
#[tokio::test(flavor = "multi_thread")]
async fn resume_is_current_and_never_of_nothing() {
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let resume = async |session: &str, request_id: &str| {
        let request = StartAgentSessionRequest {
            resume_session_id: session.to_owned(),
            request_id: request_id.to_owned(),
            ..Default::default()
        };
        let mut answer = connection
            .sessions()
            .start_agent_session(request)
            .await?
            .into_inner();
        answer.message().await
    };
    let empty = open(&connection, "empty").await;
    for what in ["never attached", "asked again"] {
        refused(what, resume(&empty, "resume").await, RefusalReason::SessionEmpty);
    }
    attach_first(&connection, &empty, new_nonce())
        .await
        .expect("a first writer");
    refused(
        "attached, nothing written",
        resume(&empty, "resume").await,
        RefusalReason::SessionEmpty,
    );
    let described = connection
        .sessions()
        .describe_session(DescribeSessionRequest {
            session_id: empty.clone(),
        })
        .await;
    let summary = described
        .expect("a session")
        .into_inner()
        .summary
        .expect("a summary");
    assert_eq!(summary.generation, 1, "a refused resume binds nothing");
    let unknown = uuid::Uuid::new_v4().to_string();
    refused(
        "unknown",
        resume(&unknown, "resume").await,
        RefusalReason::SessionNotFound,
    );
    scene.undisturbed("resumes of nothing").await;
    scene.end().await;
}
