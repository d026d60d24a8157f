//! What is kept until it is acknowledged, when it is sent again, and when that ends.

mod fresh_tokens;
mod held;
mod link;
mod options;

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use rand::RngCore as _;
use tokio::io::AsyncRead;
use tokio::time::Instant;
use tonic::Code;
use tracing::{debug, warn};
use wakelog_model::WriterNonce;
use wakelog_model::limits::MAX_ENTRY_BYTES;
use wakelog_proto::v1::sessions_service_client::SessionsServiceClient;
use wakelog_proto::v1::{
    AckLevel, EntriesAcked, LifetimeGrant, RenewLifetimeTokenRequest, StreamAccepted, WriterHello,
};

use crate::Error;
use crate::connection::{Bearer, Relays, innermost};
use crate::error::{Verdict, verdict};
use crate::retry::Backoff;
use fresh_tokens::FreshTokens;
use held::{HeldEntry, Source};
use link::{Broken, Link};
pub use options::WriterOptions;

/// How far a writer's entries are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// Every entry of the lifetime up to this one is acknowledged; 0: none is.
    pub entry_seq: u64,
    /// What the last acknowledgement stands on.
    pub ack_level: AckLevel,
}

/// Draws a writer's nonce, for one attachment.
pub fn new_nonce() -> WriterNonce {
    let mut nonce = [0; 16];
    rand::rng().fill_bytes(&mut nonce);
    WriterNonce(nonce)
}

/// Writes the entries of one lifetime: many in flight, each kept until it is acknowledged, sent again with the same bytes
/// after a broken connection.
///
/// Dropping one of its futures loses nothing: an entry that was accepted goes on with the next call. A final refusal, or
/// the end of the tries, ends the writer; every later call says so.
pub struct Writer {
    relays: Relays,
    token: String,
    session_id: String,
    nonce: WriterNonce,
    options: WriterOptions,
    limits: StreamAccepted,
    held: VecDeque<HeldEntry>,
    next_entry_seq: u64,
    acked: Acked,
    link: Option<Link>,
    /// Where the next stream starts, if the server named it.
    send_from: Option<u64>,
    outage: Outage,
    ended: Option<String>,
}

/// The tries since the last progress.
struct Outage {
    since: Option<Instant>,
    backoff: Backoff,
    tokens: FreshTokens,
}

/// What a call waits for.
enum Until {
    /// There is room for an entry of this many kept bytes.
    Room(u64),
    /// Everything was handed to the transport.
    Sent,
    /// Everything is acknowledged.
    Acked,
}

impl Writer {
    /// Opens the stream of a lifetime. `grant` and `nonce` are those of the attachment; `relays` are
    /// [`Connection::relays`](crate::Connection::relays).
    pub async fn open(
        relays: Relays,
        grant: LifetimeGrant,
        nonce: WriterNonce,
        options: WriterOptions,
    ) -> Result<Self, Error> {
        let mut writer = Self {
            relays,
            token: grant.token,
            session_id: grant.session_id,
            nonce,
            limits: StreamAccepted {
                max_unacked_entries: options.max_unacked_entries as u32,
                max_unacked_bytes: options.max_unacked_bytes,
                max_entry_bytes: MAX_ENTRY_BYTES,
                applied_entry_seq: 0,
            },
            held: VecDeque::new(),
            next_entry_seq: grant.applied_entry_seq + 1,
            acked: Acked {
                entry_seq: grant.applied_entry_seq,
                ack_level: AckLevel::Store,
            },
            link: None,
            send_from: None,
            outage: Outage {
                since: None,
                backoff: Backoff::new(options.first_delay, options.longest_delay),
                tokens: FreshTokens::default(),
            },
            ended: None,
            options,
        };
        while writer.link.is_none() {
            writer.work().await?;
        }
        Ok(writer)
    }

    /// Appends an entry and hands it to the transport; returns its number within the lifetime. Waits while too much is
    /// unacknowledged.
    pub async fn append(&mut self, entry: Bytes, checkpoint: bool) -> Result<u64, Error> {
        if entry.is_empty() {
            return Err(Error::EmptyEntry);
        }
        let length = entry.len() as u64;
        if length > self.limits.max_entry_bytes {
            return Err(Error::TooLarge {
                length,
                limit: self.limits.max_entry_bytes,
            });
        }
        self.push(Source::Kept(entry), length, checkpoint).await
    }

