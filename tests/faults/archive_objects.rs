//! Objects of the archive are damaged, lost or left behind: `wakelog segments verify` names each, and deletes what nothing
//! needs and nothing else.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use sqlx::{Connection as _, PgConnection};
use wakelog_proto::v1::AckLevel;

use crate::archive::{SEGMENTS, entry, overwrite, until};
use crate::holdings::Holdings;
use crate::stops_and_verifies;
use crate::support::load::Loaded;
use crate::support::native::{Kind, NativeStack};
use crate::support::session::stop;

pub(crate) const DONE: i32 = 0;
const NOT_FOUND: i32 = 3;
const DIFFERENCE: i32 = 6;

#[track_caller]
fn run(stack: &NativeStack, args: &[&str], code: i32) -> Vec<u8> {
    let ran = stack.command(args).output().expect("it runs");
    assert_eq!(
        ran.status.code(),
        Some(code),
        "{args:?}: {}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
    ran.stdout
}

/// `wakelog segments verify` with these arguments; it must end with this code. Returns its report.
#[track_caller]
pub(crate) fn verify(stack: &NativeStack, more: &[&str], code: i32) -> Value {
    let args = [&["segments", "verify", "--json"], more].concat();
    serde_json::from_slice(&run(stack, &args, code)).expect("a JSON object")
}

/// What is said of each object, by its key.
fn findings(report: &Value) -> Vec<(String, String)> {
    let findings = report["findings"].as_array().expect("findings");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    findings
        .iter()
        .map(|finding| (text(&finding["key"]), text(&finding["what"])))
        .collect()
}

fn pair(key: &str, what: &str) -> (String, String) {
    (key.to_owned(), what.to_owned())
}

async fn archived(stack: &NativeStack) -> f64 {
    let mut segments = 0.0;
    for number in 0..2 {
        segments += stack.metric(Kind::Archive, number, SEGMENTS).await;
    }
    segments
}

fn age(path: &Path, hours: u64) {
    let file = std::fs::File::options()
        .write(true)
        .open(path)
        .expect("the object");
    let then = SystemTime::now() - Duration::from_secs(3_600 * hours);
    file.set_modified(then).expect("its time is set");
}

/// Invariants archived-is-complete, byte-exact: the archive as it is is found good, and a flipped bit, a truncated and a missing
/// object are each named.
#[tokio::test(flavor = "multi_thread")]
async fn archived_is_complete_or_the_object_is_named() {
    let mut stack = NativeStack::prepare().await;
    stack.up().await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "objects", AckLevel::Store).await;
    for number in 1..40 {
        session.send(entry(number, 3_000, false)).await;
    }
    session.send(entry(40, 2_000, true)).await;
    session.send(entry(41, 2_000, false)).await;
    session.drain().await;
    until("it is archived", async || archived(&stack).await >= 1.0).await;
    stop(&connection, &session.lifetime).await.expect("an end");
    until("its end is archived", async || archived(&stack).await >= 2.0).await;
    for number in 0..2 {
        stack.stop(Kind::Archive, number);
    }

    let id = session.lifetime.session_id.clone();
    let listed = String::from_utf8(run(&stack, &["segments", "ls", &id, "--json"], DONE)).expect("text");
    let rows: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON object"))
        .collect();
    assert_eq!(
        run(&stack, &["segments", "ls", "--all", "--json"], DONE),
        listed.as_bytes()
    );
    assert_eq!(rows.len(), 2, "{listed}");
    for row in &rows {
        let key = row["key"].as_str().expect("a key");
        let number = |name: &str| row[name].as_u64().expect("a number") as usize;
        let entries = &session.sent.entries[number("min_entry_seq") - 1..number("max_entry_seq")];
        let sent: Vec<u8> = entries.iter().flat_map(|entry| entry.bytes.to_vec()).collect();
        assert!(run(&stack, &["segments", "cat", key], DONE) == sent, "{key}");
    }
    let clean = verify(&stack, &[], DONE);
    assert_eq!(
        (&clean["good"], &clean["segments"], &clean["orphans"]),
        (&true.into(), &2.into(), &0.into()),
        "{clean}"
    );
    assert_eq!(findings(&clean), []);
    assert_eq!(findings(&verify(&stack, &[&id], DONE)), []);

    let key = rows[0]["key"].as_str().expect("a key");
    let path = stack.object_path(key);
    let good = std::fs::read(&path).expect("the object");
    for position in [0, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[position] ^= 1;
        overwrite(&path, &bad);
        let found = verify(&stack, &[], DIFFERENCE);
        assert_eq!(findings(&found), [pair(key, "damaged")], "bit of byte {position}");
    }
    overwrite(&path, &good[..good.len() / 2]);
    assert_eq!(
        findings(&verify(&stack, &[&id], DIFFERENCE)),
        [pair(key, "damaged")]
    );
    std::fs::remove_file(&path).expect("it is removed");
    let found = verify(&stack, &["--delete"], DIFFERENCE);
    assert_eq!(findings(&found), [pair(key, "missing")]);
    run(&stack, &["segments", "cat", key], NOT_FOUND);
    let text = String::from_utf8(run(&stack, &["segments", "verify"], DIFFERENCE)).expect("text");
    assert!(text.contains(key) && text.contains("missing"), "{text}");
    std::fs::write(&path, &good).expect("it is back");
    assert_eq!(findings(&verify(&stack, &[], DONE)), []);
    a_hole_is_named(&stack, &id, key).await;
    let unknown = uuid::Uuid::new_v4().to_string();
    run(&stack, &["segments", "verify", &unknown], NOT_FOUND);
    stops_and_verifies(&mut stack, "objects");
}

