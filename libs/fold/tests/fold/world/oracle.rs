//! What must be, from first principles. Shares no code with the fold and keeps no window, no digests and no states:
//! only plain lists of what was applied and what was acknowledged, as the bytes that the writers meant.

mod checks;

use std::collections::BTreeSet;

use wakelog_fold::{Change, Outcome, Reason, SessionState};
use wakelog_proto::v1::LifetimeBound;

use super::script::{self, Entry, Version};
use super::store::Store;

/// What was sent, as its sender meant it.
#[derive(Debug, Clone)]
pub(crate) enum Sent {
    Open {
        equal: bool,
    },
    Bind(LifetimeBound),
    End(LifetimeBound),
    Access {
        account: &'static str,
        grant: bool,
    },
    Part {
        lifetime: LifetimeBound,
        nonce: u8,
        seq: u64,
        part: usize,
        version: Version,
    },
    Erase,
    Misrouted,
    Malformed,
}

#[derive(Debug)]
struct Lifetime {
    bound: LifetimeBound,
    base: usize,
    nonce: Option<u8>,
    ended: bool,
    failed: bool,
    /// Somebody who may write here has sent other versions, so that a conflict is possible.
    lied_to: bool,
    complete: u64,
    open_parts: usize,
}

/// An entry of the session, and who wrote it.
#[derive(Debug)]
struct Complete {
    generation: u64,
    nonce: u8,
    seq: u64,
    entry: Entry,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    opened: Option<bool>,
    erased: bool,
    access: BTreeSet<&'static str>,
    /// Those whose bind was applied; generation n is the n-th.
    lifetimes: Vec<Lifetime>,
    /// Those that were applied; entry_seq n is the n-th.
    entries: Vec<Complete>,
    /// (entry_seq, what was acknowledged).
    acknowledged: Vec<(usize, Entry)>,
}

/// Where a part is, seen from what was applied.
enum Place {
    Before,
    Next,
    After,
}

impl Oracle {
    pub(crate) fn generation(&self) -> u64 {
        self.lifetimes.len() as u64
    }

    /// Notes what is about to be folded.
    pub(crate) fn before(&mut self, sent: &Sent) {
        if let Sent::Part {
            lifetime,
            nonce,
            version,
            ..
        } = sent
            && *version != Version::Honest
            && let Some(current) = self.lifetimes.last_mut()
            && current.bound == *lifetime
            && current.nonce.is_none_or(|holder| holder == *nonce)
        {
            current.lied_to = true;
        }
    }

    /// Checks what came of it, and takes note.
    pub(crate) fn after(&mut self, sent: &Sent, outcome: &Outcome, state: &SessionState, store: &Store) {
        let Sent::Part {
            lifetime,
            nonce,
            seq,
            part,
            version,
        } = sent
        else {
            assert_eq!(*outcome, self.expect(sent), "{sent:?}");
            self.note(sent, outcome);
            self.check_accessors(state);
            if matches!(outcome, Outcome::Applied(Change::LifetimeBound { .. })) {
                self.check_resume_body(state, store);
            }
            return;
        };
        match self.refusal(lifetime, *nonce) {
            Some(refusal) => assert_eq!(*outcome, refusal, "{sent:?}"),
            None => self.after_part(*nonce, *seq, *part, *version, outcome, store),
        }
        self.check_accessors(state);
    }

    /// What was answered with success to the writer of `entry`.
    pub(crate) fn acknowledge(&mut self, nonce: u8, seq: u64, entry: Entry, outcome: &Outcome) {
        let current = self.lifetimes.last().expect("acknowledged without a lifetime");
        assert_eq!(
            current.nonce,
            Some(nonce),
            "acknowledged to a writer that does not hold the lifetime"
        );
        assert!(seq <= current.complete, "acknowledged before it was applied");
        if *outcome == (Outcome::Duplicate { stale: true }) {
            return;
        }
        let entry_seq = current.base + seq as usize;
        assert_eq!(
            self.entries[entry_seq - 1].entry,
            entry,
            "acknowledged something else than was applied"
        );
        self.acknowledged.push((entry_seq, entry));
    }

    /// The outcome of anything but a part.
    fn expect(&self, sent: &Sent) -> Outcome {
        let duplicate = Outcome::Duplicate { stale: false };
        if self.erased {
            return Outcome::ErasedSession;
        }
        match (sent, self.opened) {
            (Sent::Malformed, _) => {
                Outcome::Quarantined(Reason::Malformed(wakelog_fold::Malformed::SequenceOutOfRange {
                    lifetime_seq: 0,
                }))
            }
            (Sent::Open { .. }, None) => Outcome::Applied(Change::SessionOpened),
            (Sent::Open { equal }, Some(known)) if *equal == known => duplicate,
            (Sent::Open { .. }, Some(_)) => Outcome::Quarantined(Reason::SessionConflict),
            (_, None) => Outcome::Quarantined(Reason::Unbound),
            (Sent::Misrouted, _) => Outcome::Quarantined(Reason::WrongPartition),
            (Sent::Erase, _) => Outcome::Applied(Change::SessionErased),
            (Sent::Access { account, grant }, _) if self.access.contains(account) == *grant => duplicate,
            (Sent::Access { account, grant }, _) => {
                let role = i32::from(*grant).try_into().expect("a role");
                Outcome::Applied(Change::AccessChanged {
                    account: (*account).into(),
                    role,
                })
            }
            (Sent::Bind(bound), _) if self.is_current(bound) => duplicate,
            (Sent::Bind(bound), _) if bound.generation == self.generation() + 1 => {
                let open = self
                    .lifetimes
                    .last()
                    .is_some_and(|lifetime| lifetime.open_parts > 0);
                let discarded_entry_seq = open.then_some(self.entries.len() as u64 + 1);
                Outcome::Applied(Change::LifetimeBound { discarded_entry_seq })
            }
            (Sent::Bind(_), _) => Outcome::BindLost {
                generation: self.generation(),
            },
            (Sent::End(bound), _) => match self.lifetimes.last() {
                Some(lifetime) if lifetime.bound == *bound && !lifetime.ended && !lifetime.failed => {
                    Outcome::Applied(Change::LifetimeEnded)
                }
                _ => Outcome::EndIgnored,
            },
            (Sent::Part { .. }, _) => unreachable!("parts are judged by themselves"),
        }
    }

