//! What is measured, where, and how long.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Error;

/// One measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Pipelined commits beside a raw producer.
    Commits,
    /// One commit at a time beside a raw producer.
    Unary,
    /// The persister on a backlog beside raw `UNNEST`.
    Persist,
    /// A resume beside a streamed `SELECT`.
    Resume,
    /// Appending and resuming as a session grows.
    Growth,
    /// From the call to the first byte of the body, on an idle pipeline.
    Barrier,
    /// The archiver on a backlog beside raw PUTs of the same objects.
    Archive,
    /// Stored bytes per byte of an entry, in the hot tail and in the archive.
    Stored,
    /// A resume of a body of which half is in segments, beside raw reads of the same bytes.
    Spliced,
    /// A resume with a long archived history behind it, beside one without.
    History,
    /// An agent that never writes a checkpoint: what the safety valve does.
    Valve,
    /// A replay of the topic into a new database, beside reading the same records.
    Replay,
    /// How the rate of the fold grows with partitions and persisters.
    Scale,
    /// The whole pipeline for twenty minutes at half of what it can do.
    Soak,
}

impl Measure {
    /// All of them, in the order in which they are run.
    pub const ALL: [Self; 14] = [
        Self::Commits,
        Self::Unary,
        Self::Persist,
        Self::Resume,
        Self::Growth,
        Self::Barrier,
        Self::Archive,
        Self::Stored,
        Self::Spliced,
        Self::History,
        Self::Valve,
        Self::Replay,
        Self::Scale,
        Self::Soak,
    ];

    /// Its name, as on the command line and in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Commits => "commits",
            Self::Unary => "unary",
            Self::Persist => "persist",
            Self::Resume => "resume",
            Self::Growth => "growth",
            Self::Barrier => "barrier",
            Self::Archive => "archive",
            Self::Stored => "stored",
            Self::Spliced => "spliced",
            Self::History => "history",
            Self::Valve => "valve",
            Self::Replay => "replay",
            Self::Scale => "scale",
            Self::Soak => "soak",
        }
    }

    /// Whether it can't do without an object store.
    pub fn needs_archive(self) -> bool {
        matches!(
            self,
            Self::Archive | Self::Stored | Self::Spliced | Self::History | Self::Valve | Self::Soak
        )
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|measure| measure.name() == text)
            .ok_or_else(|| format!("there is no measure {text:?}"))
    }
}

/// What is measured, where, and how long.
#[derive(Clone)]
pub struct Options {
    /// The program that runs the services: `wakelog` itself.
    pub program: PathBuf,
    /// Kafka brokers.
    pub brokers: String,
    /// A PostgreSQL server, by the URL of one of its databases. The benchmark makes a database of its own there.
    pub database_url: String,
    /// A bucket, which must exist, for the measures that need one; objects are put below a prefix of the benchmark's own, and
    /// deleted again.
    pub archive: Option<wakelog_archive::Options>,
    /// Further librdkafka settings.
    pub kafka: BTreeMap<String, String>,
    /// Replicas of the topics.
    pub replication: i32,
    /// Rounds that count, after one that does not.
    pub rounds: usize,
    /// How large everything is, against the sizes that the goals are about.
    pub scale: f64,
    /// The seed of the payload.
    pub seed: u64,
}

impl Options {
    /// Refuses what could not work.
    pub fn check(&self, measures: &[Measure]) -> Result<(), Error> {
        if self.rounds == 0 {
            return Err(Error::Options("at least one round must count".to_owned()));
        }
        if !(0.001..=100.0).contains(&self.scale) {
            return Err(Error::Options("the scale is 0.001 to 100".to_owned()));
        }
        let homeless = measures.iter().find(|measure| measure.needs_archive());
        if let (Some(measure), None) = (homeless, &self.archive) {
            return Err(Error::Options(format!(
                "{measure} needs an object store, and no bucket is named"
            )));
        }
        Ok(())
    }

    /// A number of things, scaled; at least `least`.
    pub(crate) fn scaled(&self, count: usize, least: usize) -> usize {
        ((count as f64 * self.scale) as usize).max(least)
    }
}

// By hand: the URL and a setting may hold a password; the bucket's options hide their keys themselves.
impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Options")
            .field("program", &self.program)
            .field("brokers", &self.brokers)
            .field("archive", &self.archive)
            .field("kafka", &self.kafka.keys())
            .field("rounds", &self.rounds)
            .field("scale", &self.scale)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options {
            program: PathBuf::new(),
            brokers: String::new(),
            database_url: "postgres://user:secret@host/db".to_owned(),
            archive: None,
            kafka: BTreeMap::from([("sasl.password".to_owned(), "secret".to_owned())]),
            replication: 1,
            rounds: 5,
            scale: 1.0,
            seed: 1,
        }
    }

    #[test]
    fn every_measure_is_found_by_its_name() {
        for measure in Measure::ALL {
            assert_eq!(measure.name().parse(), Ok(measure));
        }
        assert!("all".parse::<Measure>().is_err());
    }

    #[test]
    fn sizes_are_scaled_and_never_vanish() {
        let options = Options {
            scale: 0.01,
            ..options()
        };
        assert_eq!(options.scaled(1_000, 1), 10);
        assert_eq!(options.scaled(10, 8), 8);
    }

    #[test]
    fn what_could_not_work_is_refused() {
        assert!(options().check(&[Measure::Commits]).is_ok());
        assert!(
            Options {
                rounds: 0,
                ..options()
            }
            .check(&[])
            .is_err()
        );
        for scale in [0.0, -1.0, f64::NAN, 1e6] {
            assert!(Options { scale, ..options() }.check(&[]).is_err());
        }
    }

    #[test]
    fn a_measure_of_the_archive_is_refused_without_a_bucket() {
        let measures = [Measure::Commits, Measure::Stored];
        let refusal = options().check(&measures).unwrap_err().to_string();
        assert!(refusal.starts_with("stored needs an object store"), "{refusal}");
        let archive = Some(wakelog_archive::Options::new("region", "bucket"));
        assert!(Options { archive, ..options() }.check(&measures).is_ok());
    }

    #[test]
    fn no_secret_is_printed() {
        let archive = wakelog_archive::Options {
            access_key: Some("key".to_owned()),
            secret_key: Some("secret".to_owned()),
            ..wakelog_archive::Options::new("region", "bucket")
        };
        let options = Options {
            archive: Some(archive),
            ..options()
        };
        assert!(!format!("{options:?}").contains("secret\""));
        assert!(!format!("{options:?}").contains("user:secret"));
    }
}
