//! Whether parts come complete and in order. Pure.
//!
//! A body may be shorter than it should be in one way only: not at all. So whatever reads parts from the hot tail
//! passes each of them through a [`Sequence`], and ends with [`Sequence::finish`].

use std::fmt;

use wakelog_model::check_part_length;

/// What the order check needs to know of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartHead {
    /// The entry.
    pub(crate) entry_seq: u64,
    /// The part within the entry.
    pub(crate) part: u32,
    /// Whether it is the entry's last part.
    pub(crate) last: bool,
    /// The entry's checkpoint flag.
    pub(crate) checkpoint: bool,
    /// The generation that wrote it.
    pub(crate) generation: u64,
    /// Length of the plain bytes.
    pub(crate) plain_length: u32,
}

/// Which entries may be checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A body: it starts with a checkpoint or with entry 1, and no other checkpoint lies inside.
    Body,
    /// Entries as they were applied.
    Entries,
}

/// Why parts do not make up what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disorder {
    /// Another part was due.
    Unexpected {
        /// The entry and part that came.
        found: (u64, u32),
        /// The entry and part that were due.
        expected: (u64, u32),
    },
    /// A part came after the last entry was complete.
    Beyond {
        /// The entry and part that came.
        found: (u64, u32),
    },
    /// The parts ended before the last entry was complete.
    Short {
        /// The entry and part that were due.
        expected: (u64, u32),
    },
    /// A part's length does not fit its place.
    Length {
        /// The entry and part.
        at: (u64, u32),
    },
    /// Two parts of one entry do not agree on its checkpoint flag.
    MixedCheckpoint {
        /// The entry.
        entry_seq: u64,
    },
    /// Two parts of one entry come from different lifetimes.
    MixedGeneration {
        /// The entry.
        entry_seq: u64,
    },
    /// An entry comes from an earlier lifetime than the one before it.
    EarlierGeneration {
        /// The entry.
        entry_seq: u64,
    },
    /// A body that does not start at entry 1 does not start with a checkpoint.
    NoCheckpointFirst {
        /// The entry.
        entry_seq: u64,
    },
    /// A checkpoint lies inside a body: the body should have started there.
    CheckpointInside {
        /// The entry.
        entry_seq: u64,
    },
}

impl fmt::Display for Disorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected { found, expected } => write!(
                formatter,
                "entry {} part {} came where entry {} part {} was due",
                found.0, found.1, expected.0, expected.1
            ),
            Self::Beyond { found } => {
                write!(
                    formatter,
                    "entry {} part {} came after the last entry",
                    found.0, found.1
                )
            }
            Self::Short { expected } => {
                write!(formatter, "entry {} part {} is missing", expected.0, expected.1)
            }
            Self::Length { at } => {
                write!(
                    formatter,
                    "entry {} part {} has a length that no such part has",
                    at.0, at.1
                )
            }
            Self::MixedCheckpoint { entry_seq } => {
                write!(
                    formatter,
                    "the parts of entry {entry_seq} do not agree whether it is a checkpoint"
                )
            }
            Self::MixedGeneration { entry_seq } => {
                write!(
                    formatter,
                    "the parts of entry {entry_seq} come from different lifetimes"
                )
            }
            Self::EarlierGeneration { entry_seq } => {
                write!(
                    formatter,
                    "entry {entry_seq} comes from an earlier lifetime than the entry before it"
                )
            }
            Self::NoCheckpointFirst { entry_seq } => {
                write!(
                    formatter,
                    "entry {entry_seq} should be a checkpoint, as the body starts there"
                )
            }
            Self::CheckpointInside { entry_seq } => {
                write!(formatter, "entry {entry_seq} is a checkpoint inside the body")
            }
        }
    }
}

/// Checks that the parts of the entries `first ..= last` come exactly once and in order.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    rule: Rule,
    first: u64,
    last: u64,
    due: (u64, u32),
    generation: u64,
    checkpoint: bool,
}

impl Sequence {
    /// A check over `first ..= last`. An empty range (`first > last`) takes no part at all.
    pub(crate) fn new(rule: Rule, first: u64, last: u64) -> Self {
        Self {
            rule,
            first,
            last,
            due: (first, 0),
            generation: 0,
            checkpoint: false,
        }
    }

    /// Takes the next part.
    pub(crate) fn accept(&mut self, head: &PartHead) -> Result<(), Disorder> {
        let found = (head.entry_seq, head.part);
        if self.is_complete() {
            return Err(Disorder::Beyond { found });
        }
        if found != self.due {
            return Err(Disorder::Unexpected {
                found,
                expected: self.due,
            });
        }
        check_part_length(head.part, head.last, head.plain_length as usize)
            .map_err(|_| Disorder::Length { at: found })?;
        if head.part == 0 {
            self.start_entry(head)?;
        } else if head.checkpoint != self.checkpoint {
            return Err(Disorder::MixedCheckpoint {
                entry_seq: head.entry_seq,
            });
        } else if head.generation != self.generation {
            return Err(Disorder::MixedGeneration {
                entry_seq: head.entry_seq,
            });
        }
        self.due = if head.last {
            (head.entry_seq + 1, 0)
        } else {
            (head.entry_seq, head.part + 1)
        };
        Ok(())
    }

    /// Whether every entry has come.
    pub(crate) fn is_complete(&self) -> bool {
        self.due.0 > self.last
    }

    /// An error unless every entry has come.
    pub(crate) fn finish(&self) -> Result<(), Disorder> {
        if self.is_complete() {
            Ok(())
        } else {
            Err(Disorder::Short { expected: self.due })
        }
    }

    fn start_entry(&mut self, head: &PartHead) -> Result<(), Disorder> {
        let entry_seq = head.entry_seq;
        if head.generation < self.generation {
            return Err(Disorder::EarlierGeneration { entry_seq });
        }
        if self.rule == Rule::Body {
            if entry_seq == self.first && entry_seq != 1 && !head.checkpoint {
                return Err(Disorder::NoCheckpointFirst { entry_seq });
            }
            if entry_seq != self.first && head.checkpoint {
                return Err(Disorder::CheckpointInside { entry_seq });
            }
        }
        self.generation = head.generation;
        self.checkpoint = head.checkpoint;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
