//! The object store answers, and badly: late, with refusals, not at all after it has done what was asked, or with half of what
//! was asked for. Nothing is pruned that is not archived, bodies are right at every moment or an error, other sessions go on,
//! and once the store is well again everything that is due is archived.

use std::time::{Duration, Instant};

use rand::Rng as _;
use wakelog_client::Connection;
use wakelog_proto::v1::{AckLevel, RefusalReason};

use crate::archive::{entry, until};
use crate::holdings::{Holdings, segments_verify};
use crate::stops_and_verifies;
use crate::support::PATIENCE;
use crate::support::load::Loaded;
use crate::support::native::s3_proxy::{Fault, S3Proxy};
use crate::support::native::{Kind, NativeStack};
use crate::support::seed::{self, Entry};
use crate::support::session::{export, resume};

/// Bytes of deltas that may stay in the hot tail.
const VALVE_BYTES: u64 = 40_000;

/// A stack behind a proxy, a session that has too much in the hot tail, and one that has not.
struct Scene {
    stack: NativeStack,
    proxy: S3Proxy,
    connection: Connection,
    due: Loaded,
    other: Loaded,
    context: String,
}

impl Scene {
    async fn begin(context: &str) -> Self {
        Self::with_valve(context, VALVE_BYTES).await
    }

    async fn with_valve(context: &str, valve_bytes: u64) -> Self {
        let mut stack = NativeStack::prepare().await;
        let proxy = S3Proxy::before(stack.engines().s3.port()).await;
        stack.set("WAKELOG_S3_ENDPOINT", &proxy.endpoint());
        stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", &valve_bytes.to_string());
        stack.up().await;
        // A session that moves to another archiver may be put by both, and one of the objects stays unrecorded.
        stack.wait_until_shared(Kind::Archive).await;
        let connection = stack.connect().await;
        let mut due = Loaded::open(&connection, "due", AckLevel::Store).await;
        let mut other = Loaded::open(&connection, "other", AckLevel::Store).await;
        for session in [&mut due, &mut other] {
            session.send(entry(1, 1_000, true)).await;
            session.drain().await;
        }
        Self {
            stack,
            proxy,
            connection,
            due,
            other,
            context: context.to_owned(),
        }
    }

    /// More than the valve lets through.
    async fn write_what_is_due(&mut self) {
        for number in 2..80 {
            self.due.send(entry(number, 1_000, false)).await;
        }
        self.due.drain().await;
    }

    /// The other session is written and read, the one that is due is read, and nothing is gone.
    async fn goes_on(&mut self) {
        for _ in 0..5 {
            let number = self.other.sent.entries.len() as u64 + 1;
            self.other
                .send(entry(number, 300, number.is_multiple_of(20)))
                .await;
        }
        self.other.drain().await;
        for session in [&self.other, &self.due] {
            session.check_export(&self.connection, &self.context).await;
            let mut holdings = Holdings::of(&self.stack, session).await;
            holdings.are_whole(&self.stack, session, &self.context).await;
        }
    }

    /// Everything goes on while the fault is met so many times.
    async fn goes_on_until_met(&mut self, times: u64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.goes_on().await;
            let met = self.proxy.met();
            if met >= times {
                return;
            }
            assert!(Instant::now() < deadline, "{}: met {met} times", self.context);
        }
    }

    /// Everything goes on until an archiver has tried a request as often as it does, and given up.
    async fn goes_on_until_given_up(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        let (jobs, failed) = ("wakelog_archiver_jobs_total", "outcome=\"failed\"");
        while self.of_archivers(jobs, failed).await == 0.0 {
            self.goes_on().await;
            assert!(Instant::now() < deadline, "{}: nobody gives up", self.context);
        }
        self.goes_on().await;
    }

    /// Nothing was archived, so nothing was pruned.
    async fn hot_tail_keeps_everything(&self) {
        for session in [&self.due, &self.other] {
            let mut holdings = Holdings::of(&self.stack, session).await;
            let written = session.sent.entries.len() as u64;
            assert_eq!(holdings.hot_entries().await, written, "{}", self.context);
            assert_eq!(holdings.copied_entries(written).await, 0, "{}", self.context);
        }
    }

    /// Whatever is due of both sessions is archived.
    async fn everything_due_is_archived(&mut self) {
        for session in [&self.due, &self.other] {
            let mut holdings = Holdings::of(&self.stack, session).await;
            until(&format!("{}: it is archived", self.context), async || {
                holdings.superseded_rows().await == 0 && holdings.delta_bytes().await <= VALVE_BYTES
            })
            .await;
            holdings.are_whole(&self.stack, session, &self.context).await;
        }
        let mut holdings = Holdings::of(&self.stack, &self.due).await;
        let written = self.due.sent.entries.len() as u64;
        assert!(holdings.hot_entries().await < written, "{}", self.context);
    }

    /// With the store well again everything is archived, readable and found good; returns what `segments verify` has found
    /// that is recorded nowhere.
    async fn ends_well(mut self) -> (NativeStack, usize) {
        self.proxy.set(Fault::None);
        self.everything_due_is_archived().await;
        self.due.check(&self.connection, &self.context).await;
        self.other.check(&self.connection, &self.context).await;
        stops_and_verifies(&mut self.stack, &self.context);
        let report = segments_verify(&self.stack, &[]);
        let findings = report["findings"].as_array().expect("findings").clone();
        for finding in &findings {
            let is_orphan = finding["what"] == "orphan" || finding["what"] == "staged";
            assert!(is_orphan, "{}: {finding}", self.context);
        }
        (self.stack, findings.len())
    }

    /// The sum of a metric of both archivers, of the series whose labels contain `label`.
    async fn of_archivers(&self, name: &str, label: &str) -> f64 {
        self.stack.total(Kind::Archive, name, label).await
    }
}

