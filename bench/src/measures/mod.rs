//! One file per measure. Each runs its rounds and says what it found; the first round is a warm-up and does not count.

pub(crate) mod archive;
pub(crate) mod barrier;
pub(crate) mod commits;
pub(crate) mod growth;
pub(crate) mod history;
pub(crate) mod persist;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod scale;
pub(crate) mod soak;
pub(crate) mod spliced;
pub(crate) mod stored;
pub(crate) mod unary;
pub(crate) mod valve;

use std::time::Duration;

use crate::pipeline::Pipeline;
use crate::report::Found;
use crate::{Error, Measure, Options};

/// Says how far the benchmark is.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// What a measure runs with.
pub(crate) struct Run<'a> {
    pub(crate) measure: Measure,
    pub(crate) options: &'a Options,
    pub(crate) progress: Progress<'a>,
}

impl Run<'_> {
    /// The rounds, the warm-up first.
    pub(crate) fn rounds(&self) -> impl Iterator<Item = Round> {
        let (measure, count) = (self.measure, self.options.rounds);
        let progress = self.progress;
        (0..=count).map(move |number| {
            match number {
                0 => progress(&format!("{measure}: warm-up")),
                _ => progress(&format!("{measure}: round {number} of {count}")),
            }
            Round { number }
        })
    }

    /// Says what is being done.
    pub(crate) fn say(&self, what: &str) {
        (self.progress)(&format!("{}: {what}", self.measure));
    }

    pub(crate) async fn measure(&self, pipeline: &mut Pipeline<'_>) -> Result<Found, Error> {
        match self.measure {
            Measure::Commits => commits::measure(self, pipeline).await,
            Measure::Unary => unary::measure(self, pipeline).await,
            Measure::Persist => persist::measure(self, pipeline).await,
            Measure::Resume => resume::measure(self, pipeline).await,
            Measure::Growth => growth::measure(self, pipeline).await,
            Measure::Barrier => barrier::measure(self, pipeline).await,
            Measure::Archive => Box::pin(archive::measure(self, pipeline)).await,
            Measure::Stored => Box::pin(stored::measure(self, pipeline)).await,
            Measure::Spliced => Box::pin(spliced::measure(self, pipeline)).await,
            Measure::History => Box::pin(history::measure(self, pipeline)).await,
            Measure::Valve => Box::pin(valve::measure(self, pipeline)).await,
            Measure::Scale => Box::pin(scale::measure(self, pipeline)).await,
            Measure::Soak => Box::pin(soak::measure(self, pipeline)).await,
            Measure::Replay => Box::pin(replay::measure(self, pipeline)).await,
        }
    }
}

/// One round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    number: usize,
}

impl Round {
    /// Whether it is more than a warm-up.
    pub(crate) fn counts(self) -> bool {
        self.number > 0
    }
}

/// So many in so long, per second.
pub(crate) fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
