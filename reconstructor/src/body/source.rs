//! Where the parts of entries come from: the hot tail, and segments of the archive.

use wakelog_archive::{ObjectStore, SegmentFetch, SegmentKey, SegmentPart};
use wakelog_model::SessionId;
use wakelog_store::{PartRow, SegmentRow, Store};

use super::Part;
use crate::Error;
use crate::sequence::PartHead;

/// Segments that one look at the manifest brings, at most. If there are more, it is looked at again.
const SEGMENTS: u32 = 1_000;

/// Where the parts of entries come from.
pub(crate) trait PartSource: Clone + Send + Sync + 'static {
    /// A segment that is being read.
    type Segment: OpenSegment;

    /// The parts that the hot tail has after `after`, up to entry `last`, in order; none only if there are none.
    fn page(
        &self,
        session: SessionId,
        after: Option<(u64, u32)>,
        last: u64,
        max_bytes: usize,
    ) -> impl Future<Output = Result<Vec<PartRow>, Error>> + Send;

    /// Segments that hold some of the entries, by their first entry; of whatever kind.
    fn segments(
        &self,
        session: SessionId,
        first: u64,
        last: u64,
    ) -> impl Future<Output = Result<Vec<SegmentRow>, Error>> + Send;

    /// Opens a segment for the entries `first` to `last`, which it holds.
    fn open(
        &self,
        segment: &SegmentRow,
        first: u64,
        last: u64,
    ) -> impl Future<Output = Result<Self::Segment, Error>> + Send;
}

/// A segment that is being read.
pub(crate) trait OpenSegment: Send + 'static {
    /// The next parts, about `max_bytes` of them and at least one; none once all were handed out.
    fn next_parts(&mut self, max_bytes: usize) -> impl Future<Output = Result<Vec<Part>, Error>> + Send;
}

/// The hot tail and, if there is one, the archive.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) store: Store,
    pub(crate) objects: Option<ObjectStore>,
}

impl PartSource for Stored {
    type Segment = SegmentFetch;

    async fn page(
        &self,
        session: SessionId,
        after: Option<(u64, u32)>,
        last: u64,
        max_bytes: usize,
    ) -> Result<Vec<PartRow>, Error> {
        Ok(self.store.parts_page(session, after, last, max_bytes).await?)
    }

    async fn segments(&self, session: SessionId, first: u64, last: u64) -> Result<Vec<SegmentRow>, Error> {
        // The manifest of an erased session stays until its objects are gone.
        let tails = self.store.hot_tails(&[session]).await?;
        if tails.iter().any(|tail| tail.erased) {
            return Err(Error::SessionNotFound);
        }
        let segments = self.store.segments_overlapping(session, first, last, SEGMENTS);
        Ok(segments.await?)
    }

    async fn open(&self, segment: &SegmentRow, first: u64, last: u64) -> Result<SegmentFetch, Error> {
        let objects = self.objects.as_ref().ok_or(Error::NoArchive { first, last })?;
        let key: SegmentKey = segment.key.parse()?;
        Ok(SegmentFetch::open(objects, key, segment.object_bytes, first, last).await?)
    }
}

impl OpenSegment for SegmentFetch {
    async fn next_parts(&mut self, max_bytes: usize) -> Result<Vec<Part>, Error> {
        let parts = SegmentFetch::next_parts(self, max_bytes).await?;
        Ok(parts.into_iter().map(Part::from).collect())
    }
}

impl From<SegmentPart> for Part {
    fn from(part: SegmentPart) -> Self {
        Self {
            head: PartHead {
                entry_seq: part.entry_seq,
                part: part.part,
                last: part.last,
                checkpoint: part.checkpoint,
                generation: part.generation,
                // At most 512 KiB.
                plain_length: part.bytes.len() as u32,
            },
            plain: part.bytes,
        }
    }
}