/// Invariants put-before-prune, archived-is-complete: every answer of the store comes late.
#[tokio::test(flavor = "multi_thread")]
async fn put_before_prune_while_the_store_is_slow() {
    let mut scene = Scene::begin("a slow store").await;
    scene.proxy.set(Fault::Slow(Duration::from_millis(1_500)));
    scene.write_what_is_due().await;
    // Slow is not away: what is due is archived meanwhile, and read.
    scene.goes_on_until_met(3).await;
    scene.everything_due_is_archived().await;
    scene.goes_on().await;
    let (_, orphans) = scene.ends_well().await;
    assert_eq!(orphans, 0);
}

/// Invariants put-before-prune, archived-is-complete: the store refuses everything for a while, then every write.
#[tokio::test(flavor = "multi_thread")]
async fn put_before_prune_while_the_store_refuses() {
    for (fault, outcome) in [(Fault::SlowDown, "throttled"), (Fault::Conflict, "conflict")] {
        let mut scene = Scene::begin(outcome).await;
        scene.proxy.set(fault);
        scene.write_what_is_due().await;
        scene.goes_on_until_given_up().await;
        scene.hot_tail_keeps_everything().await;
        let label = format!("outcome=\"{outcome}\"");
        let refused = scene.of_archivers("wakelog_archive_requests_total", &label).await;
        assert!(refused > 0.0, "{outcome}");
        let (_, orphans) = scene.ends_well().await;
        assert_eq!(orphans, 0, "{outcome}");
    }
}

/// Invariants archived-is-complete, put-before-prune: objects are put and nobody says so. They are found by looking, and none
/// is left behind.
#[tokio::test(flavor = "multi_thread")]
async fn archived_is_complete_when_answers_of_puts_are_lost() {
    let mut scene = Scene::begin("lost answers").await;
    scene.proxy.set(Fault::LoseAnswers);
    scene.write_what_is_due().await;
    scene.goes_on_until_met(2).await;
    scene.everything_due_is_archived().await;
    assert!(scene.proxy.met() >= 2);
    scene.goes_on().await;
    let (_, orphans) = scene.ends_well().await;
    assert_eq!(orphans, 0, "what is looked for is found");
}

/// The same for the last step of a large object, which goes up in parts: it is asked for again, and no job fails for that.
#[tokio::test(flavor = "multi_thread")]
async fn archived_is_complete_when_the_end_of_an_upload_in_parts_is_not_answered() {
    // The valve stays shut: all of it goes up at once when a checkpoint comes.
    let mut scene = Scene::with_valve("an upload in parts", 1 << 30).await;
    scene.proxy.set_for(Fault::LoseCompletions, 1);
    let mut rng = seed::rng(16);
    for _ in 0..8 {
        let mut bytes = vec![0; 3_000_000];
        rng.fill(&mut bytes[..]);
        let noise = Entry {
            bytes: bytes.into(),
            checkpoint: false,
        };
        scene.due.send(noise).await;
    }
    scene.due.send(entry(10, 1_000, true)).await;
    scene.due.drain().await;
    scene.goes_on_until_met(1).await;
    scene.everything_due_is_archived().await;
    let segments = format!("sessions/{}/0", scene.due.lifetime.session_id);
    let sizes = scene.stack.objects(&segments).into_iter().map(|key| {
        let object = std::fs::metadata(scene.stack.object_path(&key));
        object.expect("the object").len()
    });
    assert!(sizes.max() > Some(20_000_000), "none is that large");
    let (jobs, failed) = ("wakelog_archiver_jobs_total", "outcome=\"failed\"");
    assert_eq!(scene.of_archivers(jobs, failed).await, 0.0, "a job failed");
    let (_, orphans) = scene.ends_well().await;
    assert_eq!(orphans, 0);
}

