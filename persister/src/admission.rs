//! Which of the records that the log hands out are folded next: none twice, none skipped unseen. Pure.

use wakelog_stream::Record;

use crate::start::RecordCheck;
use crate::status::StopReason;

/// Where a partition stands between batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Admission {
    next_offset: i64,
    check: Option<RecordCheck>,
}

/// What the log handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// The records from this index on are next.
    From(usize),
    /// The log is not the one that was folded, or not whole.
    Stop(StopReason),
}

impl Admission {
    pub(crate) fn new(next_offset: i64, check: Option<RecordCheck>) -> Self {
        Self { next_offset, check }
    }

    /// Whether the record before it has still to be seen.
    pub(crate) fn is_check_pending(&self) -> bool {
        self.check.is_some()
    }

    /// Looks at what the log handed out, in order.
    pub(crate) fn admit(&mut self, records: &[Record]) -> Admitted {
        let first = match self.check {
            None => records
                .iter()
                .position(|record| record.offset >= self.next_offset),
            Some(check) => match self.see_check(check, records) {
                Ok(first) => first,
                Err(reason) => return Admitted::Stop(reason),
            },
        };
        let Some(first) = first else {
            return Admitted::From(records.len());
        };
        for (expected, record) in (self.next_offset..).zip(&records[first..]) {
            if record.offset != expected {
                let detail = format!(
                    "the log handed out {} where {expected} had to come",
                    record.offset
                );
                return Admitted::Stop(StopReason::Unreadable {
                    next_offset: expected,
                    detail,
                });
            }
        }
        Admitted::From(first)
    }

    /// Goes on behind what was folded.
    pub(crate) fn advance(&mut self, next_offset: i64) {
        self.next_offset = next_offset;
    }

    /// The index of the first record to fold, once the check record was seen; `None` if it is not among these or is the
    /// last of them.
    fn see_check(&mut self, check: RecordCheck, records: &[Record]) -> Result<Option<usize>, StopReason> {
        let Some(index) = records.iter().position(|record| record.offset >= check.offset) else {
            return Ok(None);
        };
        let record = &records[index];
        let found = (record.offset == check.offset).then(|| record.crc());
        if found != Some(check.crc) {
            return Err(StopReason::LogReplaced {
                offset: check.offset,
                expected: check.crc,
                found,
            });
        }
        self.check = None;
        Ok((index + 1 < records.len()).then_some(index + 1))
    }
}

#[cfg(test)]
mod tests;