    /// Appends an entry that is read from `source`, one part at a time, so that memory stays flat whatever its length.
    /// Nothing of it is kept: to send it again, `source` is opened again and must give the same bytes.
    pub async fn append_stream<R>(
        &mut self,
        source: impl Fn() -> io::Result<R> + Send + Sync + 'static,
        checkpoint: bool,
    ) -> Result<u64, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
    {
        let open = move || source().map(|reader| Box::new(reader) as Box<dyn AsyncRead + Send + Unpin>);
        self.push(Source::Reopened(Box::new(open)), 0, checkpoint).await
    }

    /// Waits until every entry is acknowledged.
    pub async fn drain(&mut self) -> Result<Acked, Error> {
        self.drive(Until::Acked).await?;
        Ok(self.acked)
    }

    /// How far the entries are acknowledged, as far as this writer has read the answers.
    pub fn acked(&self) -> Acked {
        self.acked
    }

    /// Entries that are not acknowledged.
    pub fn unacked_entries(&self) -> usize {
        self.held.len()
    }

    /// The largest entry that the server takes, in bytes.
    pub fn max_entry_bytes(&self) -> u64 {
        self.limits.max_entry_bytes
    }

    async fn push(&mut self, source: Source, kept_bytes: u64, checkpoint: bool) -> Result<u64, Error> {
        self.drive(Until::Room(kept_bytes)).await?;
        let entry_seq = self.next_entry_seq;
        self.next_entry_seq += 1;
        self.held.push_back(HeldEntry::new(entry_seq, checkpoint, source));
        self.drive(Until::Sent).await?;
        Ok(entry_seq)
    }

    async fn drive(&mut self, until: Until) -> Result<(), Error> {
        if let Some(reason) = &self.ended {
            return Err(Error::WriterEnded {
                reason: reason.clone(),
            });
        }
        while let Some(ready) = self.link.as_mut().and_then(Link::ready_ack) {
            let outcome = self.settle(ready).await;
            self.end_on_error(outcome)?;
        }
        while !self.is_reached(&until) {
            self.work().await?;
        }
        Ok(())
    }

    fn is_reached(&self, until: &Until) -> bool {
        match until {
            Until::Room(bytes) => {
                let kept: u64 = self.held.iter().map(HeldEntry::kept_bytes).sum();
                let most = self.options.max_unacked_bytes.min(self.limits.max_unacked_bytes);
                let entries = self
                    .options
                    .max_unacked_entries
                    .min(self.limits.max_unacked_entries as usize)
                    .max(1);
                self.held.len() < entries && (kept == 0 || kept + bytes <= most)
            }
            Until::Sent => {
                self.held.is_empty()
                    || self
                        .link
                        .as_ref()
                        .is_some_and(|link| link.next_entry_seq >= self.next_entry_seq)
            }
            Until::Acked => self.held.is_empty(),
        }
    }

    /// One step: connects, sends a part or takes an acknowledgement.
    async fn work(&mut self) -> Result<(), Error> {
        let outcome = match &mut self.link {
            None => self.connect().await,
            Some(link) => {
                let step = link.step(&mut self.held, self.options.silence).await;
                self.settle(step).await
            }
        };
        self.end_on_error(outcome)
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let hello = WriterHello {
            session_id: self.session_id.clone(),
            writer_nonce: Bytes::copy_from_slice(self.nonce.as_bytes()),
            ack_level: self.options.ack_level.into(),
        };
        let first = self
            .held
            .front()
            .map_or(self.next_entry_seq, |front| front.entry_seq);
        let start = self
            .send_from
            .take()
            .filter(|from| (first..self.next_entry_seq).contains(from));
        let bearer = Bearer::new(&self.token)?;
        let opened = Link::open(
            self.relays.current(),
            bearer,
            hello,
            start.unwrap_or(first),
            self.options.silence,
        )
        .await;
        match opened {
            Ok((link, accepted)) => {
                debug!(
                    unacked = self.held.len(),
                    applied = accepted.applied_entry_seq,
                    "stream accepted"
                );
                self.limits = accepted;
                self.link = Some(link);
                if self.held.is_empty() {
                    self.outage.over();
                }
                Ok(())
            }
            Err(broken) => self.recover(broken).await,
        }
    }

    async fn settle(&mut self, step: Result<Option<EntriesAcked>, Broken>) -> Result<(), Error> {
        match step {
            Ok(None) => Ok(()),
            Ok(Some(acked)) => self.take_ack(&acked),
            Err(broken) => self.recover(broken).await,
        }
    }

