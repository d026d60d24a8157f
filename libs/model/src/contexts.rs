//! zstd contexts that are kept between parts: making one costs more than a small part's compression itself.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zstd::bulk::{Compressor, Decompressor};

/// Contexts of a kind that are kept while nobody uses them, at most. A context takes up to about 2 MB. More can be in use.
const MOST_KEPT: usize = 8;

/// zstd's own default level.
const LEVEL: i32 = 3;

static COMPRESSORS: Kept<Compressor<'static>> = Kept::new();
static DECOMPRESSORS: Kept<Decompressor<'static>> = Kept::new();

/// Compresses to one frame.
pub(crate) fn compress(plain: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSORS.with(|| Compressor::new(LEVEL), |compressor| compressor.compress(plain))
}

/// Decompresses a frame of at most `capacity` plain bytes.
pub(crate) fn decompress(compressed: &[u8], capacity: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSORS.with(Decompressor::new, |decompressor| {
        decompressor.decompress(compressed, capacity)
    })
}

/// What is not in use.
struct Kept<C> {
    idle: Mutex<Vec<C>>,
}

impl<C> Kept<C> {
    const fn new() -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Works with a context that nobody else uses meanwhile. One that has failed is not kept.
    fn with<T>(
        &self,
        make: impl FnOnce() -> io::Result<C>,
        work: impl FnOnce(&mut C) -> io::Result<T>,
    ) -> io::Result<T> {
        let kept = self.lock().pop();
        let mut context = match kept {
            Some(context) => context,
            None => make()?,
        };
        let result = work(&mut context)?;
        let mut idle = self.lock();
        if idle.len() < MOST_KEPT {
            idle.push(context);
        }
        Ok(result)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<C>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_made_once_and_no_more_than_a_few_are_kept() {
        let kept: Kept<Vec<u8>> = Kept::new();
        for _ in 0..3 {
            kept.with(|| Ok(vec![7]), |_| Ok(())).ok();
        }
        assert_eq!(kept.lock().len(), 1);
        // As many at a time as there are calls within calls.
        fn nested(kept: &Kept<Vec<u8>>, depth: usize) -> io::Result<()> {
            kept.with(
                || Ok(Vec::new()),
                |_| match depth {
                    0 => Ok(()),
                    _ => nested(kept, depth - 1),
                },
            )
        }
        nested(&kept, MOST_KEPT * 2).ok();
        assert_eq!(kept.lock().len(), MOST_KEPT);
    }

    #[test]
    fn a_context_that_failed_is_not_used_again() {
        let kept: Kept<Vec<u8>> = Kept::new();
        let failed = kept.with(|| Ok(vec![1]), |_| Err::<(), _>(io::Error::other("no")));
        assert!(failed.is_err());
        assert!(kept.lock().is_empty());
    }

    #[test]
    fn what_was_compressed_before_leaves_no_trace() {
        let texts: Vec<Vec<u8>> = (0..200_u32)
            .map(|index| {
                format!("entry {index} ")
                    .repeat(1 + (index as usize * 37) % 900)
                    .into()
            })
            .collect();
        for text in texts.iter().chain(texts.iter().rev()) {
            let compressed = compress(text).map_err(|error| error.to_string());
            let plain = compressed
                .and_then(|bytes| decompress(&bytes, text.len()).map_err(|error| error.to_string()));
            assert_eq!(plain.as_ref(), Ok(text));
            // Bytes that are no frame do no harm to the next one.
            assert!(decompress(b"no frame", 100).is_err());
        }
    }
}
