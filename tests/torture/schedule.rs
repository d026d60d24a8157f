//! What fails, when and for how long: drawn from a seed, so that the same seed is the same schedule.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rand::Rng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

use crate::support::native::Kind;
use crate::support::seed;

/// What can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    Service(Kind, ServiceFault),
    Broker(BrokerFault),
    Database(DatabaseFault),
    ObjectStore(ObjectStoreFault),
}

/// What happens to one of the services of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceFault {
    /// `kill -9`, and a while without it.
    Killed,
    /// SIGTERM, and started again at once.
    Restarted,
    /// SIGSTOP for a while.
    Frozen,
    /// `kill -9` at a pass of a failpoint.
    DiesAtStep,
    /// SIGSTOP at a pass of a failpoint, for a while.
    WakesAtStep,
    /// A failpoint fails, twice.
    FailsAtStep,
}

/// What happens to one of the brokers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BrokerFault {
    /// `kill -9` of the leader of a partition, and a while without it.
    Killed,
    /// SIGSTOP for a while.
    Frozen,
    /// It reaches no other broker, and clients reach it.
    Alone,
    /// It is one of the cluster, and no client reaches it.
    Unreachable,
    /// The one that coordinates the persisters' group is killed.
    CoordinatorKilled,
}

/// What happens to PostgreSQL, or between it and the services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatabaseFault {
    /// `kill -9` of the server, and a while without it.
    Killed,
    /// SIGSTOP of the server and all of its processes.
    Frozen,
    /// An administrator ends every connection.
    Terminated,
    /// The services of one kind do not reach it.
    CutOff,
    /// COMMITs happen and are not answered.
    LostCommits,
}

/// What happens to the object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectStoreFault {
    /// `kill -9`, and a while without it.
    Killed,
    /// SIGSTOP for a while.
    Frozen,
    /// Every answer comes later.
    Slow,
    /// Every request is refused with 503.
    Refuses,
    /// Writes happen and are not answered.
    LosesAnswers,
}

impl ServiceFault {
    const ALL: [Self; 6] = [
        Self::Killed,
        Self::Restarted,
        Self::Frozen,
        Self::DiesAtStep,
        Self::WakesAtStep,
        Self::FailsAtStep,
    ];
}

impl BrokerFault {
    const ALL: [Self; 5] = [
        Self::Killed,
        Self::Frozen,
        Self::Alone,
        Self::Unreachable,
        Self::CoordinatorKilled,
    ];
    /// What can happen to a broker that is all there is.
    const ALONE: [Self; 2] = [Self::Killed, Self::Frozen];
}

impl DatabaseFault {
    const ALL: [Self; 5] = [
        Self::Killed,
        Self::Frozen,
        Self::Terminated,
        Self::CutOff,
        Self::LostCommits,
    ];
}

impl ObjectStoreFault {
    const ALL: [Self; 5] = [
        Self::Killed,
        Self::Frozen,
        Self::Slow,
        Self::Refuses,
        Self::LosesAnswers,
    ];
}

impl Fault {
    /// Every kind of fault that a stack with so many brokers can meet.
    pub fn all(brokers: usize) -> Vec<Self> {
        let services = Kind::ALL
            .into_iter()
            .flat_map(|kind| ServiceFault::ALL.map(|fault| Self::Service(kind, fault)));
        let of_brokers: &[BrokerFault] = match brokers {
            1 => &BrokerFault::ALONE,
            _ => &BrokerFault::ALL,
        };
        services
            .chain(of_brokers.iter().copied().map(Self::Broker))
            .chain(DatabaseFault::ALL.map(Self::Database))
            .chain(ObjectStoreFault::ALL.map(Self::ObjectStore))
            .collect()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(kind, fault) => write!(formatter, "{} {fault:?}", kind.command()),
            Self::Broker(fault) => write!(formatter, "broker {fault:?}"),
            Self::Database(fault) => write!(formatter, "database {fault:?}"),
            Self::ObjectStore(fault) => write!(formatter, "object store {fault:?}"),
        }
    }
}

/// One fault of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strike {
    /// When, from the start of the run. One of the same subject that is not mended yet comes first.
    pub at: Duration,
    /// How long it lasts, where it lasts.
    pub lasts: Duration,
    pub fault: Fault,
    /// What else is to be chosen: which service, which partition, which step.
    pub draw: u32,
}

impl fmt::Display for Strike {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, lasts) = (self.at.as_secs_f64(), self.lasts.as_secs_f64());
        let fault = self.fault.to_string();
        write!(
            formatter,
            "{at:8.1} s  {fault:<28} for {lasts:.1} s, draw {}",
            self.draw
        )
    }
}

/// What fails in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub strikes: Vec<Strike>,
}

/// How long before the first fault: the workload has begun by then.
const QUIET: Duration = Duration::from_secs(3);

impl Schedule {
    /// The schedule of a seed. Every kind of fault comes once before any comes again.
    pub fn draw(seed: u64, length: Duration, brokers: usize) -> Self {
        let mut rng = seed::rng(seed);
        let mut strikes = Vec::new();
        let mut deck = Vec::new();
        let mut at = QUIET;
        while at < length {
            if deck.is_empty() {
                deck = shuffled(&mut rng, brokers);
            }
            if let Some(fault) = deck.pop() {
                strikes.push(Strike {
                    at,
                    lasts: Duration::from_millis(rng.random_range(1_000..8_000)),
                    fault,
                    draw: rng.random(),
                });
            }
            at += Duration::from_millis(rng.random_range(3_000..8_000));
        }
        Self { strikes }
    }

    /// How often each kind of fault is in it.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for strike in &self.strikes {
            *counts.entry(strike.fault.to_string()).or_default() += 1;
        }
        counts
    }
}

fn shuffled(rng: &mut StdRng, brokers: usize) -> Vec<Fault> {
    let mut deck = Fault::all(brokers);
    deck.shuffle(rng);
    deck
}

/// The same seed is the same schedule, another one is another, and a long one has every kind of fault.
pub fn the_same_seed_is_the_same_schedule() {
    let length = Duration::from_secs(1_200);
    let first = Schedule::draw(7, length, 3);
    assert_eq!(first, Schedule::draw(7, length, 3));
    assert_ne!(first, Schedule::draw(8, length, 3));
    for brokers in [1, 3] {
        let counts = Schedule::draw(7, length, brokers).counts();
        assert_eq!(counts.len(), Fault::all(brokers).len(), "{counts:?}");
    }
    // At least six in a minute, each bounded.
    assert!(first.strikes.len() >= 120, "{}", first.strikes.len());
    assert!(
        first
            .strikes
            .iter()
            .all(|strike| strike.lasts <= Duration::from_secs(8))
    );
}
