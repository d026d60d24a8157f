//! A request about sessions.

use std::collections::BTreeMap;

use bytes::Bytes;
use tonic::Status;
use wakelog_client::{Connection, new_nonce};
use wakelog_proto::v1::{
    AttachWriterRequest, DescribeSessionRequest, ExportSessionRequest, ListSessionsRequest,
    OpenSessionRequest, RefusalReason, StartAgentSessionRequest, StopAgentSessionRequest, TailSessionRequest,
};

use super::Scene;
use crate::support::refusal::refused;
use crate::support::session::{attach_first, open};
use crate::support::stack::Stack;
use crate::support::subject::Subject;
use crate::support::within;

/// Everything that names a session, asked about `session`: what each answers first.
async fn every_question(connection: &Connection, session: &str) -> Vec<(&'static str, Result<(), Status>)> {
    let mut sessions = connection.sessions();
    let session_id = session.to_owned();
    let attachment = |take_over, last_lifetime_id| AttachWriterRequest {
        session_id: session.to_owned(),
        writer_nonce: new_nonce().as_bytes().to_vec().into(),
        last_lifetime_id,
        take_over,
    };
    let start = StartAgentSessionRequest {
        resume_session_id: session_id.clone(),
        ..Default::default()
    };
    let tail = TailSessionRequest {
        session_id: session_id.clone(),
        ..Default::default()
    };
    let stop = |lifetime_id| StopAgentSessionRequest {
        session_id: session.to_owned(),
        lifetime_id,
    };
    let child = OpenSessionRequest {
        parent_session_id: session_id.clone(),
        ..Default::default()
    };
    let some_lifetime = Bytes::from_static(&[5; 16]);
    let ask = async {
        let describe = sessions
            .describe_session(DescribeSessionRequest {
                session_id: session_id.clone(),
            })
            .await;
        let export = match sessions.export_session(ExportSessionRequest { session_id }).await {
            Ok(answer) => answer.into_inner().message().await.map(drop),
            Err(status) => Err(status),
        };
        let tail = match sessions.tail_session(tail).await {
            Ok(answer) => answer.into_inner().message().await.map(drop),
            Err(status) => Err(status),
        };
        let resume = match sessions.start_agent_session(start).await {
            Ok(answer) => answer.into_inner().message().await.map(drop),
            Err(status) => Err(status),
        };
        let last = attachment(false, some_lifetime.clone());
        vec![
            ("describe", describe.map(drop)),
            ("export", export),
            ("tail", tail),
            ("resume", resume),
            (
                "attach",
                sessions
                    .attach_writer(attachment(false, Bytes::new()))
                    .await
                    .map(drop),
            ),
            (
                "attach after a lifetime",
                sessions.attach_writer(last).await.map(drop),
            ),
            (
                "take over",
                sessions
                    .attach_writer(attachment(true, Bytes::new()))
                    .await
                    .map(drop),
            ),
            (
                "stop",
                sessions.stop_agent_session(stop(Bytes::new())).await.map(drop),
            ),
            (
                "stop a lifetime",
                sessions.stop_agent_session(stop(some_lifetime)).await.map(drop),
            ),
            ("open below", sessions.open_session(child).await.map(drop)),
        ]
    };
    within("questions about a session", ask).await
}

/// Invariant opaque-absence: nobody can tell a session of somebody else from one that does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn opaque_absence_of_a_session_of_another_account() {
    const ANN: &str = "the-token-of-ann-0001";
    const BOB: &str = "the-token-of-bob-0002";
    let mut stack = Stack::prepare();
    let accounts = stack.folder().join("accounts");
    std::fs::write(&accounts, format!("# who may call\nann {ANN}\nbob {BOB}\n")).expect("a token file");
    stack.set_up_args(&[
        "--no-discovery",
        "--caller-token-file",
        accounts.to_str().expect("a path"),
    ]);
    stack.up().await;
    let connect = async |token: Option<&str>| {
        Connection::connect(&stack.endpoint(), token.map(str::to_owned))
            .await
            .expect("a connection")
    };
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

