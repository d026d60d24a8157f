//! What an inspection says.

use wakelog_model::SessionId;

/// Findings that a report lists, at most. It counts all of them.
pub const MAX_LISTED: usize = 1_000;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InspectProgress {
    /// Segments of the manifest that were read.
    pub segments: u64,
    /// Objects that were listed.
    pub objects: u64,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InspectReport {
    /// Segments of the manifest that were read, good or bad.
    pub segments: u64,
    /// Their bytes, as the manifest says.
    pub object_bytes: u64,
    /// Objects of sessions that are there.
    pub objects: u64,
    /// Segments that are not there.
    pub missing: u64,
    /// Segments that are not what they should be.
    pub damaged: u64,
    /// Ranges of entries that are neither in a segment nor in the hot tail.
    pub holes: u64,
    /// Objects that nothing records. Those that were deleted or are kept are among them.
    pub orphans: u64,
    /// Orphans that were deleted.
    pub deleted: u64,
    /// Objects that an archiver has announced within the age that orphans are deleted at: it may still record them.
    pub staged: u64,
    /// Objects whose names are not ours. They are left alone.
    pub foreign: u64,
    /// The first findings, at most [`MAX_LISTED`].
    pub findings: Vec<Finding>,
}

impl InspectReport {
    /// Whether every segment of the manifest is there and is what it should be, and every entry in one or in the hot tail.
    /// Orphans do no harm.
    pub fn is_good(&self) -> bool {
        self.missing == 0 && self.damaged == 0 && self.holes == 0
    }

    pub(super) fn add(&mut self, finding: Finding) {
        match finding.what {
            What::Missing => self.missing += 1,
            What::Damaged => self.damaged += 1,
            What::Hole => self.holes += 1,
            What::Orphan => self.orphans += 1,
            What::Deleted => (self.orphans, self.deleted) = (self.orphans + 1, self.deleted + 1),
            What::Staged => self.staged += 1,
            What::Foreign => self.foreign += 1,
        }
        if self.findings.len() < MAX_LISTED {
            self.findings.push(finding);
        }
    }
}

/// An object that is not as it should be, or that nothing records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The object; for a hole what the session's objects begin with.
    pub key: String,
    /// Its session, if its name says one.
    pub session: Option<SessionId>,
    /// What is the matter.
    pub what: What,
    /// More about it, in words.
    pub detail: String,
}

/// What can be the matter with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The manifest has it, the object store does not.
    Missing,
    /// It is not what manifest, name or index say.
    Damaged,
    /// Entries of the session are nowhere.
    Hole,
    /// Nothing records it.
    Orphan,
    /// Nothing recorded it, and it was deleted.
    Deleted,
    /// An archiver has announced it not long ago.
    Staged,
    /// Its name is not one of ours.
    Foreign,
}

impl What {
    /// A stable snake_case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Damaged => "damaged",
            Self::Hole => "hole",
            Self::Orphan => "orphan",
            Self::Deleted => "deleted",
            Self::Staged => "staged",
            Self::Foreign => "foreign",
        }
    }
}
