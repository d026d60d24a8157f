//! Random entries that can be drawn again: print the seed, and a failure can be replayed.

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// One entry as a writer sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub bytes: Bytes,
    pub checkpoint: bool,
}

/// The seeds of a run: `WAKELOG_TEST_SEED` replays one, `WAKELOG_TEST_SEEDS` sets how many, else `usual` of them.
pub fn seeds(usual: u64) -> Vec<u64> {
    if let Ok(seed) = std::env::var("WAKELOG_TEST_SEED") {
        return vec![seed.parse().expect("WAKELOG_TEST_SEED is a number")];
    }
    let count = match std::env::var("WAKELOG_TEST_SEEDS") {
        Ok(count) => count.parse().expect("WAKELOG_TEST_SEEDS is a number"),
        Err(_) => usual,
    };
    (1..=count).collect()
}

/// A generator that gives the same for the same seed.
pub fn rng(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// An entry of the kind that transcripts hold, and of the kinds that break things.
pub fn entry(rng: &mut StdRng, number: u64) -> Entry {
    let checkpoint = number == 1 || rng.random_ratio(1, 20);
    let body = match rng.random_range(0..20) {
        0 => vec![0_u8; rng.random_range(1..300)],
        1 => (0..rng.random_range(1..2000)).map(|_| rng.random()).collect(),
        2 => "crlf\r\nbom \u{feff} separator \u{2028}\n".as_bytes().to_vec(),
        3 => br#"{"lone":"\ud800","nul":"\u0000"}"#.to_vec(),
        4 if rng.random_ratio(1, 4) => text(rng, 1_300_000),
        _ => {
            let length = rng.random_range(20..3000);
            text(rng, length)
        }
    };
    let mut bytes = format!("{{\"n\":{number}}} ").into_bytes();
    bytes.extend_from_slice(&body);
    bytes.push(b'\n');
    Entry {
        bytes: bytes.into(),
        checkpoint,
    }
}

/// Text that compresses about as transcripts do.
fn text(rng: &mut StdRng, length: usize) -> Vec<u8> {
    const WORDS: [&str; 12] = [
        "the", "file", "was", "not", "found", "error", "in", "line", "function", "returns", "value",
        "because",
    ];
    let mut text = String::with_capacity(length + 12);
    while text.len() < length {
        text.push_str(WORDS[rng.random_range(0..WORDS.len())]);
        text.push_str(if rng.random_ratio(1, 9) {
            &"x9f3k1"[..rng.random_range(1..6)]
        } else {
            " "
        });
    }
    text.truncate(length);
    text.into_bytes()
}
