//! The bytes come back, wherever they were put.

use std::io;

use proptest::prelude::*;

use super::*;

fn options(memory_bytes: usize) -> SpoolOptions {
    SpoolOptions {
        folder: None,
        memory_bytes,
    }
}

proptest! {
    #[test]
    fn byte_exact_in_memory_and_in_a_file(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12), bound in 0_usize..200,
    ) {
        let mut writer = SpoolWriter::new(options(bound));
        for chunk in &chunks {
            writer.append(chunk).unwrap();
        }
        let expected = chunks.concat();
        prop_assert_eq!(writer.length(), expected.len() as u64);
        let spool = writer.finish();
        prop_assert_eq!(spool.is_in_file(), expected.len() > bound);
        prop_assert_eq!(spool.length(), expected.len() as u64);
        for start in 0..=expected.len() {
            let read = spool.read(start as u64..expected.len() as u64).unwrap();
            prop_assert_eq!(read.as_ref(), &expected[start..]);
        }
    }
}

#[test]
fn a_file_leaves_no_name_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = SpoolWriter::new(SpoolOptions {
        folder: Some(folder.path().to_owned()),
        memory_bytes: 1,
    });
    writer.append(b"more than one byte").unwrap();
    let spool = writer.finish();
    assert!(spool.is_in_file());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(spool.read(5..9).unwrap().as_ref(), b"than");
}

#[test]
fn a_range_outside_of_the_object_is_refused() {
    let spool = Spool::from(Bytes::from_static(b"four"));
    assert!(matches!(spool.read(0..5), Err(Error::Bug(_))));
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = spool.read(3..2);
    assert!(matches!(reversed, Err(Error::Bug(_))));
}

#[test]
fn a_full_disk_and_a_missing_folder_are_told_apart() {
    let full = Error::of_spool(io::Error::from(io::ErrorKind::StorageFull));
    assert!(
        matches!(full, Error::DiskFull(_)) && full.is_retryable(),
        "{full}"
    );
    let mut writer = SpoolWriter::new(SpoolOptions {
        folder: Some("/does/not/exist".into()),
        memory_bytes: 0,
    });
    let missing = writer.append(b"x").unwrap_err();
    assert!(
        matches!(missing, Error::Spool(_)) && !missing.is_retryable(),
        "{missing}"
    );
}
