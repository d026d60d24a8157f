//! A simulated world: writers that publish, lose acknowledgements, send again, lie and are superseded; one log; a
//! model of the store; and an oracle that watches.

mod action;
mod oracle;
mod script;
mod store;

use std::ops::Range;

use proptest::prelude::*;
use wakelog_fold::{Change, Context, Outcome, Reason, SessionState, fold};
use wakelog_proto::v1::{AccessRole, LifetimeBound, SessionErased, SessionRecord};

pub(crate) use action::Action;
use oracle::{Oracle, Sent};
pub(crate) use store::Store;

use crate::records::{HERE, Variant, access, bind, delta, end, opened, session};
use script::Version;

/// One record of the log, as the fold gets it.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    pub(crate) record: SessionRecord,
    pub(crate) context: Context,
}

/// What happens, in order.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Before the session is opened.
    early: Vec<Action>,
    actions: Vec<Action>,
    /// What happens after the session is erased, if it is.
    after_erasure: Option<Vec<Action>>,
}

/// Any plan of up to `length` actions.
pub(crate) fn plan(length: usize) -> impl Strategy<Value = Plan> {
    let actions = move |length| prop::collection::vec(action::any_action(), 0..=length);
    let after_erasure = prop_oneof![9 => Just(None), 1 => actions(20).prop_map(Some)];
    (actions(3), actions(length), after_erasure).prop_map(|(early, actions, after_erasure)| Plan {
        early,
        actions,
        after_erasure,
    })
}

/// Where a publishing attempt of a writer is.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    seq: u64,
    part: usize,
}

const START: Cursor = Cursor { seq: 1, part: 0 };

#[derive(Debug)]
struct Writer {
    nonce: u8,
    lifetime: LifetimeBound,
    /// Two attempts at a time: the old relay still drains while the writer sends through another one.
    cursors: [Cursor; 2],
    acked: u64,
}

#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) log: Vec<Logged>,
    pub(crate) outcomes: Vec<Outcome>,
    /// States as stored, each with the number of records that are folded into it.
    pub(crate) stored: Vec<(usize, Vec<u8>)>,
    pub(crate) state: SessionState,
    pub(crate) store: Store,
    oracle: Oracle,
    binds: Vec<LifetimeBound>,
    writers: Vec<Writer>,
}

impl World {
    /// Lets `plan` happen. Panics as soon as the oracle sees something that must not be.
    pub(crate) fn run(plan: &Plan) -> Self {
        let mut world = Self::default();
        world.act_all(&plan.early);
        world.act(&Action::Open { equal: true });
        world.act(&Action::Bind {
            ahead: 1,
            request: 0,
            attach: true,
        });
        world.act_all(&plan.actions);
        if let Some(actions) = &plan.after_erasure {
            world.oracle.check_all(&world.state, &world.store);
            world.publish(&SessionErased {}, Sent::Erase);
            world.act_all(actions);
        }
        world.oracle.check_all(&world.state, &world.store);
        world
    }

