//! Session files that a real agent SDK wrote, out of the fixtures of this repository (`tests/fixtures/omp`). They are small:
//! what a session has before it has grown.

use bytes::Bytes;

/// The files, three versions of the SDK with four sessions each.
const FILES: [&[u8]; 12] = [
    include_bytes!("../../tests/fixtures/omp/omp-17.2.15/burst-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-17.2.15/compaction-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-17.2.15/fresh-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-17.2.15/rewrite-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-18.2.3/burst-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-18.2.3/compaction-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-18.2.3/fresh-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-18.2.3/rewrite-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-18.3.4/burst-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-18.3.4/compaction-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-18.3.4/fresh-session.jsonl"),
    include_bytes!("../../tests/fixtures/omp/omp-18.3.4/rewrite-session.jsonl"),
];

/// The files, each as its lines, their ends included: an entry each.
pub(crate) fn sessions() -> Vec<Vec<Bytes>> {
    FILES.iter().map(|file| lines(file)).collect()
}

fn lines(file: &'static [u8]) -> Vec<Bytes> {
    file.split_inclusive(|byte| *byte == b'\n')
        .map(Bytes::from_static)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_recording_are_its_file() {
        for (file, lines) in FILES.iter().zip(sessions()) {
            assert!(lines.len() > 3);
            assert_eq!(lines.concat(), *file);
        }
    }
}
