//! How long nothing was acknowledged, over all writers and for the worst one, beside which faults.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Milliseconds since the start of the run.
pub type Millis = u64;

/// What a fault still explains after it was mended: a member that comes back makes its group share out again.
const AFTERMATH: Millis = 3_000;

/// What gaps beside no fault are called.
pub const NO_FAULT: &str = "(no fault)";

/// The progress of every writer, and the faults, on one clock.
pub struct Availability {
    start: OnceLock<Instant>,
    acks: Mutex<Vec<(Millis, usize)>>,
    faults: Mutex<Vec<Struck>>,
}

/// A fault that happened.
#[derive(Debug, Clone)]
pub struct Struck {
    pub kind: String,
    pub from: Millis,
    pub to: Millis,
}

/// The longest times without an acknowledged entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Longest {
    /// None of any writer.
    pub all: Millis,
    /// None of one writer.
    pub one: Millis,
    /// None of one writer, beside no fault of another kind.
    pub one_alone: Millis,
}

impl Availability {
    pub fn new() -> Self {
        Self {
            start: OnceLock::new(),
            acks: Mutex::default(),
            faults: Mutex::default(),
        }
    }

    /// The run begins.
    pub fn begin(&self) -> Instant {
        *self.start.get_or_init(Instant::now)
    }

    pub fn now(&self) -> Millis {
        self.begin().elapsed().as_millis() as Millis
    }

    /// Waits until a moment of the run.
    pub async fn sleep_until(&self, at: Duration) {
        tokio::time::sleep_until((self.begin() + at).into()).await;
    }

    /// A writer has something more acknowledged.
    pub fn progress(&self, writer: usize) {
        let now = self.now();
        self.acks.lock().expect("not poisoned").push((now, writer));
    }

    /// A fault is over.
    pub fn struck(&self, struck: Struck) {
        self.faults.lock().expect("not poisoned").push(struck);
    }

    /// Every fault, in the order in which they began.
    pub fn faults(&self) -> Vec<Struck> {
        let mut faults = self.faults.lock().expect("not poisoned").clone();
        faults.sort_by_key(|struck| struck.from);
        faults
    }

    /// The longest gaps beside each kind of fault. A gap beside two faults counts for both: what overlaps is not told apart.
    pub fn longest(&self) -> BTreeMap<String, Longest> {
        let acks = self.acks.lock().expect("not poisoned");
        let mut all: Vec<Millis> = acks.iter().map(|(at, _)| *at).collect();
        all.sort_unstable();
        let mut of_each: BTreeMap<usize, Vec<Millis>> = BTreeMap::new();
        for (at, writer) in acks.iter() {
            of_each.entry(*writer).or_default().push(*at);
        }
        let faults = self.faults();
        let mut longest: BTreeMap<String, Longest> = BTreeMap::new();
        for fault in &faults {
            longest.entry(fault.kind.clone()).or_default();
        }
        for (from, to) in gaps(&all) {
            for kind in beside(&faults, from, to) {
                let entry = longest.entry(kind).or_default();
                entry.all = entry.all.max(to - from);
            }
        }
        for (from, to) in of_each.values().flat_map(|acks| gaps(acks)) {
            let kinds = beside(&faults, from, to);
            let is_alone = kinds.len() == 1;
            for kind in kinds {
                let entry = longest.entry(kind).or_default();
                entry.one = entry.one.max(to - from);
                if is_alone {
                    entry.one_alone = entry.one_alone.max(to - from);
                }
            }
        }
        longest
    }
}

/// The times between two of these.
fn gaps(acks: &[Millis]) -> Vec<(Millis, Millis)> {
    let mut sorted = acks.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

fn beside(faults: &[Struck], from: Millis, to: Millis) -> Vec<String> {
    let mut kinds: Vec<String> = faults
        .iter()
        .filter(|fault| fault.from < to && from < fault.to + AFTERMATH)
        .map(|fault| fault.kind.clone())
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    match kinds.is_empty() {
        true => vec![NO_FAULT.to_owned()],
        false => kinds,
    }
}

/// A gap counts for the faults that it lies beside, and for no other.
pub fn a_gap_counts_for_the_faults_beside_it() {
    let availability = Availability::new();
    for ack in [(0, 0), (100, 1), (900, 1), (1_000, 0), (9_000, 0), (9_500, 1)] {
        availability.acks.lock().expect("not poisoned").push(ack);
    }
    availability.struck(Struck {
        kind: "a".to_owned(),
        from: 200,
        to: 300,
    });
    availability.struck(Struck {
        kind: "b".to_owned(),
        from: 9_200,
        to: 9_300,
    });
    let longest = availability.longest();
    let of = |kind: &str| longest.get(kind).copied().unwrap_or_default();
    let expected = |all, one, one_alone| Longest { all, one, one_alone };
    assert_eq!(of("a"), expected(8_000, 8_600, 8_000));
    assert_eq!(of("b"), expected(500, 8_600, 0));
    assert_eq!(of(NO_FAULT), expected(100, 0, 0));
}