    fn act_all(&mut self, actions: &[Action]) {
        for action in actions {
            self.act(action);
        }
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Open { equal } => self.open(equal),
            Action::Bind {
                ahead,
                request,
                attach,
            } => self.bind(ahead, request, attach),
            Action::RepeatBind { pick } => {
                if let Some(lifetime) = newest(&self.binds, pick).cloned() {
                    self.publish(&lifetime, Sent::Bind(lifetime.clone()));
                }
            }
            Action::End { pick } => {
                if let Some(lifetime) = newest(&self.binds, pick).cloned() {
                    self.publish(&end(&lifetime), Sent::End(lifetime));
                }
            }
            Action::Attach { pick } => {
                if let Some(lifetime) = newest(&self.binds, pick).cloned() {
                    self.attach(lifetime);
                }
            }
            Action::Access { account, grant } => {
                let account = ["bob", "carol", "dave"][usize::from(account) % 3];
                let role = if grant {
                    AccessRole::Subscriber
                } else {
                    AccessRole::Unspecified
                };
                self.publish(&access(account, role), Sent::Access { account, grant });
            }
            Action::Restart => self.restart(),
            Action::Malformed => {
                self.publish(&delta(&bind(1, "request"), 0, 0, "seq 0"), Sent::Malformed);
            }
            Action::ByWriter { pick, action } => {
                let picked = self.writers.len().checked_sub(1 + usize::from(pick));
                if let Some(writer) = picked {
                    self.act_as_writer(writer, action);
                }
            }
        }
    }

    fn open(&mut self, equal: bool) {
        let mut record = opened();
        if !equal {
            record.subpath.push_str("/elsewhere");
        }
        self.publish(&record, Sent::Open { equal });
    }

    fn bind(&mut self, ahead: i8, request: u8, attach: bool) {
        let generation = self
            .oracle
            .generation()
            .saturating_add_signed(ahead.into())
            .max(1);
        let lifetime = bind(generation, &format!("request {request}"));
        self.binds.push(lifetime.clone());
        self.publish(&lifetime, Sent::Bind(lifetime.clone()));
        if attach {
            self.attach(lifetime);
        }
    }

    fn attach(&mut self, lifetime: LifetimeBound) {
        let nonce = u8::try_from(self.writers.len()).expect("few writers");
        self.writers.push(Writer {
            nonce,
            lifetime,
            cursors: [START; 2],
            acked: 0,
        });
    }

    /// The persister restarts: what it has is what was stored.
    fn restart(&mut self) {
        let bytes = self.state.encode();
        let loaded = SessionState::decode(&bytes).expect("what was stored can be read");
        assert_eq!(loaded, self.state);
        self.state = loaded;
        self.stored.push((self.log.len(), bytes));
    }

    fn act_as_writer(&mut self, writer: usize, action: action::ByWriter) {
        use action::ByWriter;
        let next_unacked = Cursor {
            seq: self.writers[writer].acked + 1,
            part: 0,
        };
        match action {
            ByWriter::Publish {
                attempt,
                parts,
                ack_lost,
            } => {
                for _ in 0..parts {
                    self.publish_at_cursor(writer, attempt.into(), ack_lost);
                }
            }
            ByWriter::Skip { attempt, whole_entry } => {
                let cursor = &mut self.writers[writer].cursors[usize::from(attempt)];
                if whole_entry {
                    *cursor = Cursor {
                        seq: cursor.seq + 1,
                        part: 0,
                    };
                } else {
                    cursor.part += 1;
                }
            }
            ByWriter::Rewind { attempt, back } => {
                let seq = next_unacked.seq.saturating_sub(back.into()).max(1);
                self.writers[writer].cursors[usize::from(attempt)] = Cursor { seq, part: 0 };
            }
            ByWriter::Commit { entries } => {
                self.writers[writer].cursors[0] = next_unacked;
                let until = next_unacked.seq + u64::from(entries);
                while self.writers[writer].cursors[0].seq < until {
                    if !self.publish_at_cursor(writer, 0, false) {
                        break;
                    }
                }
            }
            ByWriter::Lie {
                version,
                attempt,
                back,
                from_start,
                to_end,
            } => {
                let Cursor { seq, part } = match attempt {
                    0 => self.writers[writer].cursors[0],
                    _ => self.tip(),
                };
                let first = if from_start { 0 } else { part };
                let until = if to_end { usize::MAX } else { first + 1 };
                self.lie(
                    writer,
                    seq.saturating_sub(back.into()).max(1),
                    version,
                    first..until,
                );
            }
            ByWriter::Misroute => {
                let Writer {
                    nonce, ref lifetime, ..
                } = self.writers[writer];
                let part = script::parts(lifetime, nonce, next_unacked.seq, Version::Honest).remove(0);
                let elsewhere = Context {
                    partition: HERE.partition - 1,
                    ..HERE
                };
                self.publish_in(&part, elsewhere, Sent::Misrouted);
            }
        }
    }

    /// Publishes what the attempt comes to next; true if that is a success for the writer.
    fn publish_at_cursor(&mut self, writer: usize, attempt: usize, ack_lost: bool) -> bool {
        let Writer {
            nonce,
            ref lifetime,
            cursors,
            ..
        } = self.writers[writer];
        let lifetime = lifetime.clone();
        let Cursor { seq, part } = cursors[attempt];
        let parts = script::parts(&lifetime, nonce, seq, Version::Honest);
        let Some(record) = parts.get(part) else {
            self.writers[writer].cursors[attempt] = Cursor {
                seq: seq + 1,
                part: 0,
            };
            return true;
        };
        let sent = Sent::Part {
            lifetime,
            nonce,
            seq,
            part,
            version: Version::Honest,
        };
        let outcome = self.publish(record, sent);
        let writer = &mut self.writers[writer];
        writer.cursors[attempt] = match outcome {
            // Its producer told it, unless the answer was lost.
            Outcome::Gap { expected_seq, .. } if !ack_lost => Cursor {
                seq: expected_seq,
                part: 0,
            },
            _ if record.last => Cursor {
                seq: seq + 1,
                part: 0,
            },
            _ => Cursor { seq, part: part + 1 },
        };
        let success = is_success(&outcome);
        if success && record.last && !ack_lost {
            writer.acked = writer.acked.max(seq);
            let entry = script::entry(nonce, seq, Version::Honest);
            self.oracle.acknowledge(nonce, seq, entry, &outcome);
        }
        success
    }

    /// The part that comes next in the current lifetime.
    fn tip(&self) -> Cursor {
        self.state.lifetime().map_or(START, |lifetime| Cursor {
            seq: lifetime.last_seq() + 1,
            part: lifetime.open_parts() as usize,
        })
    }

    /// Publishes parts of another version of an entry under the writer's name.
    fn lie(&mut self, writer: usize, seq: u64, version: Version, range: Range<usize>) {
        let Writer {
            nonce, ref lifetime, ..
        } = self.writers[writer];
        let lifetime = lifetime.clone();
        for (part, record) in script::parts(&lifetime, nonce, seq, version).iter().enumerate() {
            if range.contains(&part) {
                let sent = Sent::Part {
                    lifetime: lifetime.clone(),
                    nonce,
                    seq,
                    part,
                    version,
                };
                let outcome = self.publish(record, sent);
                if is_success(&outcome) && record.last {
                    self.oracle
                        .acknowledge(nonce, seq, script::entry(nonce, seq, version), &outcome);
                }
            }
        }
    }

    fn publish(&mut self, record: &impl Variant, sent: Sent) -> Outcome {
        self.publish_in(record, HERE, sent)
    }

    fn publish_in(&mut self, record: &impl Variant, context: Context, sent: Sent) -> Outcome {
        let record = record.record();
        self.oracle.before(&sent);
        let before = self.state.clone();
        let outcome = fold(&mut self.state, session(), &record, &context);
        let may_change = matches!(
            outcome,
            Outcome::Applied(_) | Outcome::Quarantined(Reason::Conflict(_))
        );
        assert!(
            may_change || self.state == before,
            "{outcome:?} changed the state"
        );
        self.store.take(&record, &outcome);
        self.oracle.after(&sent, &outcome, &self.state, &self.store);
        self.log.push(Logged { record, context });
        self.outcomes.push(outcome.clone());
        outcome
    }
}

fn is_success(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Applied(Change::PartStored { .. }) | Outcome::Duplicate { .. }
    )
}

fn newest<T>(all: &[T], pick: u8) -> Option<&T> {
    all.iter().rev().nth(pick.into())
}
