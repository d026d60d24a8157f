//! Which segments fill a hole. Pure.

use wakelog_store::SegmentRow;

/// Some entries of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) segment: SegmentRow,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// Pieces that follow each other from entry `first` on, up to `last` or as far as the segments reach without a hole. At each
/// entry the segment that reaches farthest is taken, so the pieces are as few as can be. Segments of all kinds count, and
/// may overlap: their bytes of an entry are the same.
pub(crate) fn pieces(segments: &[SegmentRow], first: u64, last: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut next = first;
    while next <= last {
        let holds_next =
            |segment: &&SegmentRow| (segment.min_entry_seq..=segment.max_entry_seq).contains(&next);
        let farthest = segments
            .iter()
            .filter(holds_next)
            .max_by_key(|segment| segment.max_entry_seq);
        let Some(segment) = farthest else {
            break;
        };
        let end = segment.max_entry_seq.min(last);
        pieces.push(Piece {
            segment: segment.clone(),
            first: next,
            last: end,
        });
        next = end + 1;
    }
    pieces
}

#[cfg(test)]
mod tests;
