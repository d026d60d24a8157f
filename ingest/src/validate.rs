//! What a well-formed request is. Pure: nothing here knows what was published before.

use bytes::Bytes;
use tonic::Status;
use wakelog_contract::refuse;
use wakelog_model::limits::{MAX_UNARY_ENTRY_BYTES, PART_SIZE};
use wakelog_model::{IdempotencyKey, WriterNonce};
use wakelog_proto::v1::agent_frame::Frame;
use wakelog_proto::v1::{
    AckLevel, AgentFrame, CommitConversationPartsRequest, RefusalReason, TranscriptPart, WriterHello,
    commit_conversation_parts_request,
};

use crate::ack::Level;

#[cfg(test)]
mod tests;

/// One entry of a unary call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnaryEntry {
    pub nonce: WriterNonce,
    pub seq: u64,
    pub checkpoint: bool,
    pub content: Bytes,
    pub asked: Level,
}

/// Reads a unary request.
pub(crate) fn unary_entry(
    idempotency_key: &str,
    frame: Option<AgentFrame>,
    ack_level: i32,
    max_entry_bytes: u64,
) -> Result<UnaryEntry, Status> {
    let entry = match frame.and_then(|frame| frame.frame) {
        Some(Frame::TranscriptEntry(entry)) => entry,
        Some(Frame::Session(_)) => return Err(malformed("a session event is never durable")),
        None => return Err(malformed("the request has no frame")),
    };
    let key: IdempotencyKey = idempotency_key
        .parse()
        .map_err(|error: wakelog_model::Error| malformed(error.to_string()))?;
    if entry.entry_seq == 0 {
        return Err(malformed("entry_seq starts at 1"));
    }
    if key.lifetime_seq != entry.entry_seq {
        return Err(malformed(format!(
            "the idempotency key is for entry {}, the frame holds entry {}",
            key.lifetime_seq, entry.entry_seq
        )));
    }
    if entry.entry.is_empty() {
        return Err(empty_entry());
    }
    let limit = max_entry_bytes.min(MAX_UNARY_ENTRY_BYTES as u64);
    if entry.entry.len() as u64 > limit {
        return Err(too_large("an entry of a unary call", limit));
    }
    Ok(UnaryEntry {
        nonce: key.nonce,
        seq: entry.entry_seq,
        checkpoint: entry.checkpoint,
        content: entry.entry,
        asked: level(ack_level)?,
    })
}

/// Who writes on a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    pub session_id: String,
    pub nonce: WriterNonce,
    pub asked: Level,
}

/// Reads the first message of a stream.
pub(crate) fn hello(message: CommitConversationPartsRequest) -> Result<Hello, Status> {
    let Some(commit_conversation_parts_request::Message::Hello(WriterHello {
        session_id,
        writer_nonce,
        ack_level,
    })) = message.message
    else {
        return Err(malformed("the first message of a stream is `hello`"));
    };
    let nonce = WriterNonce::from_slice(&writer_nonce).map_err(|error| malformed(error.to_string()))?;
    Ok(Hello {
        session_id,
        nonce,
        asked: level(ack_level)?,
    })
}

/// Where the next part of a stream belongs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum Cursor {
    /// An entry starts.
    #[default]
    BetweenEntries,
    /// An entry goes on.
    InEntry {
        seq: u64,
        next_part: u32,
        checkpoint: bool,
        bytes: u64,
    },
}

/// Reads a later message of a stream and moves the cursor behind it.
pub(crate) fn next_part(
    cursor: &mut Cursor,
    message: CommitConversationPartsRequest,
    max_entry_bytes: u64,
) -> Result<TranscriptPart, Status> {
    let Some(commit_conversation_parts_request::Message::Part(part)) = message.message else {
        return Err(malformed("after `hello` every message of a stream is a `part`"));
    };
    if part.entry_seq == 0 {
        return Err(malformed("entry_seq starts at 1"));
    }
    let (expected_part, bytes_before) = match *cursor {
        Cursor::BetweenEntries => (0, 0),
        Cursor::InEntry {
            seq,
            next_part,
            checkpoint,
            bytes,
        } => {
            if part.entry_seq != seq {
                return Err(malformed(format!(
                    "entry {} starts before entry {seq} is complete",
                    part.entry_seq
                )));
            }
            if part.checkpoint != checkpoint {
                return Err(malformed(
                    "the checkpoint flag is the same on all parts of an entry",
                ));
            }
            (next_part, bytes)
        }
    };
    if part.part != expected_part {
        let message = format!(
            "part {} of entry {} where part {expected_part} is next",
            part.part, part.entry_seq
        );
        return Err(refuse(RefusalReason::Gap, message)
            .expected(part.entry_seq)
            .build());
    }
    check_length(&part)?;
    let bytes = bytes_before + part.content.len() as u64;
    if bytes > max_entry_bytes {
        return Err(too_large("an entry", max_entry_bytes));
    }
    *cursor = if part.last {
        Cursor::BetweenEntries
    } else {
        Cursor::InEntry {
            seq: part.entry_seq,
            next_part: expected_part + 1,
            checkpoint: part.checkpoint,
            bytes,
        }
    };
    Ok(part)
}

fn check_length(part: &TranscriptPart) -> Result<(), Status> {
    if part.content.len() > PART_SIZE {
        return Err(too_large("a part", PART_SIZE as u64));
    }
    if part.content.is_empty() && part.part == 0 && part.last {
        return Err(empty_entry());
    }
    wakelog_model::check_part_length(part.part, part.last, part.content.len())
        .map_err(|error| malformed(error.to_string()))
}

fn level(ack_level: i32) -> Result<Level, Status> {
    match AckLevel::try_from(ack_level) {
        Ok(AckLevel::Unspecified | AckLevel::Log) => Ok(Level::Log),
        Ok(AckLevel::Store) => Ok(Level::Store),
        Err(_) => Err(malformed(format!("ack level {ack_level} is not known"))),
    }
}

pub(crate) fn malformed(message: impl Into<String>) -> Status {
    refuse(RefusalReason::Malformed, message).build()
}

pub(crate) fn too_large(what: &str, limit: u64) -> Status {
    refuse(
        RefusalReason::TooLarge,
        format!("{what} has at most {limit} bytes"),
    )
    .limit(limit)
    .build()
}

fn empty_entry() -> Status {
    refuse(RefusalReason::EmptyEntry, "an entry has at least one byte").build()
}
