//! `wakelog segments cat`: the bytes of a segment's entries, each entry checked before its last bytes are printed.

use wakelog_archive::{Failure, ObjectStore, SegmentFetch, SegmentKey};
use wakelog_contract::Exit;

use super::place::Objects;
use crate::args::SegmentsCatArgs;
use crate::commands::tail::print_bytes;
use crate::config::Settings;
use crate::exit::{Error, with_sources};
use crate::services::archive::archive_error;

/// Plain bytes that are read at a time.
const BYTES: usize = 4 * 1024 * 1024;

pub(super) async fn run(settings: &Settings, args: &SegmentsCatArgs) -> Result<Exit, Error> {
    let key: SegmentKey = args.key.parse().map_err(|error: wakelog_archive::Error| {
        Error::usage(error.to_string()).or_hint("`wakelog segments ls` prints keys")
    })?;
    let place = Objects::open(settings).await?;
    let printed = print_segment(&place.objects, key).await;
    place.close(printed).await?;
    Ok(Exit::Done)
}

async fn print_segment(objects: &ObjectStore, key: SegmentKey) -> Result<(), Error> {
    let head = objects.head(&key.to_string()).await.map_err(segment_error)?;
    let opened = SegmentFetch::open(objects, key, head.bytes, key.min_entry_seq, key.max_entry_seq).await;
    let mut segment = opened.map_err(segment_error)?;
    loop {
        let parts = segment.next_parts(BYTES).await.map_err(segment_error)?;
        if parts.is_empty() {
            return Ok(());
        }
        for part in parts {
            print_bytes(&part.bytes)?;
        }
    }
}

/// What is wrong with the object is no dependency that is away.
fn segment_error(error: wakelog_archive::Error) -> Error {
    use wakelog_archive::Error as Archive;
    let is_damaged = matches!(
        error,
        Archive::SegmentDamaged { .. } | Archive::UnknownFormat { .. } | Archive::NotInSegment { .. }
    );
    match error.failure() {
        Some(Failure::NotFound) => {
            Error::new(Exit::NotFound, "there is no such object").or_hint("`wakelog segments ls` prints keys")
        }
        Some(Failure::Corrupt | Failure::Truncated) => Error::failed(with_sources(&error)),
        _ if is_damaged => {
            Error::failed(with_sources(&error)).or_hint("`wakelog segments verify` looks at every segment")
        }
        _ => archive_error(error),
    }
}
