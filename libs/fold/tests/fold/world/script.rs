//! What writers mean to write: every entry follows from the writer, the seq and the version.

use wakelog_proto::v1::{EntryPart, LifetimeBound};

use crate::records;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Honest,
    OtherLastPart,
    OtherFirstPart,
    OtherFlag,
    Longer,
    Shorter,
    /// The honest entry, but its last part says another part count.
    WrongCount,
    /// The honest entry, but its last part says another entry digest.
    WrongDigest,
}

impl Version {
    /// True if the last part contradicts its own entry, so that it may never be taken.
    pub(crate) fn is_contradiction(self) -> bool {
        matches!(self, Self::WrongCount | Self::WrongDigest)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) checkpoint: bool,
    pub(crate) bodies: Vec<Vec<u8>>,
}

pub(crate) fn entry(nonce: u8, seq: u64, version: Version) -> Entry {
    let roll = (u64::from(nonce) << 32 ^ seq).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    let part_count = [3, 2, 4, 6, 1, 1, 1, 1][(roll % 8) as usize];
    let body = |part: usize| format!("writer {nonce} entry {seq} part {part}\n").into_bytes();
    let mut entry = Entry {
        checkpoint: roll.is_multiple_of(5),
        bodies: (0..part_count).map(body).collect(),
    };
    match version {
        Version::Honest | Version::WrongCount | Version::WrongDigest => {}
        Version::OtherLastPart => entry.bodies[part_count - 1].push(b'!'),
        Version::OtherFirstPart => entry.bodies[0].push(b'?'),
        Version::OtherFlag => entry.checkpoint = !entry.checkpoint,
        Version::Longer => entry.bodies.push(b"more".to_vec()),
        Version::Shorter if part_count > 1 => drop(entry.bodies.pop()),
        Version::Shorter => entry.bodies[0].truncate(3),
    }
    entry
}

pub(crate) fn parts(lifetime: &LifetimeBound, nonce: u8, seq: u64, version: Version) -> Vec<EntryPart> {
    let Entry { checkpoint, bodies } = entry(nonce, seq, version);
    let mut parts = records::entry(lifetime, nonce, seq, checkpoint, &bodies);
    let last = parts.last_mut().expect("an entry has parts");
    match version {
        Version::WrongCount => last.part_count += 1,
        Version::WrongDigest => last.entry_digest = vec![0xee; 16].into(),
        _ => {}
    }
    parts
}
