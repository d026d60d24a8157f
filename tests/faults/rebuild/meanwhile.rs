//! What goes on around a rebuild: services on the database, an erasure, a topic that drops more, damaged objects, another log.

use std::process::Output;

use rdkafka::producer::{FutureProducer, FutureRecord};
use wakelog_client::Connection;

use super::cast::loaded;
use super::place::{Place, missing_of};
use crate::archive::{entry, until};
use crate::support::load::Loaded;
use crate::support::native::Kind;
use crate::support::native::fleet::PARTITIONS;
use crate::support::process::{Process, free_port};
use crate::support::session::{describe, erase};

const FROM_ARCHIVE: [&str; 2] = ["--from-archive", "--json"];

/// Sessions that nothing happens to but that they are rebuilt.
const KEPT: usize = 8;

/// Invariants exactly-once-fold, archived-is-complete, opaque-absence: whatever goes on meanwhile, a rebuild is whole, or is
/// refused, or says what is missing.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_whatever_goes_on_around_a_rebuild() {
    let mut place = Place::prepare().await;
    place.stack.up().await;
    let connection = place.stack.connect().await;
    let mut kept = Vec::new();
    for number in 0..KEPT {
        kept.push(loaded(&connection, &format!("kept-{number}"), 3).await);
    }
    let mut erased = loaded(&connection, "erased", 3).await;
    place.covered().await;
    for number in 0..2 {
        assert!(place.stack.stop(Kind::Archive, number).success());
    }
    for session in kept.iter_mut().chain([&mut erased]) {
        session.send(entry(4, 300, false)).await;
        session.drain().await;
    }
    damage_and_what_is_dropped(&place, &kept[0]).await;
    services_on_the_database(&place).await;
    an_erasure(&mut place, &connection, &erased.lifetime.session_id).await;
    unreadable_coverage(&mut place, &mut kept[0]).await;
    another_bucket(&mut place).await;
    another_log(&mut place).await;
    undecodable_records(&place).await;
}

/// A damaged state is told where it is needed. What the topic drops under a rebuild is not lost to the next one.
async fn damage_and_what_is_dropped(place: &Place, session: &Loaded) {
    let id = &session.lifetime.session_id;
    let states = place.stack.objects(&format!("sessions/{id}/state-"));
    let path = place.stack.object_path(states.last().expect("a state"));
    let whole = std::fs::read(&path).expect("the state");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("half of it");
    let all = place.database("all").await;
    let report = place.replay(&all, &FROM_ARCHIVE, "").with(0).object();
    assert_eq!(
        report["restored_sessions"], 0,
        "the topic has everything: {report}"
    );

    let partition = describe(&place.stack.connect().await, id)
        .await
        .expect("it is there");
    let partition = partition.summary.expect("a summary").partition;
    place.eat_what_is_covered_but(partition).await;
    let others = place.database("others").await;
    let report = place.replay(&others, &FROM_ARCHIVE, "").with(0).object();
    assert!(report["restored_sessions"].as_u64() > Some(0), "{report}");

    let begun = place.database("begun").await;
    let died = place.replay(&begun, &FROM_ARCHIVE, "persister::before_batch=return");
    assert_ne!(died.code, 0);
    place.eat_what_is_covered().await;
    place
        .replay(&begun, &FROM_ARCHIVE, "")
        .with(4)
        .saying("the archive covers them by now")
        .saying("drop this database");

    let damaged = place.database("damaged").await;
    let report = place.replay(&damaged, &FROM_ARCHIVE, "").with(6).object();
    let named = missing_of(&report, id);
    assert_eq!(named.len(), 1, "{report}");
    assert_eq!(
        (&named[0]["kind"], &report["finished"]),
        (&"state".into(), &false.into()),
        "{report}"
    );
    std::fs::write(&path, &whole).expect("it is back");
    let report = place.replay(&damaged, &FROM_ARCHIVE, "").with(0).object();
    assert_eq!(report["complete"], true, "{report}");

    // Without its states, the first entries of a session are in segments that nobody can place, and its last one nowhere.
    let gone: Vec<_> = states.iter().map(|key| place.stack.object_path(key)).collect();
    gone.iter()
        .for_each(|path| std::fs::rename(path, path.with_extension("away")).expect("it is away"));
    let headless = place.database("headless").await;
    let report = place.replay(&headless, &FROM_ARCHIVE, "").with(6).object();
    let mut kinds: Vec<_> = missing_of(&report, id)
        .into_iter()
        .map(|missing| missing["kind"].as_str().expect("a kind").to_owned())
        .collect();
    kinds.sort();
    assert_eq!(kinds, ["unknown_session", "unopened_session"], "{report}");
    gone.iter()
        .for_each(|path| std::fs::rename(path.with_extension("away"), path).expect("it is back"));
}

