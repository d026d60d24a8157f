//! One run: a stack, a workload, faults for as long as asked, everything mended, and the check.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::availability::Availability;
use crate::checker::{Observed, Sent, check};
use crate::faults::{Place, bring_all_up, strike_all};
use crate::observe::{Observer, connect, holdings, run, servers_of};
use crate::report::{Report, Unavailable};
use crate::schedule::Schedule;
use crate::support::native::{Engines, Kind, NativeStack};
use crate::workload::{Counts, Plan, Workload};

/// How soon a cluster gives a broker up; the defaults would make the faults pile up.
const SOON: [&str; 3] = [
    "broker.session.timeout.ms=4000",
    "broker.heartbeat.interval.ms=500",
    "replica.lag.time.max.ms=4000",
];

/// Entries of a run, about, at most: they are all kept in memory, and checked in the end.
const MOST_ENTRIES: u64 = 120_000;

/// The shortest pause after an entry.
const SHORTEST_PACE: Duration = Duration::from_millis(20);

/// Deltas beyond so many bytes move to the archive, so that they do.
const VALVE_BYTES: &str = "60000";

/// How long a stack may take to say something when nothing fails any more.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// What a run is asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    pub seed: u64,
    pub length: Duration,
    pub brokers: usize,
    pub writers: usize,
    pub sessions: usize,
    /// Where everything of a run that is not good is kept.
    pub keep: Option<PathBuf>,
}

impl Asked {
    pub fn plan(&self) -> Plan {
        let most_by_one = MOST_ENTRIES / self.writers as u64;
        let pace = Duration::from_millis(self.length.as_millis() as u64 / most_by_one.max(1));
        Plan {
            seed: self.seed,
            writers: self.writers,
            sessions: self.sessions,
            pace: pace.max(SHORTEST_PACE),
        }
    }
}

/// Engines for a run.
pub async fn engines(brokers: usize) -> Arc<Engines> {
    Arc::new(match brokers {
        1 => Engines::own().await,
        _ => Engines::cluster(&SOON).await,
    })
}

/// Runs it. Must be polled by a thread that lasts: the services die with the one that starts them.
pub async fn torture(asked: &Asked) -> Report {
    let schedule = Schedule::draw(asked.seed, asked.length, asked.brokers);
    let engines = engines(asked.brokers).await;
    let mut stack = Box::pin(NativeStack::prepare_on(engines.clone())).await;
    stack.set("WAKELOG_ARCHIVE_VALVE_BYTES", VALVE_BYTES);
    let availability = Arc::new(Availability::new());
    let place = Arc::new(Place::around(&mut stack, engines.clone(), availability).await);
    stack.up().await;

    let availability = place.availability.clone();
    availability.begin();
    let workload = Workload::start(asked.plan(), servers_of(&stack), availability.clone());
    let shared = workload.shared.clone();
    strike_all(&mut stack, &place, &schedule, asked.length).await;
    availability.sleep_until(asked.length).await;
    bring_all_up(&mut stack, &place).await;
    let (ledgers, mut failures) = workload.finish().await;
    failures.extend(place.failures());

    let mut report = Report {
        seeds: vec![asked.seed],
        brokers: asked.brokers,
        writers: asked.writers,
        seconds: asked.length.as_secs(),
        deeds: deeds(&shared.counts),
        failures,
        ..Report::default()
    };
    for struck in availability.faults() {
        *report.faults.entry(struck.kind).or_default() += 1;
    }
    for (kind, longest) in availability.longest() {
        let of_kind = Unavailable {
            all: longest.all,
            one: longest.one,
            one_alone: longest.one_alone,
        };
        report.unavailable.insert(kind, of_kind);
    }
    let sent: Vec<Sent> = ledgers
        .iter()
        .map(|ledger| ledger.so_far())
        .filter(|sent| !sent.session.is_empty())
        .collect();
    let everything = Box::pin(check_everything(&mut stack, &engines, &sent, &mut report));
    everything.await;
    if !report.is_good()
        && let Some(keep) = &asked.keep
    {
        report
            .kept
            .push(keep_everything(&stack, &engines, keep, asked.seed));
    }
    report
}

