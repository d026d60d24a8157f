//! zstd and a `PUT`: what the archiver has to do with bytes whatever database they come from.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{TryStreamExt as _, stream};
use tokio::task::spawn_blocking;

use super::objects::{RawObject, RawObjects};
use crate::Error;

/// Plain bytes of a frame, and the level of its compression: the archiver's.
const FRAME_BYTES: usize = 1024 * 1024;
pub(crate) const LEVEL: i32 = 3;

/// Makes an object of each body and puts it, so many at a time. Returns how long all of them took.
pub(crate) async fn compress_and_put(
    objects: &RawObjects,
    bodies: Vec<(String, Vec<Bytes>)>,
    at_a_time: usize,
) -> Result<Duration, Error> {
    let started = Instant::now();
    stream::iter(bodies.into_iter().map(Ok))
        .try_for_each_concurrent(at_a_time, |(name, entries)| async move {
            let object = spawn_blocking(move || compressed(name, &entries))
                .await
                .map_err(|error| Error::Wrong(error.to_string()))??;
            objects.put(object).await
        })
        .await?;
    Ok(started.elapsed())
}

fn compressed(name: String, entries: &[Bytes]) -> Result<RawObject, Error> {
    let failed = |error| Error::io("compressing", error);
    let mut compressor = zstd::bulk::Compressor::new(LEVEL).map_err(failed)?;
    let mut object = Vec::new();
    let mut frame = Vec::with_capacity(FRAME_BYTES);
    for entry in entries {
        if frame.len() + entry.len() > FRAME_BYTES {
            object.extend(compressor.compress(&frame).map_err(failed)?);
            frame.clear();
        }
        frame.extend_from_slice(entry);
    }
    object.extend(compressor.compress(&frame).map_err(failed)?);
    Ok(RawObject::new(name, object.into()))
}
