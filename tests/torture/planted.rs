//! Bugs that are planted in the store of a small, finished run, one by one, each in a copy of its own: the same checker must call
//! each what it is, and nothing else.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, PgConnection};
use wakelog_client::{Connection, Writer, new_nonce};
use wakelog_proto::v1::{AckLevel, FoldState, RefusalReason};

use crate::campaign::engines;
use crate::checker::{Finding, Observed, Sent, SentEntry, SentLifetime, Verdict, check};
use crate::observe::{Observer, connect, holdings, run, servers_of};
use crate::support::native::{Engines, Kind, NativeStack};
use crate::support::session::{attach, open, writer};
use crate::support::within;

/// A bug that nobody has made yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plant {
    /// None: the checker must be content.
    Nothing,
    /// A part's row is gone.
    Drop,
    /// Two entries have changed places.
    Swap,
    /// The last entry is there twice, and the state counts it.
    Double,
    /// An entry has other bytes, and their digest.
    Alter,
    /// An entry of a superseded writer was applied after the bind.
    IgnoredBind,
    /// Entries were pruned, and there is no object: neither it nor its row in the manifest.
    PruneBeforePut,
    /// The same with entries that were never archived.
    PruneOfHotEntries,
    /// The manifest has an object that is gone.
    LostObject,
}

const PLANTS: [Plant; 9] = [
    Plant::Nothing,
    Plant::Drop,
    Plant::Swap,
    Plant::Double,
    Plant::Alter,
    Plant::IgnoredBind,
    Plant::PruneBeforePut,
    Plant::PruneOfHotEntries,
    Plant::LostObject,
];

/// Entries of the session that is only written.
const PLAIN: u64 = 12;

/// How a row says that its body is the plain bytes.
const PLAIN_ENCODING: i16 = 1;

/// How long the services of a copy may take to say something: what is gone stays gone.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The sessions of the run.
struct Cast {
    /// Twelve deltas after a checkpoint, all in the hot tail.
    plain: Sent,
    /// Its first writer was superseded and sent two entries more.
    rival: Sent,
    /// Ten entries that a checkpoint has superseded, which the archive has.
    archived: Sent,
}

/// What the checker and the product's own checks say of a copy.
struct Said {
    verdicts: Vec<(String, Verdict)>,
    verify: Result<serde_json::Value, String>,
    segments: Result<serde_json::Value, String>,
}

/// Every planted bug is found and called what it is.
pub async fn every_planted_bug_is_found() {
    let engines = engines(1).await;
    let mut stack = Box::pin(NativeStack::prepare_on(engines.clone())).await;
    stack.up().await;
    let cast = Cast::play(&mut stack).await;
    let ended = stack.stop_all();
    assert!(
        ended.success(),
        "a drained stop ends with {ended}\n{}",
        stack.log()
    );
    let original = stack.topic().to_owned();
    for (number, plant) in PLANTS.into_iter().enumerate() {
        let copy = format!("{original}_{number}");
        copy_database(&engines, &original, &copy).await;
        let url = engines.postgres.url(&copy);
        let away = plant.put(&stack, &url, &cast).await;
        let said = observe(&mut stack, &url, &cast).await;
        for (from, to) in &away {
            std::fs::rename(to, from).expect("the object is back");
        }
        let found: Vec<&Finding> = said
            .verdicts
            .iter()
            .flat_map(|(_, verdict)| &verdict.findings)
            .collect();
        eprintln!("planted {plant:?}: {found:?}");
        plant.must_be_found(&cast, &said);
    }
}

async fn copy_database(engines: &Engines, original: &str, copy: &str) {
    let ended = engines.postgres.terminate_connections(original).await;
    ended.expect("nobody is connected to what is copied");
    let mut admin = connect(&engines.postgres.url("postgres")).await;
    let create = format!("CREATE DATABASE {copy} TEMPLATE {original}");
    execute(&mut admin, &create).await;
}