fn deeds(counts: &Counts) -> std::collections::BTreeMap<String, u64> {
    let deeds = [
        ("resumes checked", &counts.resumes),
        ("attachments", &counts.attachments),
        ("take-overs", &counts.take_overs),
        ("superseded writers refused", &counts.refused),
        ("containers that died", &counts.deaths),
        ("lifetimes ended", &counts.ends),
        ("frames repeated", &counts.repeats),
        ("entries with the bytes of another", &counts.twins),
    ];
    deeds
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count.load(Ordering::Relaxed)))
        .collect()
}

/// Everything is mended. Asks for every session in every way, stops the services, builds the store again from the topic, and asks
/// that one too.
async fn check_everything(
    stack: &mut NativeStack,
    engines: &Arc<Engines>,
    sent: &[Sent],
    report: &mut Report,
) {
    let mut observed = Vec::new();
    let mut observer = Observer::of(stack, &servers_of(stack), ANSWER_WITHIN);
    for sent in sent {
        let session = &sent.session;
        let exported = observer.export(session).await;
        let history = observer.history(stack.command(&[]), session);
        let resumed = observer.resume(session).await;
        observed.push(Observed {
            history,
            bodies: vec![("export", exported), ("resume", resumed)],
            holdings: Default::default(),
        });
    }
    let ended = stack.stop_all();
    if !ended.success() {
        report.failures.push(format!("a drained stop ends with {ended}"));
    }
    let mut database = connect(&stack.database_url()).await;
    for (sent, observed) in sent.iter().zip(&mut observed) {
        match holdings(&mut database, &sent.session).await {
            Ok(holdings) => observed.holdings = holdings,
            Err(error) => report
                .failures
                .push(format!("{}: its tables: {error}", sent.session)),
        }
    }
    drop(database);
    for args in [&["verify", "--json"][..], &["segments", "verify", "--json"]] {
        if let Err(difference) = run(stack.command(args)) {
            report
                .failures
                .push(format!("wakelog {}: {difference}", args.join(" ")));
        }
    }
    match rebuild(stack, engines).await {
        Err(why) => report.failures.push(why),
        Ok(()) => {
            let mut observer = Observer::of(stack, &servers_of(stack), ANSWER_WITHIN);
            for (sent, observed) in sent.iter().zip(&mut observed) {
                let exported = observer.export(&sent.session).await;
                observed.bodies.push(("export of the rebuilt store", exported));
            }
        }
    }
    for (sent, observed) in sent.iter().zip(&observed) {
        report.add_verdict(&sent.session, &check(sent, observed));
    }
}

/// Builds another database from the topic, and starts services on it.
async fn rebuild(stack: &mut NativeStack, engines: &Engines) -> Result<(), String> {
    let name = format!("{}_again", stack.topic());
    engines.postgres.create_database(&name).await;
    let url = engines.postgres.url(&name);
    let replayed = run(stack.command(&["replay", "--into", &url, "--json"]));
    replayed.map_err(|why| format!("wakelog replay: {why}"))?;
    stack.set("WAKELOG_DATABASE_URL", &url);
    for kind in [Kind::Persist, Kind::Reconstruct] {
        for number in 0..stack.count(kind) {
            stack.unset_of(kind, number, "WAKELOG_DATABASE_URL");
            stack.spawn(kind, number);
        }
    }
    for kind in [Kind::Persist, Kind::Reconstruct] {
        for number in 0..stack.count(kind) {
            stack.wait_ready(kind, number).await;
        }
    }
    Ok(())
}

/// Copies logs and data of everything.
fn keep_everything(stack: &NativeStack, engines: &Engines, keep: &std::path::Path, seed: u64) -> String {
    let to = keep.join(format!("seed-{seed}"));
    for (name, folder) in [("services", stack.folder()), ("engines", engines.folder())] {
        let into = to.join(name);
        std::fs::create_dir_all(&into).expect("a folder to keep it in");
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .arg(folder.join("."))
            .arg(&into)
            .output();
        copied.expect("cp runs");
    }
    to.display().to_string()
}
