//! The database is lost, and the topic has lost its head: what was acknowledged comes back from the archive and the rest of the
//! topic, fences and access included, or one is told what is missing.

mod cast;
mod meanwhile;
mod place;

use wakelog_proto::v1::RefusalReason;

use crate::archive::until;
use crate::support::native::Kind;
use crate::support::refusal::refused;
use crate::support::relay::{commit, frame};
use crate::support::session::{describe, export};
use cast::Cast;
use place::{Place, missing_of};

/// Invariants exactly-once-fold, archived-is-complete, one-writer, opaque-absence: the topic alone gives the same store again;
/// its rest and the archive give a store with the same bodies, fences and access, into which the same writers go on. What is
/// interrupted goes on. A segment or records that nobody has are named.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_once_fold_when_the_database_is_lost_and_the_head_of_the_topic_is_eaten() {
    let mut place = Place::prepare().await;
    place.stack.up().await;
    let mut cast = Box::pin(Cast::open(&place)).await;
    place.covered().await;
    for number in 0..2 {
        assert!(place.stack.stop(Kind::Archive, number).success());
    }
    cast.go_on_uncovered(&place).await;
    place.stack.kill_all();

    // The topic alone, which has everything so far.
    let again = place.database("again").await;
    place.replay(&again, &["--json"], "").with(0);
    assert_eq!(
        place.fold_states(&place.stack.database_url()).await,
        place.fold_states(&again).await
    );
    let verify = place
        .stack
        .command(&["verify", "--database-url", &again])
        .output();
    assert!(verify.expect("verify runs").status.success());
    place
        .replay(&again, &[], "")
        .with(4)
        .saying("by a replay that has finished");

    place.eat_what_is_covered().await;
    place.drop_database().await;
    let rebuilt = place.database("rebuilt").await;
    let text = place.replay(&rebuilt, &[], "").with(6).text();
    assert!(text.contains("--from-archive takes what came before"), "{text}");
    let refused = place.replay(&rebuilt, &["--json"], "").with(6).object();
    assert_eq!(
        (&refused["finished"], &refused["missing"][0]["kind"]),
        (&false.into(), &"records".into()),
        "{refused}"
    );
    // Nothing was begun, and nothing was made that a service could take for a database of its own.
    no_service_starts(&place, &rebuilt, "wakelog migrate");
    one_segment_is_missing(&place, &cast).await;

    // Dies while it restores and while it folds, and goes on each time.
    let from_archive = ["--from-archive", "--json"];
    for failpoints in [
        "archive::before_get=9*off->1*return",
        "archive::before_get=5*off->1*return",
        "persister::after_commit=1*off->1*return",
    ] {
        let died = place.replay(&rebuilt, &from_archive, failpoints);
        assert_ne!(died.code, 0, "{failpoints}");
        no_service_starts(&place, &rebuilt, "has not finished");
    }
    let report = place.replay(&rebuilt, &from_archive, "").with(0).object();
    assert_eq!(report["complete"], true, "{report}");

    place.stack.set("WAKELOG_DATABASE_URL", &rebuilt);
    place.stack.up().await;
    everything_is_as_it_was(&place, &mut cast).await;
    place.stack.kill(Kind::Archive, 0);
    place.stack.kill(Kind::Archive, 1);
    cast.write_more(&place).await;
    place.stack.kill_all();
    place.eat_everything().await;
    let late = place.database("late").await;
    let report = place.replay(&late, &from_archive, "").with(6).object();
    let named = missing_of(&report, &cast.valve.lifetime.session_id);
    assert_eq!(named[0]["kind"], "records_of_session", "{report}");
    assert_eq!(report["finished"], false, "{report}");
}

#[track_caller]
fn no_service_starts(place: &Place, database: &str, why: &str) {
    let pages = format!("127.0.0.1:{}", crate::support::process::free_port());
    let persist = ["persist", "--http-listen", &pages, "--database-url", database];
    let ended = place.stack.command(&persist).output().expect("persist runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(5), "{said}");
    assert!(said.contains(why), "{said}");
}

async fn one_segment_is_missing(place: &Place, cast: &Cast) {
    let id = &cast.valve.lifetime.session_id;
    let key = place.stack.objects(&format!("sessions/{id}/0")).remove(0);
    let path = place.stack.object_path(&key);
    let away = place.stack.folder().join("away");
    std::fs::copy(&path, &away).expect("a copy");
    std::fs::remove_file(&path).expect("it is removed");
    let holed = place.database("holed").await;
    let report = place
        .replay(&holed, &["--from-archive", "--json"], "")
        .with(6)
        .object();
    let range: Vec<u64> = key
        .rsplit('/')
        .next()
        .expect("a name")
        .split('-')
        .take(2)
        .map(number)
        .collect();
    let named = missing_of(&report, id);
    assert_eq!(named.len(), 1, "{report}");
    assert_eq!(
        (&named[0]["kind"], &named[0]["first"], &named[0]["last"]),
        (&"entries".into(), &range[0].into(), &range[1].into()),
        "{report}"
    );
    assert_eq!(
        report["missing_count"], 1,
        "the idle ones are not named: {report}"
    );
    assert_eq!(report["finished"], true, "the others can be used: {report}");

    // Cut in half it is named itself, besides the entries, and the session is restored all the same.
    let whole = std::fs::read(&away).expect("the segment");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("half of it");
    let halved = place.database("halved").await;
    let report = place
        .replay(&halved, &["--from-archive", "--json"], "")
        .with(6)
        .object();
    let kinds: Vec<_> = missing_of(&report, id)
        .into_iter()
        .map(|missing| missing["kind"].clone())
        .collect();
    assert_eq!(kinds, ["segment", "entries"], "{report}");
    assert_eq!(report["finished"], true, "{report}");
    std::fs::copy(&away, &path).expect("it is back");
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

async fn everything_is_as_it_was(place: &Place, cast: &mut Cast) {
    let connection = place.stack.connect().await;
    for loaded in cast.loaded() {
        let id = &loaded.lifetime.session_id;
        let (_, body) = export(&connection, id).await.unwrap_or_else(|error| {
            panic!("{id}: {error}\n{}", place.stack.log());
        });
        let whole = loaded.sent.check(&body).expect("the body");
        assert_eq!(whole, loaded.sent.entries.len());
    }
    // Fences.
    let (id, nonce, token) = &cast.superseded;
    let late = frame(id, *nonce, 3, b"{\"late\":1}\n");
    let answer = commit(&connection, Some(token), &late).await;
    refused("an earlier writer", answer, RefusalReason::Superseded);
    // Access, given and taken back.
    let bob = place.connect_as_bob().await;
    describe(&bob, &cast.shared).await.expect("bob may still see it");
    let answer = describe(&bob, &cast.revoked).await;
    refused("bob", answer, RefusalReason::SessionNotFound);
    for erased in &cast.erased {
        let answer = describe(&connection, erased).await;
        refused("an erased session", answer, RefusalReason::SessionNotFound);
        until("its objects are deleted", async || {
            place.stack.objects(&format!("sessions/{erased}/")).is_empty()
        })
        .await;
    }
    cast.go_on(&connection).await;
    let segments = place.stack.command(&["segments", "verify"]).output();
    let segments = segments.expect("it runs");
    assert!(
        segments.status.success(),
        "{}",
        String::from_utf8_lossy(&segments.stdout)
    );
}
