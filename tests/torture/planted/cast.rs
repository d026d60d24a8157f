//! The small run whose store is planted with bugs: three sessions, each of a known shape.

use std::time::Duration;

use bytes::Bytes;
use sqlx::PgConnection;
use wakelog_client::{Connection, Writer, new_nonce};
use wakelog_proto::v1::{AckLevel, RefusalReason};

use crate::checker::{Sent, SentEntry, SentLifetime};
use crate::observe::{connect, holdings};
use crate::support::native::{Kind, NativeStack};
use crate::support::session::{attach, open, writer};
use crate::support::within;

/// Entries of the session that is only written.
pub(super) const PLAIN: u64 = 12;

/// The sessions of the run.
pub(super) struct Cast {
    /// Twelve deltas after a checkpoint, all in the hot tail.
    pub(super) plain: Sent,
    /// Its first writer was superseded and sent two entries more.
    pub(super) rival: Sent,
    /// Ten entries that a checkpoint has superseded, which the archive has.
    pub(super) archived: Sent,
}

impl Cast {
    pub(super) async fn play(stack: &mut NativeStack) -> Self {
        let connection = stack.connect().await;
        let mut archived = named(&connection, "archived").await;
        let mut first = lifetime(&connection, &mut archived, false).await;
        for number in 1..=10 {
            send(&mut first, &mut archived, 0, number, number == 1).await;
        }
        send(&mut first, &mut archived, 0, 11, true).await;
        send(&mut first, &mut archived, 0, 12, false).await;
        acked(&mut first, &mut archived, 0).await;
        let mut database = connect(&stack.database_url()).await;
        until_archived(&mut database, &archived.session).await;
        // What comes now stays in the hot tail.
        for number in 0..stack.count(Kind::Archive) {
            assert!(stack.stop(Kind::Archive, number).success(), "{}", stack.log());
        }
        let mut plain = named(&connection, "plain").await;
        let mut writer = lifetime(&connection, &mut plain, false).await;
        for number in 1..=PLAIN {
            send(&mut writer, &mut plain, 0, number, number == 1).await;
        }
        acked(&mut writer, &mut plain, 0).await;
        let mut rival = named(&connection, "rival").await;
        let mut superseded = lifetime(&connection, &mut rival, false).await;
        for number in 1..=4 {
            send(&mut superseded, &mut rival, 0, number, number == 1).await;
        }
        acked(&mut superseded, &mut rival, 0).await;
        let mut writer = lifetime(&connection, &mut rival, true).await;
        rival.lifetimes[0].fenced_at = Some(rival.lifetimes[0].entries.len());
        late(superseded, &mut rival).await;
        for number in 21..=23 {
            send(&mut writer, &mut rival, 1, number, false).await;
        }
        acked(&mut writer, &mut rival, 1).await;
        Self {
            plain,
            rival,
            archived,
        }
    }

    pub(super) fn all(&self) -> [&Sent; 3] {
        [&self.plain, &self.rival, &self.archived]
    }
}

async fn named(connection: &Connection, name: &str) -> Sent {
    Sent {
        session: open(connection, name).await,
        lifetimes: Vec::new(),
    }
}

async fn lifetime(connection: &Connection, sent: &mut Sent, take_over: bool) -> Writer {
    let nonce = new_nonce();
    let attached = attach(connection, &sent.session, nonce, Bytes::new(), take_over).await;
    let grant = attached.expect("a writer attaches");
    sent.lifetimes.push(SentLifetime::default());
    let opened = writer(connection, &grant, nonce, AckLevel::Store).await;
    opened.expect("the writer opens")
}

async fn send(writer: &mut Writer, sent: &mut Sent, lifetime: usize, number: u64, checkpoint: bool) {
    let entry = entry(number, checkpoint);
    sent.lifetimes[lifetime].entries.push(entry.clone());
    let appended = within("an append", writer.append(entry.bytes, checkpoint)).await;
    appended.expect("an append");
}

async fn acked(writer: &mut Writer, sent: &mut Sent, lifetime: usize) {
    let acked = within("a drain", writer.drain()).await.expect("a drain");
    sent.lifetimes[lifetime].acked = acked.entry_seq as usize;
}

/// What a superseded writer still sends: it must be refused.
async fn late(mut superseded: Writer, sent: &mut Sent) {
    for number in 5..=6 {
        let entry = entry(number, false);
        sent.lifetimes[0].entries.push(entry.clone());
        superseded.append(entry.bytes, false).await.ok();
    }
    let refused = within("a refusal", superseded.drain()).await;
    let refused = refused.expect_err("a superseded writer is refused");
    let reason = refused.refusal_reason();
    assert!(
        matches!(reason, None | Some(RefusalReason::Superseded)),
        "{refused}"
    );
}

/// Each has another length.
fn entry(number: u64, checkpoint: bool) -> SentEntry {
    let mut bytes = format!("{{\"entry\":{number}}}").into_bytes();
    bytes.resize(bytes.len() + number as usize, b'.');
    bytes.push(b'\n');
    SentEntry {
        bytes: bytes.into(),
        checkpoint,
    }
}

async fn until_archived(database: &mut PgConnection, session: &str) {
    let archived = async {
        loop {
            let held = holdings(database, session).await.expect("what the tables have");
            if !held.segments.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within("a segment", archived).await;
}
