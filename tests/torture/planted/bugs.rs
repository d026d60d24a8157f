//! The bugs: each is put into a copy of the database, or into the bucket.

use std::path::{Path, PathBuf};

use prost::Message as _;
use sha2::{Digest as _, Sha256};
use sqlx::{AssertSqlSafe, PgConnection};
use wakelog_proto::v1::FoldState;

use super::cast::{Cast, PLAIN};
use crate::checker::SentEntry;
use crate::observe::connect;
use crate::support::native::NativeStack;

/// A bug that nobody has made yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plant {
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

pub(super) const PLANTS: [Plant; 9] = [
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

/// How a row says that its body is the plain bytes.
const PLAIN_ENCODING: i16 = 1;

/// What was moved out of the bucket, and where it is.
pub(super) type Moved = Vec<(PathBuf, PathBuf)>;

impl Plant {
    /// Plants it in a copy. Returns what was moved out of the bucket, and where it is.
    pub(super) async fn put(self, stack: &NativeStack, url: &str, cast: &Cast) -> Moved {
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

fn copy_and_remove(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::copy(from, to)?;
    std::fs::remove_file(from)
}

pub(super) async fn execute(database: &mut PgConnection, statements: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(database)
        .await;
    done.unwrap_or_else(|error| panic!("{statements}: {error}"));
}