fn labels(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// Every request that is wrong by itself is refused for its reason.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_malformed_are_refused() {
    use RefusalReason::{Conflict, Malformed, SessionNotFound, TooLarge};
    let mut scene = Scene::start().await;
    let connection = scene.connection.clone();
    let session = scene.subject.session.clone();

    let long = "x".repeat(5000);
    let upper = session.to_uppercase().replace('0', "A");
    let (simple, braced) = (session.replace('-', ""), format!("{{{session}}}"));
    let (spaced, with_nul) = (format!("{session} "), format!("{session}\0"));
    for id in [
        "session",
        "../../etc/passwd",
        "' OR 1=1 --",
        &long,
        &upper,
        &simple,
        &braced,
        &spaced,
        &with_nul,
    ] {
        for (what, answer) in every_question(&connection, id).await {
            refused(
                &format!("{what} of {:?}", &id[..id.len().min(60)]),
                answer,
                Malformed,
            );
        }
    }
    scene.undisturbed("malformed session ids").await;

    let base = OpenSessionRequest::default();
    let many: BTreeMap<String, String> = (0..33).map(|at| (format!("key-{at}"), String::new())).collect();
    let below = |subpath: String| OpenSessionRequest {
        parent_session_id: session.clone(),
        subpath,
        ..base.clone()
    };
    let labelled = |labels| OpenSessionRequest {
        labels,
        ..base.clone()
    };
    let named = |request_id: String| OpenSessionRequest {
        request_id,
        ..base.clone()
    };
    let opens = [
        (
            "a NUL in a label's key",
            labelled(labels(&[("a\0b", "c")])),
            Malformed,
            0,
        ),
        (
            "a NUL in a label's value",
            labelled(labels(&[("a", "\0")])),
            Malformed,
            0,
        ),
        (
            "a label without a key",
            labelled(labels(&[("", "c")])),
            Malformed,
            0,
        ),
        ("33 labels", labelled(many), TooLarge, 32),
        (
            "a label's key of 65 bytes",
            labelled(labels(&[(&"k".repeat(65), "c")])),
            TooLarge,
            64,
        ),
        (
            "a label's key of 66 bytes in 33 letters",
            labelled(labels(&[(&"\u{e9}".repeat(33), "c")])),
            TooLarge,
            64,
        ),
        (
            "a label's value of 257 bytes",
            labelled(labels(&[("k", &"v".repeat(257))])),
            TooLarge,
            256,
        ),
        ("a request id of 129 bytes", named("r".repeat(129)), TooLarge, 128),
        ("a NUL in a request id", named("r\0".to_owned()), Malformed, 0),
        ("a subpath of 513 bytes", below("s".repeat(513)), TooLarge, 512),
        ("a NUL in a subpath", below("s\0".to_owned()), Malformed, 0),
        (
            "a subpath without a parent",
            OpenSessionRequest {
                subpath: "s".to_owned(),
                ..base.clone()
            },
            Malformed,
            0,
        ),
        (
            "an unknown parent",
            OpenSessionRequest {
                parent_session_id: uuid::Uuid::new_v4().to_string(),
                ..base.clone()
            },
            SessionNotFound,
            0,
        ),
        (
            "the same request with labels",
            OpenSessionRequest {
                labels: labels(&[("a", "b")]),
                ..named("subject".into())
            },
            Conflict,
            0,
        ),
        (
            "the same request with a parent",
            OpenSessionRequest {
                request_id: "subject".to_owned(),
                ..below(String::new())
            },
            Conflict,
            0,
        ),
    ];
    for (what, request, reason, limit) in opens {
        let answer = connection.sessions().open_session(request).await;
        assert_eq!(refused(what, answer, reason).limit, limit, "{what}");
    }
    // The largest that fits.
    let fits: BTreeMap<String, String> = (0..32).map(|at| (format!("{at:064}"), "v".repeat(256))).collect();
    let largest = OpenSessionRequest {
        labels: fits.clone(),
        request_id: "r".repeat(128),
        ..below("s".repeat(512))
    };
    let opened = connection
        .sessions()
        .open_session(largest)
        .await
        .expect("what fits is taken")
        .into_inner();
    let described = connection
        .sessions()
        .describe_session(DescribeSessionRequest {
            session_id: opened.session_id,
        })
        .await;
    assert_eq!(
        described
            .expect("a session")
            .into_inner()
            .summary
            .expect("a summary")
            .labels,
        fits
    );
    scene.undisturbed("malformed openings").await;

    let start = StartAgentSessionRequest::default();
    let starts = [
        (
            "a container of 257 bytes",
            StartAgentSessionRequest {
                container_name: "c".repeat(257),
                ..start.clone()
            },
            TooLarge,
            256,
        ),
        (
            "a NUL in a container",
            StartAgentSessionRequest {
                container_name: "\0".into(),
                ..start.clone()
            },
            Malformed,
            0,
        ),
        (
            "a start's request id of 129 bytes",
            StartAgentSessionRequest {
                request_id: "r".repeat(129),
                ..start.clone()
            },
            TooLarge,
            128,
        ),
        (
            "a NUL in a start's request id",
            StartAgentSessionRequest {
                request_id: "\0".into(),
                ..start
            },
            Malformed,
            0,
        ),
    ];
    for (what, request, reason, limit) in starts {
        let answer = match connection.sessions().start_agent_session(request).await {
            Ok(answer) => answer.into_inner().message().await,
            Err(status) => Err(status),
        };
        assert_eq!(refused(what, answer, reason).limit, limit, "{what}");
    }

    let list = ListSessionsRequest::default();
    let lists = [
        (
            "a page of 1001",
            ListSessionsRequest {
                page_size: 1001,
                ..list.clone()
            },
            TooLarge,
            1000,
        ),
        (
            "the largest page",
            ListSessionsRequest {
                page_size: u32::MAX,
                ..list.clone()
            },
            TooLarge,
            1000,
        ),
        (
            "a page token of text",
            ListSessionsRequest {
                page_token: "next please".into(),
                ..list.clone()
            },
            Malformed,
            0,
        ),
        (
            "a page token too short",
            ListSessionsRequest {
                page_token: "00ff".into(),
                ..list.clone()
            },
            Malformed,
            0,
        ),
        (
            "a page token of a far time",
            ListSessionsRequest {
                page_token: "ff".repeat(24),
                ..list.clone()
            },
            Malformed,
            0,
        ),
        (
            "a NUL in a label to look for",
            ListSessionsRequest {
                labels: labels(&[("a", "\0")]),
                ..list.clone()
            },
            Malformed,
            0,
        ),
    ];
    for (what, request, reason, limit) in lists {
        let answer = connection.sessions().list_sessions(request).await;
        assert_eq!(refused(what, answer, reason).limit, limit, "{what}");
    }
    let page = ListSessionsRequest {
        page_size: 1000,
        ..list
    };
    let listed = connection
        .sessions()
        .list_sessions(page)
        .await
        .expect("the largest page")
        .into_inner();
    assert!(listed.sessions.iter().any(|listed| listed.session_id == session));

    for length in [0, 15, 17] {
        let request = AttachWriterRequest {
            session_id: session.clone(),
            writer_nonce: vec![1; length].into(),
            take_over: true,
            ..Default::default()
        };
        refused(
            &format!("a nonce of {length} bytes"),
            connection.sessions().attach_writer(request).await,
            Malformed,
        );
    }
    let nonce = Bytes::from(new_nonce().as_bytes().to_vec());
    let attach = AttachWriterRequest {
        session_id: session.clone(),
        writer_nonce: nonce,
        ..Default::default()
    };
    let short = AttachWriterRequest {
        last_lifetime_id: Bytes::from_static(&[1; 15]),
        ..attach.clone()
    };
    refused(
        "a lifetime id of 15 bytes",
        connection.sessions().attach_writer(short).await,
        Malformed,
    );
    let stop = StopAgentSessionRequest {
        session_id: session.clone(),
        lifetime_id: Bytes::from_static(&[1; 17]),
    };
    refused(
        "a lifetime id of 17 bytes",
        connection.sessions().stop_agent_session(stop).await,
        Malformed,
    );

    // Well-formed, and of no lifetime that is current.
    let unknown = AttachWriterRequest {
        last_lifetime_id: Bytes::from_static(&[1; 16]),
        ..attach.clone()
    };
    let answer = connection.sessions().attach_writer(unknown).await;
    assert_eq!(
        refused("after an unknown lifetime", answer, RefusalReason::Superseded).expected,
        1
    );
    let answer = connection.sessions().attach_writer(attach).await;
    assert_eq!(
        refused("as if the session were new", answer, RefusalReason::Superseded).expected,
        1
    );
    let stop = StopAgentSessionRequest {
        session_id: session,
        lifetime_id: Bytes::from_static(&[1; 16]),
    };
    let answer = connection.sessions().stop_agent_session(stop).await;
    assert_eq!(
        refused(
            "the end of an unknown lifetime",
            answer,
            RefusalReason::Superseded
        )
        .expected,
        1
    );
    scene.undisturbed("malformed requests").await;
    scene.end().await;
}
