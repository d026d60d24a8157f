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

/// One session of about so many bytes, made of the lines of all files again and again. It compresses better than a real one, in
/// which no line comes twice.
pub(crate) fn grown(bytes: usize) -> Vec<Bytes> {
    let mut length = 0;
    let lines: Vec<Bytes> = sessions().concat();
    let grown = lines.into_iter().cycle().take_while(|line| {
        length += line.len();
        length <= bytes
    });
    grown.collect()
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
        let grown: usize = grown(1_000_000).iter().map(Bytes::len).sum();
        assert!((900_000..=1_000_000).contains(&grown), "{grown}");
    }
}
