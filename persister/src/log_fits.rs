//! Whether a log is the one that was folded, asked from outside: for `wakelog doctor`. Decides as an owner does when it claims
//! the partition.

use wakelog_store::{Claim, Progress};
use wakelog_stream::LogReader;

use crate::Error;
use crate::admission::{Admission, Admitted};
use crate::start::{StartDecision, start_decision};
use crate::status::StopReason;

/// Why a persister would stop the partition, or will once it has waited for the log's end; `None` if it would go on.
pub async fn log_fits(progress: &Progress, reader: &LogReader) -> Result<Option<StopReason>, Error> {
    let watermarks = reader.watermarks(progress.partition).await?;
    let claim = Claim {
        epoch: progress.epoch,
        next_offset: progress.next_offset,
        last_record_crc: progress.last_record_crc,
    };
    let check = match start_decision(&claim, &watermarks) {
        StartDecision::Stop(reason) => return Ok(Some(reason)),
        StartDecision::AwaitEnd { .. } => {
            return Ok(Some(StopReason::BeyondEnd {
                next_offset: progress.next_offset,
                high: watermarks.high,
            }));
        }
        StartDecision::Start { check: None, .. } => return Ok(None),
        StartDecision::Start {
            check: Some(check), ..
        } => check,
    };
    let record = reader.record_at(progress.partition, check.offset).await?;
    if record.is_none() {
        let watermarks = reader.watermarks(progress.partition).await?;
        if watermarks.low > check.offset {
            // The log has dropped it since it was asked.
            return Ok(match start_decision(&claim, &watermarks) {
                StartDecision::Stop(reason) => Some(reason),
                StartDecision::Start { .. } | StartDecision::AwaitEnd { .. } => None,
            });
        }
    }
    let mut admission = Admission::new(progress.next_offset, Some(check));
    let found = record.as_slice();
    Ok(match admission.admit(found) {
        Admitted::Stop(reason) => Some(reason),
        Admitted::From(_) if admission.is_check_pending() => Some(StopReason::LogReplaced {
            offset: check.offset,
            expected: check.crc,
            found: None,
        }),
        Admitted::From(_) => None,
    })
}
