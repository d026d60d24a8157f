//! Rows as a persister would write them, and a persister's hold on a partition.

use std::collections::BTreeMap;

use bytes::Bytes;
use uuid::Uuid;
use wakelog_model::{LifetimeId, SessionId, WriterNonce, part_digest};
use wakelog_store::{BatchWrites, Error, LifetimeWrite, PartRow, QuarantinedRecord, SessionWrite, Store};

pub const TOPIC: &str = "wakelog.transcript";
pub const OWNER: &str = "alice";
pub const ACTIVE: i32 = 1;

pub fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

pub fn session_write(session: SessionId) -> SessionWrite {
    SessionWrite {
        session,
        partition: 0,
        owner: OWNER.to_owned(),
        labels: BTreeMap::new(),
        parent: None,
        subpath: String::new(),
        state: b"state".to_vec(),
        last_entry_seq: 0,
        last_checkpoint_seq: 0,
        generation: 0,
        lifetime_status: 0,
        erased: false,
        opened_at_us: None,
        updated_at_us: None,
    }
}

pub fn lifetime_write(session: SessionId, generation: u64) -> LifetimeWrite {
    let request_id = format!("request-{generation}");
    LifetimeWrite {
        session,
        generation,
        lifetime_id: LifetimeId::for_bind(session, &request_id, generation),
        request_id,
        base: 0,
        body_start: 1,
        nonce: None,
        applied_seq: 0,
        status: ACTIVE,
        bound_at_ms: None,
    }
}

pub fn nonce(byte: u8) -> WriterNonce {
    WriterNonce([byte; 16])
}

pub fn part(session: SessionId, entry_seq: u64, part: u32, body: &[u8]) -> PartRow {
    PartRow {
        session,
        entry_seq,
        part,
        last: true,
        checkpoint: false,
        generation: 1,
        encoding: 1,
        plain_length: body.len() as u32,
        part_digest: part_digest(body),
        body: Bytes::copy_from_slice(body),
    }
}

pub fn quarantined(offset: i64, key: &[u8], raw: &[u8]) -> QuarantinedRecord {
    QuarantinedRecord {
        topic: TOPIC.to_owned(),
        partition: 0,
        offset,
        record_key: key.to_vec(),
        reason: "malformed",
        detail: "a test".to_owned(),
        raw: Bytes::copy_from_slice(raw),
    }
}

/// A session with one bound lifetime and these entries of one part each, from 1 on.
pub fn session_with_entries(session: SessionId, bodies: &[&[u8]]) -> BatchWrites {
    let last_entry_seq = bodies.len() as u64;
    BatchWrites {
        sessions: vec![SessionWrite {
            last_entry_seq,
            generation: 1,
            lifetime_status: ACTIVE,
            ..session_write(session)
        }],
        lifetimes: vec![LifetimeWrite {
            applied_seq: last_entry_seq,
            ..lifetime_write(session, 1)
        }],
        parts: (1..)
            .zip(bodies)
            .map(|(entry_seq, body)| part(session, entry_seq, 0, body))
            .collect(),
        ..BatchWrites::default()
    }
}

/// A persister that owns partition 0 of [`TOPIC`]. Every batch moves the partition on by one offset.
pub struct Owner<'a> {
    pub store: &'a Store,
    pub epoch: i64,
    pub next_offset: i64,
}

impl<'a> Owner<'a> {
    pub async fn claim(store: &'a Store) -> Self {
        let claim = store.claim_partition(TOPIC, 0).await.unwrap();
        Self {
            store,
            epoch: claim.epoch,
            next_offset: claim.next_offset,
        }
    }

    /// The rebuild that has this epoch, as the owner.
    pub async fn claim_for_rebuild(store: &'a Store, epoch: i64) -> Self {
        let claim = store.claim_for_rebuild(TOPIC, 0, epoch).await.unwrap();
        Self {
            store,
            epoch: claim.epoch,
            next_offset: claim.next_offset,
        }
    }

    pub async fn try_write(&mut self, writes: &BatchWrites) -> Result<(), Error> {
        let mut batch = self
            .store
            .begin_batch(TOPIC, 0, self.epoch, self.next_offset)
            .await?;
        batch.write(writes).await?;
        batch.commit(self.next_offset + 1, 7).await?;
        self.next_offset += 1;
        Ok(())
    }

    pub async fn write(&mut self, writes: BatchWrites) {
        self.try_write(&writes).await.unwrap();
    }
}