    fn take_ack(&mut self, acked: &EntriesAcked) -> Result<(), Error> {
        if acked.entry_seq >= self.next_entry_seq {
            let reason = format!("entry {} was acknowledged and never sent", acked.entry_seq);
            return Err(Error::Protocol(reason));
        }
        if acked.entry_seq <= self.acked.entry_seq {
            return Ok(());
        }
        self.acked = Acked {
            entry_seq: acked.entry_seq,
            ack_level: acked.ack_level(),
        };
        while self
            .held
            .front()
            .is_some_and(|front| front.entry_seq <= acked.entry_seq)
        {
            self.held.pop_front();
        }
        self.outage.over();
        Ok(())
    }

    /// Decides what a broken stream means, and waits before the next try if there is one.
    async fn recover(&mut self, broken: Broken) -> Result<(), Error> {
        self.link = None;
        let relay = self.relays.current_endpoint().to_owned();
        let (reason, delay) = match broken {
            Broken::Final(error) => return Err(error),
            Broken::Lost(reason) => {
                self.relays.fail_over();
                (reason, None)
            }
            Broken::Status(status) => match verdict(&status) {
                Verdict::Final => return Err(status.into()),
                Verdict::RenewToken => {
                    if self.outage.tokens.refused(self.relays.current_number()) {
                        let (relays, servers) = self.relays.counts();
                        if self.outage.tokens.are_refused_everywhere(relays, servers) {
                            return Err(status.into());
                        }
                        self.relays.fail_over();
                        self.relays.fail_over_sessions();
                    }
                    match self.renew_token().await {
                        Ok(()) => return Ok(()),
                        Err(renewal) => match verdict(&renewal) {
                            Verdict::Retry { delay } => {
                                self.relays.fail_over_sessions();
                                (renewal.message().to_owned(), delay)
                            }
                            _ => return Err(renewal.into()),
                        },
                    }
                }
                // What the server expects was acknowledged before: it is not this writer's to send again.
                Verdict::SendFrom(expected) if expected <= self.acked.entry_seq => return Err(status.into()),
                Verdict::SendFrom(expected) => {
                    self.send_from = Some(expected);
                    (status.message().to_owned(), None)
                }
                Verdict::Retry { delay } => {
                    // One that is only busy is no reason to go elsewhere: the next would have to ask the store first.
                    if status.code() != Code::ResourceExhausted {
                        self.relays.fail_over();
                    }
                    (reason_of(&status), delay)
                }
            },
        };
        let since = *self.outage.since.get_or_insert_with(Instant::now);
        let waited = since.elapsed();
        let delay = self.outage.backoff.next_delay().max(delay.unwrap_or_default());
        if waited + delay > self.options.give_up_after {
            return Err(Error::GaveUp {
                unacked_entries: self.held.len(),
                waited,
                relay,
                reason,
            });
        }
        warn!(
            unacked = self.held.len(),
            delay_ms = delay.as_millis() as u64,
            relay,
            reason,
            "stream broke, connecting again"
        );
        tokio::time::sleep(delay).await;
        Ok(())
    }

    async fn renew_token(&mut self) -> Result<(), tonic::Status> {
        let bearer =
            Bearer::new(&self.token).map_err(|_| tonic::Status::unauthenticated("unusable token"))?;
        let mut sessions = SessionsServiceClient::with_interceptor(self.relays.sessions(), bearer);
        let renewal = sessions.renew_lifetime_token(RenewLifetimeTokenRequest {});
        let response = tokio::time::timeout(self.options.silence, renewal)
            .await
            .map_err(|_| tonic::Status::unavailable("no answer to the renewal of the token"))??;
        let grant = response.into_inner().lifetime.unwrap_or_default();
        self.token = grant.token;
        self.outage.tokens.made(self.relays.server_number());
        debug!(
            expires_at_ms = grant.token_expires_at_ms,
            "lifetime token renewed"
        );
        Ok(())
    }

    fn end_on_error(&mut self, outcome: Result<(), Error>) -> Result<(), Error> {
        if let Err(error) = &outcome {
            self.link = None;
            self.ended = Some(error.to_string());
        }
        outcome
    }
}

/// What a status says, with what caused it: "connection refused" says more than "tcp connect error".
fn reason_of(status: &tonic::Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => format!("{}: {}", status.message(), innermost(source)),
        None => status.message().to_owned(),
    }
}

impl Outage {
    /// There was progress.
    fn over(&mut self) {
        self.since = None;
        self.tokens = FreshTokens::default();
        self.backoff.reset();
    }
}

#[cfg(test)]
mod tests;
