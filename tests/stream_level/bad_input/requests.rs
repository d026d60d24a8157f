//! A request about sessions, by itself.

use std::collections::BTreeMap;

use bytes::Bytes;
use wakelog_client::new_nonce;
use wakelog_proto::v1::{
    AttachWriterRequest, DescribeSessionRequest, ListSessionsRequest, OpenSessionRequest, RefusalReason,
    StartAgentSessionRequest, StopAgentSessionRequest,
};

use super::Scene;
use crate::support::questions::every_question;
use crate::support::refusal::refused;

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