/// Services on a copy, and everything that they and the tables say.
async fn observe(stack: &mut NativeStack, url: &str, cast: &Cast) -> Said {
    stack.set("WAKELOG_DATABASE_URL", url);
    for kind in [Kind::Persist, Kind::Reconstruct] {
        stack.spawn(kind, 0);
    }
    for kind in [Kind::Persist, Kind::Reconstruct] {
        stack.wait_ready(kind, 0).await;
    }
    let mut servers = servers_of(stack);
    servers.sessions.truncate(1);
    let mut observer = Observer::of(stack, &servers, ANSWER_WITHIN);
    let mut observed = Vec::new();
    for sent in cast.all() {
        let exported = observer.export(&sent.session).await;
        let history = observer.history(stack.command(&[]), &sent.session);
        observed.push(Observed {
            history,
            bodies: vec![("export", exported)],
            holdings: Default::default(),
        });
    }
    let ended = stack.stop_all();
    assert!(
        ended.success(),
        "a drained stop ends with {ended}\n{}",
        stack.log()
    );
    let mut database = connect(url).await;
    let mut verdicts = Vec::new();
    for (sent, mut observed) in cast.all().into_iter().zip(observed) {
        let held = holdings(&mut database, &sent.session).await;
        observed.holdings = held.expect("what the tables have");
        verdicts.push((sent.session.clone(), check(sent, &observed)));
    }
    Said {
        verdicts,
        verify: run(stack.command(&["verify", "--json"])),
        segments: run(stack.command(&["segments", "verify", "--json"])),
    }
}

