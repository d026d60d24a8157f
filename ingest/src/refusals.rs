//! The refusals of ingest, in words.

use std::time::Duration;

use tonic::{Code, Status};
use wakelog_contract::refuse;
use wakelog_model::limits::PART_SIZE;
use wakelog_proto::v1::RefusalReason;

use crate::admission::Refusal;
use crate::facts::Terminal;
use crate::lane::AckRefusal;
use crate::validate::too_large;

/// After what time a writer that found no room may try again.
const RETRY_DELAY: Duration = Duration::from_millis(100);

pub(crate) fn terminal(terminal: Terminal) -> Status {
    match terminal {
        Terminal::NotFound => refuse(RefusalReason::SessionNotFound, "there is no such session").build(),
        Terminal::Superseded { current } => refuse(
            RefusalReason::Superseded,
            format!("generation {current} of the session is current"),
        )
        .expected(current)
        .build(),
        Terminal::Failed => refuse(
            RefusalReason::LifetimeFailed,
            "the lifetime met conflicting entries, attach anew",
        )
        .build(),
        Terminal::SecondWriter => {
            refuse(RefusalReason::SecondWriter, "another writer holds this lifetime").build()
        }
    }
}

pub(crate) fn admission(refusal: Refusal) -> Status {
    match refusal {
        Refusal::Terminal(what) => terminal(what),
        Refusal::Ended => refuse(RefusalReason::LifetimeEnded, "the lifetime has ended").build(),
        Refusal::Gap { expected } => refuse(RefusalReason::Gap, format!("entry {expected} is the next one"))
            .expected(expected)
            .build(),
    }
}

pub(crate) fn ack(refusal: AckRefusal) -> Status {
    match refusal {
        AckRefusal::Terminal(what) => terminal(what),
        AckRefusal::Voided { expected } => send_again(expected),
        AckRefusal::FencesStale => {
            unavailable("the fences could not be read for too long, the entry gets no LOG ack")
        }
    }
}

/// An earlier publish came to nothing, or nobody knows.
pub(crate) fn send_again(expected: u64) -> Status {
    let message = format!("the log may not have entry {expected}, send again from there");
    refuse(RefusalReason::DependencyUnavailable, message)
        .expected(expected)
        .build()
}

pub(crate) fn displaced(seq: u64) -> Status {
    let message = format!("another call of this writer took entry {seq} over, or it was voided");
    refuse(RefusalReason::DependencyUnavailable, message)
        .expected(seq)
        .build()
}

pub(crate) fn unavailable(message: &str) -> Status {
    refuse(RefusalReason::DependencyUnavailable, message).build()
}

pub(crate) fn shutting_down() -> Status {
    refuse(RefusalReason::ShuttingDown, "the relay is shutting down").build()
}

pub(crate) fn back_pressure(what: &str) -> Status {
    refuse(RefusalReason::BackPressure, what)
        .retry_delay(RETRY_DELAY)
        .build()
}

pub(crate) fn conflict(seq: u64) -> Status {
    refuse(
        RefusalReason::Conflict,
        format!("entry {seq} was applied with other bytes"),
    )
    .build()
}

pub(crate) fn corrupt(message: &str) -> Status {
    refuse(RefusalReason::StoreCorrupt, message).build()
}

/// What a broken inbound stream means. The transport refuses a message beyond its limit before anybody reads it, and no
/// part is that large.
pub(crate) fn inbound(status: Status) -> Status {
    match status.code() {
        Code::OutOfRange => too_large("a part", PART_SIZE as u64),
        _ => status,
    }
}
