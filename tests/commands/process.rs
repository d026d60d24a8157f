//! A stack as a process: how it ends, what its pages say, what the doctor says of it, and the demo.

use std::process::Stdio;
use std::time::{Duration, Instant};

use wakelog_proto::v1::AckLevel;

use crate::ran::{DEPENDENCY, DONE, FAILED, Running, client, import, run};
use crate::support::embedded::EmbeddedStack as Stack;
use crate::support::load::Loaded;
use crate::support::process::{get, signal};
use crate::support::{PATIENCE, within};

/// Invariant acked-is-durable over SIGTERM under load: the stack drains, exits with 0, and the writers go on with the
/// next one as if nothing had been.
#[tokio::test(flavor = "multi_thread")]
async fn acked_is_durable_over_sigterm_under_load() {
    let mut stack = Stack::start().await;
    let writers: Vec<_> = (0..4_u64)
        .map(|number| {
            let (endpoint, token) = (stack.endpoint(), stack.token());
            tokio::spawn(async move {
                let connection = wakelog_client::Connection::connect(&endpoint, Some(token))
                    .await
                    .expect("up");
                let level = if number % 2 == 0 {
                    AckLevel::Log
                } else {
                    AckLevel::Store
                };
                let mut session = Loaded::open(&connection, &format!("drain-{number}"), level).await;
                session.send_seeded(number + 1, 300).await;
                session.drain().await;
                session
            })
        })
        .collect();
    let entries = async {
        while counter(&stack, "wakelog_persister_entries_total").await < 100.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within("the load before the stop", entries).await;
    let asked = Instant::now();
    assert!(
        stack.stop().success(),
        "a drained stop ends well\n{}",
        stack.log()
    );
    let took = asked.elapsed();
    assert!(
        took < Duration::from_secs(25),
        "the drain took {took:?}\n{}",
        stack.log()
    );
    assert!(
        writers.iter().any(|writer| !writer.is_finished()),
        "it was stopped under load"
    );
    stack.verify();
    stack.up().await;
    let connection = stack.connect().await;
    for writer in writers {
        let session = tokio::time::timeout(2 * PATIENCE, writer)
            .await
            .expect("a writer ends")
            .expect("well");
        session.check(&connection, "after the stop").await;
    }
    assert!(stack.stop().success());
    stack.verify();
}

/// The second SIGTERM does not wait for what the first one waits for.
#[tokio::test(flavor = "multi_thread")]
async fn the_second_sigterm_ends_at_once() {
    // A batch that takes 20 s: whoever opens a session waits for it, and so does the drain.
    let mut stack = Stack::start_with("persister::before_commit=sleep(20000)").await;
    std::fs::write(stack.folder().join("file"), b"slow\n").unwrap();
    let waiting = Running::start(&mut stack.client(&["import", "file"]), Stdio::null());
    let call = async {
        while counter(&stack, "wakelog_reconstructor_in_flight").await < 1.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within("the call", call).await;
    signal("TERM", stack.pid());
    std::thread::sleep(Duration::from_secs(1));
    assert!(
        stack.ended().is_none(),
        "the first SIGTERM drains\n{}",
        stack.log()
    );
    let asked = Instant::now();
    signal("TERM", stack.pid());
    let status = stack.wait_for_end();
    assert_eq!(status.code(), Some(FAILED), "{}", stack.log());
    assert!(
        asked.elapsed() < Duration::from_secs(2),
        "it took {:?}",
        asked.elapsed()
    );
    waiting.kill();
    stack.set_failpoints("");
    stack.up().await;
    assert!(stack.stop().success());
    stack.verify();
}

/// The pages for machines.
#[tokio::test(flavor = "multi_thread")]
async fn pages_tell_health_readiness_and_metrics() {
    let mut stack = Stack::start().await;
    import(&stack, b"counted\n", "kind=metrics");
    let page = |path: &'static str| async { get(&stack.http(), path).await.unwrap_or_default() };
    for path in ["/healthz", "/readyz"] {
        assert!(page(path).await.starts_with("HTTP/1.1 200"), "{path}");
    }
    assert!(page("/nowhere").await.starts_with("HTTP/1.1 404"));
    let metrics = page("/metrics").await;
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    let (_, body) = metrics.split_once("\r\n\r\n").unwrap();
    let names: Vec<&str> = body
        .lines()
        .filter(|line| !line.starts_with('#') && line.starts_with(|first: char| first.is_ascii_alphabetic()))
        .map(|line| line.split(['{', ' ']).next().unwrap())
        .collect();
    assert!(names.iter().all(|name| name.starts_with("wakelog_")), "{names:?}");
    for service in ["ingest", "persister", "reconstructor", "store"] {
        let prefix = format!("wakelog_{service}_");
        assert!(
            names.iter().any(|name| name.starts_with(&prefix)),
            "{service}: {names:?}"
        );
    }
    assert!(counter(&stack, "wakelog_ingest_acks_total").await >= 1.0);
    // Who takes them for the server is told so.
    let pages = format!("http://{}", stack.http());
    std::fs::write(stack.folder().join("file"), b"to the wrong port\n").unwrap();
    for args in [&["sessions", "ls"], &["import", "file"]] {
        run(stack.command().args(args).args(["--server", &pages]))
            .with(DEPENDENCY)
            .saying(&[&pages, "no gRPC is spoken there", "the port of its pages?"]);
    }
    assert!(stack.stop().success());
}

/// The doctor agrees with a healthy stack, and tells what to do about a stopped one.
#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_tells_health_and_what_to_do() {
    let mut stack = Stack::start().await;
    let (data_dir, http) = (stack.data_dir(), stack.http());
    let doctor = |stack: &Stack, more: &[&str]| {
        let mut command = stack.client(&["doctor", "--http-listen", &http]);
        run(command.args(more).arg("--data-dir").arg(&data_dir))
    };
    let healthy = doctor(&stack, &["--json"]).with(DONE).objects();
    assert!(healthy.len() >= 5, "{healthy:?}");
    for finding in &healthy {
        let names = std::collections::BTreeSet::from(["check", "level", "message", "mend"]);
        assert_eq!(crate::ran::keys(finding), names);
        // Embedded engines are behind their stack; what was not looked at is not called well.
        let is_embedded = ["log", "database", "archive"].contains(&finding["check"].as_str().unwrap());
        assert_eq!(
            finding["level"],
            if is_embedded { "skip" } else { "ok" },
            "{finding}"
        );
    }
    assert!(
        doctor(&stack, &[])
            .with(DONE)
            .text()
            .contains("is held by a running stack")
    );

    assert!(stack.stop().success());
    let stopped = doctor(&stack, &["--json"]).with(DEPENDENCY).objects();
    let failed: Vec<_> = stopped
        .iter()
        .filter(|finding| finding["level"] == "fail")
        .collect();
    assert!(
        failed.iter().any(|finding| finding["check"] == "server"),
        "{stopped:?}"
    );
    for finding in failed {
        assert!(
            finding["mend"]
                .as_str()
                .is_some_and(|hint| !hint.is_empty() && !hint.contains("wakelog doctor")),
            "{finding}"
        );
    }
    assert!(doctor(&stack, &[]).with(DEPENDENCY).text().contains("wakelog up"));
    client(&stack, &["sessions", "ls"])
        .with(DEPENDENCY)
        .saying(&["was not reachable", "wakelog doctor"]);
}

/// The demo ends well on a new folder, and on the same one again.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_runs_twice_on_one_folder() {
    let stack = Stack::prepare();
    for round in 0..2 {
        let mut demo = stack.command();
        demo.args(["demo", "--data-dir"]).arg(stack.data_dir());
        let text = run(&mut demo).with(DONE).text();
        assert_eq!(
            text.matches("equal, byte for byte").count(),
            2,
            "round {round}: {text}"
        );
        assert!(text.contains("is killed"), "round {round}: {text}");
        let again = concat!("`", env!("CARGO_BIN_EXE_wakelog"), " up --data-dir ");
        assert!(text.contains(again), "it is not on the search path: {text}");
        assert!(!text.contains('\u{1b}'), "no colours where there is no terminal");
    }
    stack.verify();
}

/// The sum of a metric over its labels.
async fn counter(stack: &Stack, name: &str) -> f64 {
    let page = get(&stack.http(), "/metrics").await.unwrap_or_default();
    page.lines()
        .filter(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']))
        })
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}
