//! The half of a stream that reads parts and publishes them as they arrive.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};
use tonic::{Status, Streaming};
use wakelog_model::EntryDigester;
use wakelog_proto::v1::{CommitConversationPartsRequest, TranscriptPart};

use super::{End, PartsStream};
use crate::admission::EntryRequest;
use crate::commit::Admission;
use crate::lane::{PartOrder, PublishFailure, ReadyPart};
use crate::publish::{EntryHead, PlainPart, digest, encode};
use crate::unary::{after_publish, before_publish};
use crate::validate::{Cursor, next_part};
use crate::{budget, metrics, refusals};

/// How often an entry is admitted anew when other calls of its lifetime come in between.
const MAX_ATTEMPTS: usize = 8;

const FIRST_BACKOFF: Duration = Duration::from_millis(5);
const LONGEST_BACKOFF: Duration = Duration::from_millis(250);

/// An entry of which some parts came and others are to come.
struct OpenEntry {
    digester: EntryDigester,
    bytes: u64,
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    /// Its parts are published, since this epoch.
    Publish { epoch: u64 },
    /// It is a repeat: its parts are only digested.
    Repeat,
}

impl PartsStream {
    /// Reads until the writer has no more, or until the service shuts down.
    pub(super) async fn read_parts(
        &self,
        inbound: &mut Streaming<CommitConversationPartsRequest>,
    ) -> Result<End, Status> {
        let mut cursor = Cursor::default();
        let mut open = None;
        loop {
            let between_entries = cursor == Cursor::BetweenEntries;
            let message = tokio::select! {
                biased;
                () = self.ingest.draining.cancelled(), if between_entries => return Ok(End::Draining),
                message = inbound.message() => message,
            };
            let Some(message) = message.map_err(refusals::inbound)? else {
                return match between_entries {
                    true => Ok(End::HalfClosed),
                    false => Err(crate::validate::malformed("the stream ended inside an entry")),
                };
            };
            let part = next_part(&mut cursor, message, self.ingest.options.max_entry_bytes)?;
            let last = part.last;
            let (seq, checkpoint) = (part.entry_seq, part.checkpoint);
            let taken = match open.take() {
                None => self.first_part(part).await?,
                Some(entry) => Some(self.later_part(entry, part).await?),
            };
            match taken {
                Some(entry) if last => self.complete(entry, seq, checkpoint).await?,
                still_open => open = still_open,
            }
        }
    }

    fn request(&self, seq: u64) -> EntryRequest {
        EntryRequest { seq, ..self.request }
    }

    fn head(&self, part: &TranscriptPart) -> EntryHead {
        EntryHead {
            identity: self.lane.identity,
            nonce: self.request.nonce,
            seq: part.entry_seq,
            checkpoint: part.checkpoint,
        }
    }

    /// Takes an entry's first part. `None`: the entry was this part, and the store has it.
    async fn first_part(&self, part: TranscriptPart) -> Result<Option<OpenEntry>, Status> {
        let request = self.request(part.entry_seq);
        let bytes = part.content.len() as u64;
        let mut encoded: Option<(Bytes, EntryDigester)> = None;
        for _ in 0..MAX_ATTEMPTS {
            if self.ingest.admit(&self.lane, request).await? == Admission::Repeat {
                let digester = digest(part.content.clone(), EntryDigester::default()).await?;
                if !part.last {
                    return Ok(Some(OpenEntry {
                        digester,
                        bytes,
                        way: Way::Repeat,
                    }));
                }
                if self
                    .ingest
                    .answer_repeat(&self.lane, request, part.checkpoint, &digester)
                    .await?
                {
                    self.confirm(part.entry_seq);
                    return Ok(None);
                }
                continue;
            }
            let (record, digester) = match encoded.take() {
                Some(encoded) => encoded,
                None => encode(self.head(&part), plain(&part), EntryDigester::default()).await?,
            };
            match self.publish(&part, record.clone(), 0).await? {
                Some(epoch) => {
                    return Ok(Some(OpenEntry {
                        digester,
                        bytes,
                        way: Way::Publish { epoch },
                    }));
                }
                None => encoded = Some((record, digester)),
            }
        }
        Err(refusals::unavailable(
            "other calls of this lifetime kept coming in between",
        ))
    }

