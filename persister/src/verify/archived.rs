//! Entries that have left the hot tail: the manifest must say which object holds them, and, if the archive is at hand, that
//! object's index must say of them what the log says. That an object's bytes are what its index says is for
//! `segments verify` to find out.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use wakelog_archive::{ObjectStore, SegmentIndex, SegmentKey, fetch_index};
use wakelog_model::{Digest16, SessionId, entry_digest};
use wakelog_store::{SegmentKind, SegmentRow, Store};

use super::differences::Differences;
use super::refold::ExpectedPart;
use super::report::DifferenceKind;
use crate::Error;

/// Segments that are read of the manifest at a time.
const SEGMENTS: u32 = 1_000;

/// The parts of the log that the hot tail lacks.
pub(crate) type MissingParts = BTreeMap<(u64, u32), ExpectedPart>;

/// Where entries are that have left the hot tail.
#[derive(Clone, Copy)]
pub(crate) struct Archived<'a> {
    pub(crate) store: &'a Store,
    /// Absent: the manifest is taken at its word.
    pub(crate) objects: Option<&'a ObjectStore>,
}

impl Archived<'_> {
    /// Takes out of `missing` what was archived, and compares it. To be asked after the rows were read: a row leaves the hot
    /// tail only in the transaction that records where it is. Returns how many entries that were.
    pub(crate) async fn account_for(
        &self,
        session: SessionId,
        missing: &mut MissingParts,
        differences: &mut Differences,
    ) -> Result<u64, Error> {
        let mut entries = 0;
        let mut next = 0;
        while let Some(((first, _), _)) = missing.range((next, 0)..).next() {
            let first = *first;
            let segments = self
                .store
                .segments_overlapping(session, first, u64::MAX, SEGMENTS)
                .await?;
            let Some(end) = segments.iter().map(|segment| segment.max_entry_seq).max() else {
                break;
            };
            for segment in segments.iter().filter(|segment| is_pruning(segment.kind)) {
                let range = segment.min_entry_seq..=segment.max_entry_seq;
                let held = take_entries(missing, range);
                entries += held.len() as u64;
                if !held.is_empty() {
                    self.compare(session, segment, &held, differences).await?;
                }
            }
            next = end.saturating_add(1).max(first + 1);
        }
        Ok(entries)
    }

    async fn compare(
        &self,
        session: SessionId,
        segment: &SegmentRow,
        held: &BTreeMap<u64, Vec<ExpectedPart>>,
        differences: &mut Differences,
    ) -> Result<(), Error> {
        let Some(objects) = self.objects else {
            return Ok(());
        };
        let index = read_index(objects, segment).await;
        for (entry_seq, parts) in held {
            let expected = describe(parts);
            let found = match &index {
                Ok(index) => index.entry(*entry_seq).map_or_else(
                    || "absent".to_owned(),
                    |entry| {
                        describe_entry(
                            entry.digest,
                            entry.plain_length,
                            entry.checkpoint,
                            entry.generation,
                        )
                    },
                ),
                Err(error) => error.to_string(),
            };
            if expected != found {
                let kind = DifferenceKind::Archived {
                    entry_seq: *entry_seq,
                };
                differences.add(Some(session), kind, expected, found);
            }
        }
        Ok(())
    }
}

async fn read_index(
    objects: &ObjectStore,
    segment: &SegmentRow,
) -> Result<SegmentIndex, wakelog_archive::Error> {
    let key: SegmentKey = segment.key.parse()?;
    fetch_index(objects, key, segment.object_bytes).await
}

/// Whether recording the segment pruned its rows. A copy excuses no row that is missing.
fn is_pruning(kind: SegmentKind) -> bool {
    match kind {
        SegmentKind::Superseded | SegmentKind::SafetyValve => true,
        SegmentKind::SessionEnd | SegmentKind::Retention => false,
    }
}

/// Takes the complete entries of the range out of `missing`. What is not complete is never archived.
fn take_entries(missing: &mut MissingParts, range: RangeInclusive<u64>) -> BTreeMap<u64, Vec<ExpectedPart>> {
    let mut entries: BTreeMap<u64, Vec<ExpectedPart>> = BTreeMap::new();
    for ((entry_seq, _), part) in missing.range((*range.start(), 0)..=(*range.end(), u32::MAX)) {
        entries.entry(*entry_seq).or_default().push(*part);
    }
    entries.retain(|_, parts| parts.last().is_some_and(|part| part.last));
    missing.retain(|(entry_seq, _), _| !entries.contains_key(entry_seq));
    entries
}

fn describe(parts: &[ExpectedPart]) -> String {
    let digests: Option<Vec<Digest16>> = parts.iter().map(|part| part.part_digest).collect();
    let Some(digest) = digests.and_then(|digests| entry_digest(&digests)) else {
        return "no digest".to_owned();
    };
    let bytes = parts.iter().map(|part| u64::from(part.plain_length)).sum();
    let (checkpoint, generation) = parts
        .first()
        .map_or((false, 0), |part| (part.checkpoint, part.generation));
    describe_entry(digest, bytes, checkpoint, generation)
}

fn describe_entry(digest: Digest16, bytes: u64, checkpoint: bool, generation: u64) -> String {
    format!("digest {digest}, {bytes} bytes, checkpoint {checkpoint}, generation {generation}")
}

#[cfg(test)]
mod tests;
