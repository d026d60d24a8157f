//! Bugs that are planted in the store of a small, finished run, one by one, each in a copy of its own: the same checker must call
//! each what it is, and nothing else.
//!
//! | module | what it has |
//! |---|---|
//! | `cast` | the run |
//! | `bugs` | the bugs |

mod bugs;
mod cast;

use std::time::Duration;

use crate::campaign::engines;
use crate::checker::{Finding, Observed, Verdict, check};
use crate::observe::{Observer, connect, holdings, run, servers_of};
use crate::support::native::{Engines, Kind, NativeStack};
use bugs::{PLANTS, Plant, execute};
use cast::{Cast, PLAIN};

/// How long the services of a copy may take to say something: what is gone stays gone.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What the checker and the product's own checks say of a copy.
struct Said {
    verdicts: Vec<(String, Verdict)>,
    verify: Result<serde_json::Value, String>,
    segments: Result<serde_json::Value, String>,
}

/// Every planted bug is found and called what it is.
pub async fn every_planted_bug_is_found() {
    let engines = engines(1).await;
    let mut stack = Box::pin(NativeStack::prepare_on(engines.clone())).await;
    stack.up().await;
    let cast = Cast::play(&mut stack).await;
    let ended = stack.stop_all();
    assert!(
        ended.success(),
        "a drained stop ends with {ended}\n{}",
        stack.log()
    );
    let original = stack.topic().to_owned();
    for (number, plant) in PLANTS.into_iter().enumerate() {
        let copy = format!("{original}_{number}");
        copy_database(&engines, &original, &copy).await;
        let url = engines.postgres.url(&copy);
        let away = plant.put(&stack, &url, &cast).await;
        let said = observe(&mut stack, &url, &cast).await;
        for (from, to) in &away {
            std::fs::rename(to, from).expect("the object is back");
        }
        let found: Vec<&Finding> = said
            .verdicts
            .iter()
            .flat_map(|(_, verdict)| &verdict.findings)
            .collect();
        eprintln!("planted {plant:?}: {found:?}");
        plant.must_be_found(&cast, &said);
    }
}

async fn copy_database(engines: &Engines, original: &str, copy: &str) {
    let ended = engines.postgres.terminate_connections(original).await;
    ended.expect("nobody is connected to what is copied");
    let mut admin = connect(&engines.postgres.url("postgres")).await;
    let create = format!("CREATE DATABASE {copy} TEMPLATE {original}");
    execute(&mut admin, &create).await;
}

/// Services on a copy, and everything that they and the tables say.
async fn observe(stack: &mut NativeStack, url: &str, cast: &Cast) -> Said {
    stack.set("WAKELOG_DATABASE_URL", url);
    for kind in [Kind::Persist, Kind::Reconstruct] {
        stack.spawn(kind, 0);
    }
    for kind in [Kind::Persist, Kind::Reconstruct] {
        stack.wait_ready(kind, 0).await;
    }
    let mut servers = servers_of(stack);
    servers.sessions.truncate(1);
    let mut observer = Observer::of(stack, &servers, ANSWER_WITHIN);
    let mut observed = Vec::new();
    for sent in cast.all() {
        let exported = observer.export(&sent.session).await;
        let history = observer.history(stack.command(&[]), &sent.session);
        observed.push(Observed {
            history,
            bodies: vec![("export", exported)],
            holdings: Default::default(),
        });
    }
    let ended = stack.stop_all();
    assert!(
        ended.success(),
        "a drained stop ends with {ended}\n{}",
        stack.log()
    );
    let mut database = connect(url).await;
    let mut verdicts = Vec::new();
    for (sent, mut observed) in cast.all().into_iter().zip(observed) {
        let held = holdings(&mut database, &sent.session).await;
        observed.holdings = held.expect("what the tables have");
        verdicts.push((sent.session.clone(), check(sent, &observed)));
    }
    Said {
        verdicts,
        verify: run(stack.command(&["verify", "--json"])),
        segments: run(stack.command(&["segments", "verify", "--json"])),
    }
}

impl Plant {
    fn must_be_found(self, cast: &Cast, said: &Said) {
        let (subject, expected) = match self {
            Self::Nothing => (&cast.plain, None),
            Self::Drop => (&cast.plain, Some(Finding::Lost { entry: 6 })),
            Self::Swap => (&cast.plain, Some(Finding::OutOfOrder { entry: 6 })),
            Self::Double => (&cast.plain, Some(Finding::Doubled { entry: PLAIN + 1 })),
            Self::Alter => (&cast.plain, Some(Finding::Altered { entry: 6 })),
            Self::IgnoredBind => (&cast.rival, Some(Finding::BindIgnored { entry: 8 })),
            Self::PruneBeforePut => (
                &cast.archived,
                Some(Finding::PrunedWithoutSegment { first: 1, last: 10 }),
            ),
            Self::PruneOfHotEntries => (
                &cast.plain,
                Some(Finding::PrunedWithoutSegment { first: 1, last: 3 }),
            ),
            // Its rows say that all is well: the reader, and `segments verify`, find out.
            Self::LostObject => (&cast.archived, None),
        };
        for (session, verdict) in &said.verdicts {
            // What can't be read follows from what is missing.
            let named: Vec<&Finding> = verdict
                .findings
                .iter()
                .filter(|finding| !matches!(finding, Finding::Unreadable { .. }))
                .collect();
            let expected: Vec<&Finding> = match *session == subject.session {
                true => expected.iter().collect(),
                false => Vec::new(),
            };
            assert_eq!(named, expected, "{self:?}, {session}");
        }
        let is_unreadable = said.verdicts.iter().any(|(_, verdict)| {
            let mut findings = verdict.findings.iter();
            findings.any(|finding| matches!(finding, Finding::Unreadable { what: "history", .. }))
        });
        let loses = matches!(
            self,
            Self::Drop | Self::PruneBeforePut | Self::PruneOfHotEntries | Self::LostObject
        );
        assert_eq!(
            is_unreadable, loses,
            "{self:?}: what is lost is an error, never a shorter history"
        );
        let is_clean = self == Self::Nothing;
        assert_eq!(
            said.verify.is_ok(),
            is_clean,
            "{self:?}: wakelog verify says {:?}",
            said.verify
        );
        if matches!(self, Self::Nothing | Self::LostObject) {
            assert_eq!(said.segments.is_ok(), is_clean, "{self:?}: {:?}", said.segments);
        }
    }
}
