//! A model of the hot tail: rows by (entry_seq, part), made from outcomes as the persister makes them. A key that is
//! written twice, or a delete that finds nothing, panics.

use std::collections::BTreeMap;

use bytes::Bytes;
use wakelog_fold::{Change, Outcome};
use wakelog_proto::v1::SessionRecord;
use wakelog_proto::v1::session_record::Record;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) generation: u64,
    pub(crate) nonce: Bytes,
    pub(crate) last: bool,
    pub(crate) checkpoint: bool,
    pub(crate) body: Bytes,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Store {
    rows: BTreeMap<(u64, u32), Row>,
}

impl Store {
    /// Writes what `outcome` says of `record`.
    pub(crate) fn take(&mut self, record: &SessionRecord, outcome: &Outcome) {
        let Outcome::Applied(change) = outcome else {
            return;
        };
        match (change, record.record.as_ref()) {
            (
                Change::PartStored {
                    entry_seq,
                    part,
                    completes_entry,
                },
                Some(Record::EntryPart(record)),
            ) => {
                assert_eq!((*part, *completes_entry), (record.part, record.last));
                let row = Row {
                    generation: record.generation,
                    nonce: record.writer_nonce.clone(),
                    last: record.last,
                    checkpoint: record.checkpoint,
                    body: record.body.clone(),
                };
                let before = self.rows.insert((*entry_seq, *part), row);
                assert_eq!(before, None, "row ({entry_seq}, {part}) was written twice");
            }
            (Change::LifetimeBound { discarded_entry_seq }, Some(Record::LifetimeBound(_))) => {
                if let Some(entry_seq) = discarded_entry_seq {
                    self.discard(*entry_seq);
                }
                let unfinished = self.rows.last_key_value().is_some_and(|(_, row)| !row.last);
                assert!(!unfinished, "a bind left unfinished parts");
            }
            (Change::SessionErased, Some(Record::SessionErased(_))) => self.rows.clear(),
            (Change::SessionOpened, Some(Record::SessionOpened(_)))
            | (Change::AccessChanged { .. }, Some(Record::AccessChanged(_)))
            | (Change::LifetimeEnded, Some(Record::LifetimeEnded(_))) => {}
            (change, record) => panic!("{record:?} came to {change:?}"),
        }
    }

    fn discard(&mut self, entry_seq: u64) {
        let keys: Vec<_> = self.entry(entry_seq).map(|(key, _)| *key).collect();
        assert!(!keys.is_empty(), "nothing to discard of entry {entry_seq}");
        for key in keys {
            let row = self.rows.remove(&key).expect("a key that was just read");
            assert!(!row.last, "a complete entry was discarded");
        }
    }

    pub(crate) fn rows(&self) -> &BTreeMap<(u64, u32), Row> {
        &self.rows
    }

    pub(crate) fn entry(&self, entry_seq: u64) -> impl Iterator<Item = (&(u64, u32), &Row)> {
        self.rows.range((entry_seq, 0)..=(entry_seq, u32::MAX))
    }

    /// The bytes of entries `first ..= last`, as a resume would read them.
    pub(crate) fn body(&self, first: u64, last: u64) -> Vec<u8> {
        let rows = self.rows.range((first, 0)..(last + 1, 0));
        rows.flat_map(|(_, row)| row.body.iter().copied()).collect()
    }
}
