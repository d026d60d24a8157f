//! A session recorded from a real agent SDK: the calls that its storage got, and the file that it left on disk.
//!
//! The recording is data of this repository (`cli/recordings`); nothing in it was edited after it was recorded.

use bytes::Bytes;
use serde::Deserialize;

/// The calls of a session with tool output that holds NUL, a lone surrogate, emoji and U+2028, two titles and two
/// compactions.
const CALLS: &str = include_str!("../../recordings/compaction-session.calls.json");

/// What the SDK left on disk after them.
const FINAL_FILE: &[u8] = include_bytes!("../../recordings/compaction-session.jsonl");

/// The first line of a session file: the title, padded so that it can be overwritten in place.
const TITLE_SLOT_BYTES: usize = 256;

/// What can be wrong with a recording.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the recording is not what the demo can play: {0}")]
    Format(#[from] serde_json::Error),
    #[error("call {call} overwrites a title slot that the file does not have")]
    NoTitleSlot { call: usize },
}

/// One committed write of the recorded agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
pub(crate) enum Call {
    /// The whole file is written anew.
    WriteFull { content: String },
    /// A line is appended.
    Append { line: String },
    /// The title slot at the head of the file is overwritten in place.
    UpdateSessionTitle { title: Title },
}

/// The title of a session, in the order in which the SDK writes its fields.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Title {
    title: String,
    source: Option<String>,
    updated_at: String,
}

/// What a tee sends for one committed write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeedEntry {
    pub(crate) bytes: Bytes,
    pub(crate) checkpoint: bool,
}

/// The recording.
#[derive(Debug, Deserialize)]
pub(crate) struct Recording {
    sdk: String,
    calls: Vec<Call>,
}

impl Recording {
    /// Reads the recording that the binary carries.
    pub(crate) fn load() -> Result<Self, Error> {
        Ok(serde_json::from_str(CALLS)?)
    }

    /// The SDK's version.
    pub(crate) fn sdk(&self) -> &str {
        &self.sdk
    }

    /// The calls, in order.
    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The file that the SDK left on disk.
    pub(crate) fn final_file() -> &'static [u8] {
        FINAL_FILE
    }
}

impl Call {
    /// The name that the SDK gives the call.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::WriteFull { .. } => "writeFull",
            Self::Append { .. } => "append",
            Self::UpdateSessionTitle { .. } => "updateSessionTitle",
        }
    }

    /// Commits the call to `file` and says what a tee sends for it. A title goes past the SDK's append and writeFull,
    /// so the tee ships the whole file as a checkpoint.
    pub(crate) fn commit(&self, call: usize, file: &mut Vec<u8>) -> Result<TeedEntry, Error> {
        match self {
            Self::WriteFull { content } => {
                *file = content.as_bytes().to_vec();
                Ok(TeedEntry {
                    bytes: Bytes::from(file.clone()),
                    checkpoint: true,
                })
            }
            Self::Append { line } => {
                file.extend_from_slice(line.as_bytes());
                Ok(TeedEntry {
                    bytes: Bytes::copy_from_slice(line.as_bytes()),
                    checkpoint: false,
                })
            }
            Self::UpdateSessionTitle { title } => {
                let slot = title.slot()?;
                let head = file
                    .get_mut(..TITLE_SLOT_BYTES)
                    .ok_or(Error::NoTitleSlot { call })?;
                head.copy_from_slice(&slot);
                Ok(TeedEntry {
                    bytes: Bytes::from(file.clone()),
                    checkpoint: true,
                })
            }
        }
    }
}

impl Title {
    /// The title slot: a JSON line of exactly 256 bytes.
    fn slot(&self) -> Result<[u8; TITLE_SLOT_BYTES], Error> {
        let mut head = format!(
            "{{\"type\":\"title\",\"v\":1,\"title\":{}",
            serde_json::to_string(&self.title)?
        );
        if let Some(source) = &self.source {
            head.push_str(&format!(",\"source\":{}", serde_json::to_string(source)?));
        }
        head.push_str(&format!(
            ",\"updatedAt\":{},\"pad\":\"",
            serde_json::to_string(&self.updated_at)?
        ));
        let tail = b"\"}\n";
        let mut slot = [b' '; TITLE_SLOT_BYTES];
        let room = TITLE_SLOT_BYTES - tail.len();
        let written = head.len().min(room);
        slot[..written].copy_from_slice(&head.as_bytes()[..written]);
        slot[room..].copy_from_slice(tail);
        Ok(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn playing_every_call_gives_the_file_that_the_sdk_left() {
        let recording = Recording::load().unwrap();
        let mut file = Vec::new();
        for (number, call) in recording.calls().iter().enumerate() {
            call.commit(number, &mut file).unwrap();
        }
        assert_eq!(file, Recording::final_file());
    }

    #[test]
    fn the_last_checkpoint_and_the_deltas_after_it_are_the_file() {
        let recording = Recording::load().unwrap();
        let mut file = Vec::new();
        let mut body = Vec::new();
        for (number, call) in recording.calls().iter().enumerate() {
            let entry = call.commit(number, &mut file).unwrap();
            if entry.checkpoint {
                body.clear();
            }
            body.extend_from_slice(&entry.bytes);
            assert_eq!(body, file, "after call {number}, {}", call.name());
        }
    }
}
