//! What a body must be. Knows only what was sent and what was acknowledged; shares no code with the fold.

use super::seed::Entry;

/// One session as its writers saw it.
#[derive(Debug, Default, Clone)]
pub struct Sent {
    /// Everything that was sent, in order, over all lifetimes.
    pub entries: Vec<Entry>,
    /// How many of them, from the first on, were acknowledged.
    pub acked: usize,
}

impl Sent {
    /// Checks a body against what was sent: it must be the body of some prefix that holds all that was acknowledged
    /// (acked-is-durable, no-silent-gap, byte-exact). Returns how many entries it holds.
    pub fn check(&self, body: &[u8]) -> Result<usize, String> {
        let matching =
            (self.acked..=self.entries.len()).find(|count| body_of(&self.entries[..*count]) == body);
        matching.ok_or_else(|| self.explain(body))
    }

    /// The body after every entry that was sent.
    pub fn whole_body(&self) -> Vec<u8> {
        body_of(&self.entries)
    }

    fn explain(&self, body: &[u8]) -> String {
        let holds = (0..self.acked)
            .rev()
            .find(|count| body_of(&self.entries[..*count]) == body);
        let what = match holds {
            Some(count) => format!("LOST: it is the body after entry {count}"),
            None => "ALTERED: it is the body of no prefix of what was sent".to_owned(),
        };
        let expected = body_of(&self.entries[..self.acked]);
        let differs = expected.iter().zip(body).position(|(left, right)| left != right);
        format!(
            "a body of {} bytes after {} of {} entries were acknowledged ({} bytes): {what}; first difference at {differs:?}",
            body.len(),
            self.acked,
            self.entries.len(),
            expected.len(),
        )
    }
}

/// The last checkpoint's bytes and each later delta's.
pub fn body_of(entries: &[Entry]) -> Vec<u8> {
    let start = entries.iter().rposition(|entry| entry.checkpoint).unwrap_or(0);
    entries[start..]
        .iter()
        .flat_map(|entry| entry.bytes.iter().copied())
        .collect()
}