    fn note(&mut self, sent: &Sent, outcome: &Outcome) {
        if !matches!(outcome, Outcome::Applied(_)) {
            return;
        }
        match sent {
            Sent::Open { equal } => self.opened = Some(*equal),
            Sent::Access { account, grant: true } => drop(self.access.insert(account)),
            Sent::Access {
                account,
                grant: false,
            } => drop(self.access.remove(account)),
            Sent::Bind(bound) => self.lifetimes.push(Lifetime {
                bound: bound.clone(),
                base: self.entries.len(),
                nonce: None,
                ended: false,
                failed: false,
                lied_to: false,
                complete: 0,
                open_parts: 0,
            }),
            Sent::End(_) => self.lifetimes.last_mut().expect("ended").ended = true,
            Sent::Erase => {
                self.erased = true;
                self.access.clear();
                if let Some(lifetime) = self.lifetimes.last_mut() {
                    lifetime.open_parts = 0;
                }
            }
            Sent::Part { .. } | Sent::Misrouted | Sent::Malformed => unreachable!("never applied here"),
        }
    }

    /// One writer: why a part may not even be looked at.
    fn refusal(&self, lifetime: &LifetimeBound, nonce: u8) -> Option<Outcome> {
        if self.erased {
            return Some(Outcome::ErasedSession);
        }
        let reason = match self.lifetimes.last() {
            Some(current) if current.bound == *lifetime => match current.nonce {
                _ if current.failed => Reason::LifetimeFailed,
                Some(holder) if holder != nonce => Reason::SecondWriter,
                _ => return None,
            },
            _ if self.opened.is_some() && lifetime.generation < self.generation() => Reason::Fenced,
            _ => Reason::Unbound,
        };
        Some(Outcome::Quarantined(reason))
    }

    /// A part of the one who may write. Honest writers get exactly what the protocol promises.
    fn after_part(
        &mut self,
        nonce: u8,
        seq: u64,
        part: usize,
        version: Version,
        outcome: &Outcome,
        store: &Store,
    ) {
        let entry = script::entry(nonce, seq, version);
        let last = part + 1 == entry.bodies.len();
        let entry_seq = self.entries.len() as u64 + 1;
        let generation = self.generation();
        let current = self.lifetimes.last_mut().expect("a current lifetime");
        let (next_seq, next_part) = (current.complete + 1, current.open_parts);
        let place = match (seq, part) {
            place if place == (next_seq, next_part) => Place::Next,
            (seq, part) if seq < next_seq || seq == next_seq && part < next_part => Place::Before,
            _ => Place::After,
        };
        match (outcome, place) {
            (
                Outcome::Gap {
                    expected_seq,
                    expected_part,
                },
                Place::After,
            ) => {
                assert_eq!((*expected_seq, *expected_part as usize), (next_seq, next_part));
            }
            (Outcome::Duplicate { stale }, Place::Before) => {
                let too_old = seq + 256 < next_seq;
                assert_eq!(*stale, last && too_old, "entry {seq} of {}", current.complete);
                assert!(
                    !(last && version.is_contradiction()) || too_old,
                    "a contradiction was taken"
                );
            }
            (Outcome::Quarantined(Reason::Conflict(_)), Place::Before | Place::Next) => {
                assert!(current.lied_to, "an honest writer met a conflict");
                current.failed = true;
            }
            (Outcome::Applied(change), Place::Next) => {
                let stored = Change::PartStored {
                    entry_seq,
                    part: part as u32,
                    completes_entry: last,
                };
                assert_eq!(*change, stored);
                assert!(
                    !(last && version.is_contradiction()),
                    "a contradiction was applied"
                );
                current.nonce = Some(nonce);
                current.open_parts += 1;
                if last {
                    current.open_parts = 0;
                    current.complete += 1;
                    self.entries.push(Complete {
                        generation,
                        nonce,
                        seq,
                        entry,
                    });
                    self.check_entry(self.entries.len(), store);
                }
            }
            _ => panic!("entry {seq} part {part} of {nonce} ({version:?}) came to {outcome:?}"),
        }
    }

    fn is_current(&self, bound: &LifetimeBound) -> bool {
        self.lifetimes
            .last()
            .is_some_and(|lifetime| lifetime.bound == *bound)
    }
}