/// Nobody builds a database under a service, and what is built is whole once the service has gone.
async fn services_on_the_database(place: &Place) {
    let used = place.migrated_database("used").await;
    let pages = format!("127.0.0.1:{}", free_port());
    let mut command = place.stack.command(&["persist", "--http-listen", &pages]);
    command
        .env("WAKELOG_DATABASE_URL", &used)
        .env("WAKELOG_GROUP", "on-an-empty-database");
    let log = place.stack.folder().join("persist-on-used.log");
    let persister = Process::start("persister", &command, &log);
    until("it has claimed a partition", async || {
        persister.log().contains("partition claimed")
    })
    .await;
    place
        .replay(&used, &FROM_ARCHIVE, "")
        .with(4)
        .saying("the database is in use by")
        .saying("stop the services");
    assert!(persister.stop().success());
    let report = place.replay(&used, &FROM_ARCHIVE, "").with(0).object();
    assert_eq!(report["complete"], true, "{report}");
    let aside = "SELECT count(*) FROM quarantined_records";
    assert_eq!(place.number(&used, aside).await, 0);
}

/// A session is erased when its mark was looked for and its state was not yet restored: nothing of it comes back, not in the quarantine either.
async fn an_erasure(place: &mut Place, connection: &Connection, id: &str) {
    let late = place.database("erased").await;
    // Its archived ends, the coverage and the marks are listed by then, its states not yet.
    let mut replay = place.frozen_replay(&late, "archive::before_list:4").await;
    erase(connection, id).await.expect("it is erased");
    place.stack.start(Kind::Archive, 0).await;
    until("its objects are deleted", async || {
        place.stack.objects(&format!("sessions/{id}/")).is_empty()
    })
    .await;
    place.stack.kill(Kind::Archive, 0);
    crate::support::process::signal("CONT", replay.pid());
    let mut ended = None;
    until("the replay ends", async || {
        ended = replay.ended();
        ended.is_some()
    })
    .await;
    assert!(ended.is_some_and(|status| status.success()), "{}", replay.log());
    let raw = "SELECT count(*) FROM quarantined_records WHERE raw IS NOT NULL";
    assert_eq!(place.number(&late, raw).await, 0);
    let erased = "SELECT count(*) FROM agent_sessions WHERE erased";
    assert_eq!(place.number(&late, erased).await, 1);
}

/// An archiver mends coverage that a rebuild could not read, and leaves no state beside the newest, whoever has put it there.
async fn unreadable_coverage(place: &mut Place, session: &mut Loaded) {
    let partition = 0;
    let key = format!(
        "covered/{:020}-{partition:020}-{:020}",
        1,
        place.covered_offset(partition)
    );
    let path = place.stack.object_path(&key);
    // As an earlier version wrote it.
    std::fs::write(&path, b"covered\n").expect("it is written");
    let unreadable = place.database("unreadable").await;
    place
        .replay(&unreadable, &FROM_ARCHIVE, "")
        .with(5)
        .saying("can't be read")
        .saying("writes it anew");
    let states = format!("sessions/{}/state-", session.lifetime.session_id);
    let newest = place.stack.objects(&states).pop().expect("a state");
    let newest = place.stack.object_path(&newest);
    let older = newest.with_file_name(format!("state-{:020}-{:020}.pb", 1, 1));
    std::fs::copy(&newest, &older).expect("a copy");
    session.send(entry(5, 300, false)).await;
    session.drain().await;
    place.stack.start(Kind::Archive, 0).await;
    until("it is written anew, or there is a later one", async || {
        std::fs::read(&path).map_or(true, |bytes| bytes != b"covered\n")
    })
    .await;
    until("the newest state alone is left", async || {
        let left = place.stack.objects(&states);
        left.len() == 1 && place.stack.object_path(&left[0]) != newest
    })
    .await;
    assert!(place.stack.stop(Kind::Archive, 0).success());
    let report = place.replay(&unreadable, &FROM_ARCHIVE, "").with(0).object();
    assert_eq!(report["complete"], true, "{report}");
}

