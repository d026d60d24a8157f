//! The constants of the protocol. Changing one of these changes what a log means.

/// Plain bytes of every part of an entry but its last.
pub const PART_SIZE: usize = 512 * 1024;

/// The largest entry that can be configured, in plain bytes (1 GiB).
pub const MAX_ENTRY_BYTES: u64 = 1024 * 1024 * 1024;

/// Parts of the largest entry.
pub const MAX_PARTS: u32 = (MAX_ENTRY_BYTES / PART_SIZE as u64) as u32;

/// The largest entry that the unary commit takes, in plain bytes (4 MiB).
pub const MAX_UNARY_ENTRY_BYTES: usize = 4 * 1024 * 1024;

/// Complete entries of a lifetime whose hash the fold remembers, and so the entries of a lifetime that ingest lets
/// be unacknowledged at a time (DESIGN: the remembered window).
pub const REMEMBERED_ENTRIES: usize = 256;

/// Labels of a session.
pub const MAX_LABELS: usize = 32;

/// Bytes of a label's key.
pub const MAX_LABEL_KEY_BYTES: usize = 64;

/// Bytes of a label's value.
pub const MAX_LABEL_VALUE_BYTES: usize = 256;

/// Bytes of an account's name.
pub const MAX_ACCOUNT_BYTES: usize = 128;

/// Bytes of a request id.
pub const MAX_REQUEST_ID_BYTES: usize = 128;

/// Bytes of a sub-session's subpath.
pub const MAX_SUBPATH_BYTES: usize = 512;