impl Cast {
    async fn play(stack: &mut NativeStack) -> Self {
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

    fn all(&self) -> [&Sent; 3] {
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

type Moved = Vec<(std::path::PathBuf, std::path::PathBuf)>;

impl Plant {
    /// Plants it in a copy. Returns what was moved out of the bucket, and where it is.
    async fn put(self, stack: &NativeStack, url: &str, cast: &Cast) -> Moved {
        let mut database = connect(url).await;
        let session = &cast.plain.session;
        let plain = format!("agent_session_transcript_entries WHERE session_id = '{session}'");
        match self {
            Self::Nothing => {}
            Self::Drop => execute(&mut database, &format!("DELETE FROM {plain} AND entry_seq = 6")).await,
            Self::Swap => {
                let swap = format!(
                    "UPDATE agent_session_transcript_entries AS one
                     SET encoding = other.encoding, plain_length = other.plain_length,
                         part_digest = other.part_digest, body = other.body
                     FROM agent_session_transcript_entries AS other
                     WHERE one.session_id = '{session}' AND other.session_id = '{session}'
                       AND one.entry_seq IN (5, 6) AND other.entry_seq = 11 - one.entry_seq"
                );
                execute(&mut database, &swap).await;
            }
            Self::Double => {
                let last = &cast.plain.lifetimes[0].entries[PLAIN as usize - 1];
                append(&mut database, &cast.plain.session, last).await;
            }
            Self::Alter => {
                let other = hex::encode(b"{\"entry\":0}\n");
                let digest = hex::encode(&Sha256::digest(b"{\"entry\":0}\n")[..16]);
                let alter = format!(
                    "encoding = {PLAIN_ENCODING}, plain_length = 12, body = '\\x{other}', part_digest = '\\x{digest}'"
                );
                let alter = format!(
                    "UPDATE agent_session_transcript_entries SET {alter} WHERE session_id = '{session}' AND entry_seq = 6"
                );
                execute(&mut database, &alter).await;
            }
            Self::IgnoredBind => {
                let late = &cast.rival.lifetimes[0].entries[4];
                append(&mut database, &cast.rival.session, late).await;
            }
            Self::PruneBeforePut => {
                let moved = move_objects(stack, &mut database, &cast.archived.session).await;
                let session = &cast.archived.session;
                let forget =
                    format!("DELETE FROM agent_session_archive_segments WHERE session_id = '{session}'");
                execute(&mut database, &forget).await;
                return moved;
            }
            Self::PruneOfHotEntries => {
                execute(&mut database, &format!("DELETE FROM {plain} AND entry_seq < 4")).await
            }
            Self::LostObject => return move_objects(stack, &mut database, &cast.archived.session).await,
        }
        Vec::new()
    }

    fn must_be_found(self, cast: &Cast, said: &Said) {
        let (subject, expected) = match self {
            Self::Nothing => (&cast.plain, None),
            Self::Drop => (&cast.plain, Some(Finding::Lost { entry: 6 })),
            Self::Swap => (&cast.plain, Some(Finding::OutOfOrder { entry: 6 })),
            Self::Double => (&cast.plain, Some(Finding::Doubled { entry: PLAIN + 1 })),
            Self::Alter => (&cast.plain, Some(Finding::Altered { entry: 6 })),
            Self::IgnoredBind => (&cast.rival, Some(Finding::BindIgnored { entry: 8 })),
            Self::PruneBeforePut => (
                &cast.archived,
                Some(Finding::PrunedWithoutSegment { first: 1, last: 10 }),
            ),
            Self::PruneOfHotEntries => (
                &cast.plain,
                Some(Finding::PrunedWithoutSegment { first: 1, last: 3 }),
            ),
            // Its rows say that all is well: the reader, and `segments verify`, find out.
            Self::LostObject => (&cast.archived, None),
        };
        for (session, verdict) in &said.verdicts {
            // What can't be read follows from what is missing.
            let named: Vec<&Finding> = verdict
                .findings
                .iter()
                .filter(|finding| !matches!(finding, Finding::Unreadable { .. }))
                .collect();
            let expected: Vec<&Finding> = match *session == subject.session {
                true => expected.iter().collect(),
                false => Vec::new(),
            };
            assert_eq!(named, expected, "{self:?}, {session}");
        }
        let is_unreadable = said.verdicts.iter().any(|(_, verdict)| {
            let mut findings = verdict.findings.iter();
            findings.any(|finding| matches!(finding, Finding::Unreadable { what: "history", .. }))
        });
        let loses = matches!(
            self,
            Self::Drop | Self::PruneBeforePut | Self::PruneOfHotEntries | Self::LostObject
        );
        assert_eq!(
            is_unreadable, loses,
            "{self:?}: what is lost is an error, never a shorter history"
        );
        let is_clean = self == Self::Nothing;
        assert_eq!(
            said.verify.is_ok(),
            is_clean,
            "{self:?}: wakelog verify says {:?}",
            said.verify
        );
        if matches!(self, Self::Nothing | Self::LostObject) {
            assert_eq!(said.segments.is_ok(), is_clean, "{self:?}: {:?}", said.segments);
        }
    }
}

/// Adds an entry at the end of a session, as if the fold had applied it.
async fn append(database: &mut PgConnection, session: &str, entry: &SentEntry) {
    let (last, generation, state): (i64, i64, Vec<u8>) = sqlx::query_as(
        "SELECT last_entry_seq, generation, fold_state FROM agent_sessions WHERE session_id = $1::text::uuid",
    )
    .bind(session)
    .fetch_one(&mut *database)
    .await
    .expect("the session");
    let mut state = FoldState::decode(state.as_slice()).expect("a state");
    state.last_entry_seq += 1;
    if let Some(lifetime) = &mut state.lifetime {
        lifetime.last_seq += 1;
    }
    let (seq, length) = (last + 1, entry.bytes.len());
    let digest = hex::encode(&Sha256::digest(&entry.bytes)[..16]);
    let (body, state) = (hex::encode(&entry.bytes), hex::encode(state.encode_to_vec()));
    let statements = format!(
        "INSERT INTO agent_session_transcript_entries
         VALUES ('{session}', {seq}, 0, true, false, {generation}, {PLAIN_ENCODING}, {length}, '\\x{digest}', '\\x{body}');
         UPDATE agent_sessions SET last_entry_seq = {seq}, fold_state = '\\x{state}' WHERE session_id = '{session}';
         UPDATE session_lifetimes SET applied_seq = applied_seq + 1
         WHERE session_id = '{session}' AND generation = {generation}"
    );
    execute(database, &statements).await;
}

async fn move_objects(stack: &NativeStack, database: &mut PgConnection, session: &str) -> Moved {
    let keys: Vec<String> = sqlx::query_scalar(
        "SELECT object_key FROM agent_session_archive_segments WHERE session_id = $1::text::uuid",
    )
    .bind(session)
    .fetch_all(database)
    .await
    .expect("the manifest");
    assert!(!keys.is_empty(), "the session has segments");
    let move_away = |(number, key): (usize, String)| {
        let from = stack.object_path(&key);
        let to = stack.folder().join(format!("away-{number}"));
        std::fs::rename(&from, &to)
            .or_else(|_| copy_and_remove(&from, &to))
            .expect("the object is moved");
        (from, to)
    };
    keys.into_iter().enumerate().map(move_away).collect()
}

fn copy_and_remove(from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
    std::fs::copy(from, to)?;
    std::fs::remove_file(from)
}

async fn execute(database: &mut PgConnection, statements: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(database)
        .await;
    done.unwrap_or_else(|error| panic!("{statements}: {error}"));
}