/// The same as with lost answers, and who looks is refused: the object is there, unrecorded, and a checkpoint makes its range another one. It is left
/// behind, and `segments verify` takes it.
#[tokio::test(flavor = "multi_thread")]
async fn archived_is_complete_when_nobody_can_look_whether_a_put_happened() {
    let mut scene = Scene::begin("nobody can look").await;
    scene.proxy.set(Fault::LoseAnswersAndLooks);
    scene.write_what_is_due().await;
    let segments = format!("sessions/{}/0", scene.due.lifetime.session_id);
    until("an object is put", async || {
        !scene.stack.objects(&segments).is_empty()
    })
    .await;
    scene.goes_on_until_given_up().await;
    scene.hot_tail_keeps_everything().await;
    scene.due.send(entry(80, 1_000, true)).await;
    scene.due.send(entry(81, 1_000, false)).await;
    scene.due.drain().await;
    // The first upload is given up, and the next one is of what the checkpoint has superseded.
    until("another object is put", async || {
        scene.stack.objects(&segments).len() > 1
    })
    .await;
    scene.hot_tail_keeps_everything().await;
    scene.goes_on().await;
    let (stack, orphans) = scene.ends_well().await;
    assert!(orphans > 0, "nothing was left behind");
    let taken = segments_verify(&stack, &["--delete", "--older-than", "0"]);
    assert_eq!(taken["deleted"], orphans, "{taken}");
    let left = segments_verify(&stack, &[]);
    assert_eq!(left["findings"].as_array().expect("findings").len(), 0, "{left}");
    stack.verify();
}

/// Invariants put-before-prune, resume-is-current: the bucket takes no writes any more. Archivers say so, the hot tail keeps
/// everything, and a new archiver does not start.
#[tokio::test(flavor = "multi_thread")]
async fn put_before_prune_when_the_bucket_is_read_only() {
    let mut scene = Scene::begin("a read-only bucket").await;
    scene.proxy.set(Fault::ReadOnly);
    scene.write_what_is_due().await;
    scene.goes_on_until_given_up().await;
    scene.hot_tail_keeps_everything().await;
    let denied = scene
        .of_archivers("wakelog_archive_requests_total", "outcome=\"denied\"")
        .await;
    let failed = scene
        .of_archivers("wakelog_archiver_jobs_total", "outcome=\"failed\"")
        .await;
    assert!(denied > 0.0 && failed > 0.0, "{denied} requests, {failed} jobs");
    let said = |number| scene.stack.whole_log(Kind::Archive, number);
    let logged = said(0) + &said(1);
    let id = &scene.due.lifetime.session_id;
    let says_so = |line: &str| line.contains("archiving a session failed") && line.contains(id.as_str());
    let line = logged.lines().find(|line| says_so(line));
    assert!(line.is_some_and(|line| line.contains("AccessDenied")), "{line:?}");

    scene.stack.kill(Kind::Archive, 1);
    let http = scene.stack.http(Kind::Archive, 1);
    let started = scene.stack.command(&["archive", "--http-listen", &http]).output();
    let started = started.expect("archive runs");
    let why = String::from_utf8_lossy(&started.stderr).into_owned();
    assert_eq!(started.status.code(), Some(5), "{why}");
    assert!(why.contains("AccessDenied"), "{why}");

    scene.goes_on().await;
    scene.hot_tail_keeps_everything().await;
    scene.proxy.set(Fault::None);
    scene.stack.start(Kind::Archive, 1).await;
    let (_, orphans) = scene.ends_well().await;
    assert_eq!(orphans, 0);
}

/// Invariants resume-is-current, byte-exact: objects come by halves. A few times: the body is right. For good: it is an error,
/// never a shorter body.
#[tokio::test(flavor = "multi_thread")]
async fn resume_is_current_or_an_error_when_objects_come_by_halves() {
    let mut scene = Scene::begin("halves").await;
    scene.write_what_is_due().await;
    scene.everything_due_is_archived().await;
    let id = scene.due.lifetime.session_id.clone();
    for fault in [Fault::CutBodies, Fault::ShortBodies] {
        scene.proxy.set_for(fault, 3);
        scene.due.check(&scene.connection, "three halves").await;
        assert_eq!(scene.proxy.met(), 3, "{fault:?}: the archive was not asked");
    }
    let typed = [RefusalReason::DependencyUnavailable, RefusalReason::StoreCorrupt];
    for fault in [Fault::CutBodies, Fault::ShortBodies, Fault::SlowDown] {
        scene.proxy.set(fault);
        let request = format!("{fault:?}");
        let resuming = resume(&scene.connection, &id, &request);
        let (exported, resumed) = tokio::join!(export(&scene.connection, &id), resuming);
        for (what, answer) in [
            ("export", exported.map(|(_, body)| body)),
            ("resume", resumed.map(|(_, body)| body)),
        ] {
            let error = match answer {
                Ok(body) => panic!("{fault:?}: an {what} of {} bytes came", body.len()),
                Err(error) => error,
            };
            let reason = error.refusal_reason();
            assert!(
                reason.is_some_and(|reason| typed.contains(&reason)),
                "{fault:?}: {what}: {error}"
            );
        }
        assert!(scene.proxy.met() > 3, "{fault:?}");
        scene
            .other
            .check_export(&scene.connection, "the other session")
            .await;
    }
    let (_, orphans) = scene.ends_well().await;
    assert_eq!(orphans, 0);
}