/// The manifest loses its row of an object: the entries are nowhere, and the object, which now nothing records, is kept.
async fn a_hole_is_named(stack: &NativeStack, id: &str, key: &str) {
    let mut database = PgConnection::connect(&stack.database_url())
        .await
        .expect("a connection");
    let lose = "CREATE TABLE lost AS SELECT * FROM agent_session_archive_segments ORDER BY min_entry_seq LIMIT 1;
                DELETE FROM agent_session_archive_segments USING lost WHERE agent_session_archive_segments.object_key = lost.object_key";
    sqlx::raw_sql(lose)
        .execute(&mut database)
        .await
        .expect("it is lost");
    age(&stack.object_path(key), 2);
    let sessions = [&["--delete"][..], &["--delete", id][..]];
    for more in sessions {
        let found = verify(stack, more, DIFFERENCE);
        let whole = format!("sessions/{id}/");
        assert_eq!(
            findings(&found),
            [pair(&whole, "hole"), pair(key, "orphan")],
            "{found}"
        );
        let detail = found["findings"][0]["detail"].as_str().expect("a detail");
        assert!(detail.starts_with("entries 1 to 39 "), "{detail}");
    }
    let back = "INSERT INTO agent_session_archive_segments SELECT * FROM lost; DROP TABLE lost";
    sqlx::raw_sql(back)
        .execute(&mut database)
        .await
        .expect("it is back");
    database.close().await.ok();
    assert_eq!(findings(&verify(stack, &[], DONE)), []);
}

/// Invariant byte-exact: whoever has the objects and the `zstd` tool, and nothing of ours, has the bytes of every entry.
#[tokio::test(flavor = "multi_thread")]
async fn byte_exact_by_the_zstd_tool() {
    let mut stack = NativeStack::prepare().await;
    stack.up().await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "zstd", AckLevel::Store).await;
    session.send_seeded(7, 150).await;
    // Two parts, more than one frame.
    session.send(entry(151, 1_500_000, false)).await;
    session.drain().await;
    stop(&connection, &session.lifetime).await.expect("an end");
    let id = session.lifetime.session_id.clone();
    let written = session.sent.entries.len() as u64;
    let mut holdings = Holdings::of(&stack, &session).await;
    until("all of it is archived", async || {
        holdings.copied_entries(written).await == written && holdings.superseded_rows().await == 0
    })
    .await;
    assert!(stack.stop_all().success());

    let listed = String::from_utf8(run(&stack, &["segments", "ls", &id, "--json"], DONE)).expect("text");
    let mut entries = 0;
    for line in listed.lines() {
        let row: Value = serde_json::from_str(line).expect("a JSON object");
        let number = |name: &str| row[name].as_u64().expect("a number") as usize;
        let range = number("min_entry_seq") - 1..number("max_entry_seq");
        entries += range.len() as u64;
        let sent = session.sent.entries[range].iter();
        let sent: Vec<u8> = sent.flat_map(|entry| entry.bytes.to_vec()).collect();
        let key = row["key"].as_str().expect("a key");
        let decoded = Command::new("zstd")
            .args(["-dc", "--"])
            .arg(stack.object_path(key))
            .output()
            .expect("the tool is installed");
        let said = String::from_utf8_lossy(&decoded.stderr);
        assert!(decoded.status.success(), "{key}: {said}");
        assert!(
            decoded.stdout == sent,
            "{key}: {} bytes instead of {}",
            decoded.stdout.len(),
            sent.len()
        );
    }
    assert!(entries >= written, "{entries} of {written} entries were read");
    stack.verify();
}

