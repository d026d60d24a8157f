//! The payload: JSON lines such as agents write, out of a seed. The same seed gives the same bytes, and they compress as
//! transcripts do: a few words often, most of them seldom, and ids and times that do not compress at all.

use std::fmt::Write as _;

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng as _, RngCore as _, SeedableRng as _};

/// Words that the text is made of.
const WORDS: usize = 3_000;

/// Bytes of an entry's text: this much to three times as much. With what is around it an entry has about 1 KiB.
const SHORTEST_TEXT: usize = 375;

const SYLLABLES: [&str; 32] = [
    "re", "con", "ta", "in", "er", "lo", "gi", "st", "ma", "pro", "de", "se", "ion", "al", "par", "ti", "un",
    "be", "ver", "ou", "ck", "ing", "fi", "le", "ch", "na", "mo", "du", "ex", "pe", "ow", "sh",
];

/// What comes between two words now and then.
const MARKS: [&str; 8] = [". ", ", ", "\\n", "::", "() ", " = ", "\\\"", ": "];

/// A transcript that never ends.
#[derive(Debug)]
pub struct Transcript {
    random: StdRng,
    words: Vec<String>,
    line: u64,
}

impl Transcript {
    /// Starts the transcript of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let words = (0..WORDS).map(|_| word(&mut random)).collect();
        Self {
            random,
            words,
            line: 0,
        }
    }

    /// The next entry: one line of JSON, its end included.
    pub fn entry(&mut self) -> Bytes {
        self.line += 1;
        let mut line = String::with_capacity(2 * 1024);
        let kind = ["assistant", "user", "tool_result"][self.random.random_range(0..3)];
        let (id, parent) = (self.random.next_u64(), self.random.next_u64());
        let millisecond = self.line * 731;
        // Writing to a text does not fail.
        write!(
            line,
            "{{\"type\":\"{kind}\",\"id\":\"{id:016x}\",\"parentId\":\"{parent:016x}\",\"timestamp\":{millisecond},\
             \"message\":{{\"role\":\"{kind}\",\"content\":[{{\"type\":\"text\",\"text\":\""
        )
        .ok();
        let end = line.len() + self.random.random_range(SHORTEST_TEXT..=3 * SHORTEST_TEXT);
        while line.len() < end {
            let rank = self.rank();
            line.push_str(&self.words[rank]);
            match self.random.random_range(0..6) {
                0 => line.push_str(MARKS[self.random.random_range(0..MARKS.len())]),
                _ => line.push(' '),
            }
        }
        let (input, output) = (
            self.random.random_range(0..100_000),
            self.random.random_range(0..2_000),
        );
        writeln!(
            line,
            "\"}}]}},\"usage\":{{\"input\":{input},\"output\":{output}}}}}"
        )
        .ok();
        line.into()
    }

    /// The next entries, so many.
    pub fn entries(&mut self, count: usize) -> Vec<Bytes> {
        (0..count).map(|_| self.entry()).collect()
    }

    /// The next entries, until they have so many bytes.
    pub fn bytes(&mut self, bytes: usize) -> Vec<Bytes> {
        let mut entries = Vec::new();
        let mut length = 0;
        while length < bytes {
            let entry = self.entry();
            length += entry.len();
            entries.push(entry);
        }
        entries
    }

    /// Low ranks come far more often than high ones.
    fn rank(&mut self) -> usize {
        let uniform: f64 = self.random.random();
        ((WORDS as f64 * uniform.powi(5)) as usize).min(WORDS - 1)
    }
}

fn word(random: &mut StdRng) -> String {
    let syllables = random.random_range(1..=4);
    (0..syllables)
        .map(|_| SYLLABLES[random.random_range(0..SYLLABLES.len())])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(seed: u64, entries: usize) -> Vec<u8> {
        Transcript::new(seed).entries(entries).concat()
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        assert_eq!(joined(7, 500), joined(7, 500));
        assert_ne!(joined(7, 500), joined(8, 500));
    }

    #[test]
    fn an_entry_is_a_line_of_json_of_about_a_kibibyte() {
        let entries = Transcript::new(1).entries(2_000);
        for entry in &entries {
            let (end, line) = entry.split_last().unwrap();
            assert_eq!(*end, b'\n');
            assert!(!line.contains(&b'\n'));
            serde_json::from_slice::<serde_json::Value>(line).unwrap();
        }
        let mean = entries.iter().map(Bytes::len).sum::<usize>() / entries.len();
        assert!((900..1_150).contains(&mean), "{mean}");
    }

    #[test]
    fn it_compresses_as_transcripts_do() {
        let text = joined(3, 4_000);
        let compressed = zstd::bulk::compress(&text, 3).unwrap();
        let percent = compressed.len() * 100 / text.len();
        assert!((20..=35).contains(&percent), "{percent}");
    }

    #[test]
    fn bytes_are_at_least_what_was_asked_and_less_than_an_entry_more() {
        let entries = Transcript::new(5).bytes(100_000);
        let length: usize = entries.iter().map(Bytes::len).sum();
        assert!(length >= 100_000);
        assert!(length - entries.last().unwrap().len() < 100_000);
    }
}