/// An archiver writes nothing into a bucket that lacks what its database rests on, unless it is told that this one is to have it all.
async fn another_bucket(place: &mut Place) {
    const ELSEWHERE: [&str; 2] = ["--s3-prefix", "elsewhere"];
    let run = |args: &[&str]| {
        let output = place.stack.command(&[args, &ELSEWHERE[..]].concat()).output();
        let output = output.expect("it runs");
        (output.status.code(), said(&output))
    };
    let (code, text) = run(&["archive"]);
    assert_eq!(code, Some(5), "{text}");
    assert!(
        text.contains("it is another bucket") && text.contains("begin-anew"),
        "{text}"
    );
    assert_eq!(run(&["segments", "begin-anew"]).0, Some(2));
    let (code, text) = run(&["segments", "begin-anew", "--yes"]);
    assert_eq!(code, Some(0), "{text}");
    place
        .stack
        .set_of(Kind::Archive, 0, "WAKELOG_S3_PREFIX", "elsewhere");
    place.stack.start(Kind::Archive, 0).await;
    until("every partition is covered there", async || {
        (0..PARTITIONS).all(|partition| {
            let end = place
                .stack
                .engines()
                .kafka
                .watermarks(place.stack.topic(), partition)
                .1;
            let key = format!("elsewhere/covered/{:020}-{partition:020}-{end:020}", 1);
            !place.stack.engines().s3.keys(&key).is_empty()
        })
    })
    .await;
    assert!(place.stack.stop(Kind::Archive, 0).success());
    let again = place.database("elsewhere").await;
    let from_there = [&FROM_ARCHIVE[..], &ELSEWHERE[..]].concat();
    let report = place.replay(&again, &from_there, "").with(0).object();
    assert_eq!(report["complete"], true, "{report}");
    assert!(report["restored_sessions"].as_u64() > Some(0), "{report}");
}

/// Many records of many sessions that this build can't read are taken for those of a newer one, unless one says otherwise.
async fn undecodable_records(place: &Place) {
    for number in 0..120 {
        put(place, 1, Some(&uuid::Uuid::from_u128(number).to_string())).await;
    }
    let into = place.database("undecodable").await;
    place
        .replay(&into, &[], "")
        .with(5)
        .saying("--accept-undecodable");
    let report = place
        .replay(&into, &["--accept-undecodable", "--json"], "")
        .with(0)
        .object();
    assert_eq!(report["complete"], true, "{report}");
    let aside = "SELECT count(*) FROM quarantined_records WHERE partition = 1";
    assert_eq!(place.number(&into, aside).await, 120);
}

async fn put(place: &Place, partition: i32, key: Option<&str>) {
    let mut config = rdkafka::ClientConfig::new();
    config.set("bootstrap.servers", place.stack.brokers());
    let producer: FutureProducer = config.create().expect("a producer");
    let mut record = FutureRecord::to(place.stack.topic())
        .partition(partition)
        .payload(b"anew");
    record.key = key;
    let sent = producer.send(record, std::time::Duration::from_secs(30)).await;
    sent.expect("the log takes it");
}

/// A topic that was made anew is not the one that was archived, whether it is shorter or has outgrown that one.
async fn another_log(place: &mut Place) {
    place.stack.kill_all();
    let (kafka, topic) = (&place.stack.engines().kafka, place.stack.topic().to_owned());
    let next_offset = kafka.watermarks(&topic, 0).1;
    kafka.delete_topic(&topic).await;
    kafka.create_topic(&topic, PARTITIONS).await;
    let anew = place.migrated_database("anew").await;
    let told_apart = async |why: &str| {
        let into = place.database(&format!("of_{}", why.len())).await;
        place
            .replay(&into, &FROM_ARCHIVE, "")
            .with(5)
            .saying("the archive is not that of this log")
            .saying(why);
        let pages = format!("127.0.0.1:{}", free_port());
        let archive = ["archive", "--http-listen", &pages, "--database-url", &anew];
        let output = place.stack.command(&archive).output().expect("archive runs");
        assert_eq!(output.status.code(), Some(5), "{}", said(&output));
        assert!(
            said(&output).contains("the archive of another log"),
            "{}",
            said(&output)
        );
        let doctor = place.stack.command(&["doctor", "--database-url", &anew]).output();
        let doctor = said(&doctor.expect("doctor runs"));
        assert!(doctor.contains("the archive of another log"), "{doctor}");
    };
    told_apart("the log ends at").await;
    for _ in 0..next_offset + 1 {
        put(place, 0, None).await;
    }
    told_apart("the topic was replaced").await;
}

fn said(output: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{out}{err}")
}