    async fn later_part(&self, mut entry: OpenEntry, part: TranscriptPart) -> Result<OpenEntry, Status> {
        entry.bytes += part.content.len() as u64;
        match entry.way {
            Way::Repeat => entry.digester = digest(part.content, entry.digester).await?,
            Way::Publish { epoch } => {
                let (record, digester) = encode(self.head(&part), plain(&part), entry.digester).await?;
                entry.digester = digester;
                if self.publish(&part, record, epoch).await?.is_none() {
                    return Err(refusals::displaced(part.entry_seq));
                }
            }
        }
        Ok(entry)
    }

    /// The entry's last part was taken.
    async fn complete(&self, entry: OpenEntry, seq: u64, checkpoint: bool) -> Result<(), Status> {
        match entry.way {
            Way::Publish { epoch } => {
                if self.marks.borrow().epoch != epoch && !self.is_settled() {
                    return Err(refusals::send_again(seq));
                }
                metrics::entry_published("stream", entry.bytes);
                self.marks
                    .send_modify(|marks| (marks.published, marks.epoch) = (seq, epoch));
                after_publish()
            }
            Way::Repeat => {
                let request = self.request(seq);
                if !self
                    .ingest
                    .answer_repeat(&self.lane, request, checkpoint, &entry.digester)
                    .await?
                {
                    // Its parts are gone: the writer has to send them again.
                    return Err(refusals::send_again(seq));
                }
                self.confirm(seq);
                Ok(())
            }
        }
    }

    fn confirm(&self, seq: u64) {
        self.marks
            .send_modify(|marks| marks.confirmed = marks.confirmed.max(seq));
    }

    /// Publishes a part once there is room. Returns the epoch; `None`: the entry must be admitted anew.
    async fn publish(&self, part: &TranscriptPart, record: Bytes, epoch: u64) -> Result<Option<u64>, Status> {
        let options = &self.ingest.options;
        let bytes = part.content.len() as u64;
        if !self
            .lane
            .wait_for_room(part.part == 0, bytes, options.window_wait)
            .await
        {
            return Err(refusals::back_pressure(
                "too much of this lifetime is unacknowledged",
            ));
        }
        let order = PartOrder {
            owner: self.owner,
            request: self.request(part.entry_seq),
            part: part.part,
            last: part.last,
            bytes,
            asked: self.asked,
            epoch,
        };
        let give_up_at = Instant::now() + options.queue_full_wait;
        let mut backoff = FIRST_BACKOFF;
        loop {
            let Some(budget) = budget::take(&self.ingest.budget, bytes, options.window_wait).await else {
                return Err(refusals::back_pressure("too much is on its way to the log"));
            };
            before_publish()?;
            let ready = ReadyPart {
                record: record.clone(),
                bytes,
                budget,
            };
            match self.lane.publish_part(&self.ingest.producer, &order, ready) {
                Ok(epoch) => return Ok(Some(epoch)),
                Err(PublishFailure::AskAgain) => return Ok(None),
                Err(PublishFailure::Refused(status)) => return Err(status),
                Err(PublishFailure::QueueFull) if Instant::now() + backoff < give_up_at => {
                    sleep(backoff).await;
                    backoff = (backoff * 2).min(LONGEST_BACKOFF);
                }
                Err(PublishFailure::QueueFull) => {
                    return Err(refusals::back_pressure("the producer's queue is full"));
                }
            }
        }
    }
}

fn plain(part: &TranscriptPart) -> PlainPart {
    PlainPart {
        number: part.part,
        last: part.last,
        content: part.content.clone(),
    }
}