/// Invariants put-before-prune, archived-is-complete: what a flush that failed has left is named, and deleted once it is old and
/// nobody has announced it lately; what may be the only copy of something is not.
#[tokio::test(flavor = "multi_thread")]
async fn archived_is_complete_whatever_orphan_is_deleted() {
    let mut stack = NativeStack::prepare().await;
    stack.set("FAILPOINTS", "archiver::after_put=return");
    stack.up().await;
    let connection = stack.connect().await;
    let mut session = Loaded::open(&connection, "orphans", AckLevel::Store).await;
    let id = session.lifetime.session_id.clone();
    let segments = format!("sessions/{id}/0");
    for number in 1..6 {
        session.send(entry(number, 1_000, number == 5)).await;
    }
    session.drain().await;
    until("a PUT", async || !stack.objects(&segments).is_empty()).await;
    let orphan = stack.objects(&segments).remove(0);
    for number in 6..10 {
        session.send(entry(number, 1_000, number == 9)).await;
    }
    session.drain().await;
    until("a PUT of more", async || stack.objects(&segments).len() > 1).await;
    for number in 0..2 {
        stack.kill(Kind::Archive, number);
    }
    stack.set("FAILPOINTS", "");
    stack.up().await;
    until("a flush", async || archived(&stack).await >= 1.0).await;
    for number in 0..2 {
        stack.stop(Kind::Archive, number);
    }
    assert_eq!(stack.objects(&segments).len(), 2);

    let is_there = |stack: &NativeStack, key: &str| stack.objects(key).len() == 1;
    let announced = [pair(&orphan, "staged")];
    assert_eq!(findings(&verify(&stack, &[], DONE)), announced);
    assert_eq!(findings(&verify(&stack, &["--delete"], DONE)), announced);
    // An old object that was announced again is on its way.
    age(&stack.object_path(&orphan), 2);
    assert_eq!(findings(&verify(&stack, &["--delete"], DONE)), announced);
    assert!(is_there(&stack, &orphan));
    let mut database = PgConnection::connect(&stack.database_url())
        .await
        .expect("a connection");
    let forget = "UPDATE archive_staged_objects SET staged_at = now() - interval '2 hours'";
    sqlx::raw_sql(forget)
        .execute(&mut database)
        .await
        .expect("an update");
    database.close().await.ok();
    // Nobody has announced it lately, but it was written a moment ago.
    age(&stack.object_path(&orphan), 0);
    let left = [pair(&orphan, "orphan")];
    assert_eq!(findings(&verify(&stack, &["--delete"], DONE)), left);
    age(&stack.object_path(&orphan), 2);
    assert_eq!(
        findings(&verify(&stack, &[], DONE)),
        left,
        "nothing is deleted unasked"
    );
    let bytes = std::fs::read(stack.object_path(&orphan)).expect("the orphan");
    let deleted = verify(&stack, &["--delete"], DONE);
    assert_eq!(findings(&deleted), [pair(&orphan, "deleted")]);
    assert_eq!((&deleted["orphans"], &deleted["deleted"]), (&1.into(), &1.into()));
    assert!(!is_there(&stack, &orphan));
    assert_eq!(findings(&verify(&stack, &["--delete"], DONE)), []);

    // What a database that was lost would leave: objects of a session that is not known, entries that nothing else holds.
    let stranger = uuid::Uuid::new_v4().to_string();
    let of_stranger = orphan.replace(&id, &stranger);
    let beyond = orphan.replace(
        "/00000000000000000001-00000000000000000004-",
        "/00000000000000000004-00000000000000000077-",
    );
    // After a rebuild from the topic the hot tail has everything, and states in the bucket still rest on such a segment.
    let hot = orphan.replace(
        "/00000000000000000001-00000000000000000004-",
        "/00000000000000000009-00000000000000000009-",
    );
    assert!(beyond != orphan && hot != orphan);
    let states: Vec<String> = (1..5)
        .map(|offset| format!("sessions/{id}/state-{:020}-{offset:020}.pb", 1))
        .collect();
    for key in [&of_stranger, &beyond, &hot].into_iter().chain(&states) {
        let path = stack.object_path(key);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
        std::fs::write(&path, &bytes).expect("an object");
        age(&path, 2);
    }
    let mut found = findings(&verify(&stack, &["--delete"], DONE));
    found.sort();
    let mut expected = vec![
        pair(&of_stranger, "orphan"),
        pair(&beyond, "orphan"),
        pair(&hot, "orphan"),
        pair(&states[0], "deleted"),
        pair(&states[1], "deleted"),
        pair(&states[2], "deleted"),
    ];
    expected.sort();
    assert_eq!(found, expected);
    for (key, stays) in [
        (&of_stranger, true),
        (&beyond, true),
        (&hot, true),
        (&states[2], false),
        (&states[3], true),
    ] {
        assert_eq!(is_there(&stack, key), stays, "{key}");
    }
    session.check(&connection, "after the deletions").await;
    stops_and_verifies(&mut stack, "orphans");
}
