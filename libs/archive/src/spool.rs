//! An object's bytes before they are uploaded: in memory up to a bound, then in a file that has no name. However large
//! the object is, memory stays small, and a process that dies leaves nothing behind.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::Error;

/// Where a spool may put its bytes.
#[derive(Debug, Clone)]
pub struct SpoolOptions {
    /// The folder of the file; `None`: the system's folder for temporary files.
    pub folder: Option<PathBuf>,
    /// Bytes that are kept in memory, at most. More than that and all of them are in the file.
    pub memory_bytes: usize,
}

impl Default for SpoolOptions {
    fn default() -> Self {
        Self {
            folder: None,
            memory_bytes: 8 * 1024 * 1024,
        }
    }
}

/// A spool that is being written.
#[derive(Debug)]
pub struct SpoolWriter {
    options: SpoolOptions,
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
}

impl SpoolWriter {
    /// An empty one.
    pub fn new(options: SpoolOptions) -> Self {
        Self {
            options,
            memory: Vec::new(),
            file: None,
            length: 0,
        }
    }

    /// Appends. [`Error::DiskFull`] and [`Error::Spool`] leave it unusable.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.file.is_none() && self.memory.len() + bytes.len() <= self.options.memory_bytes {
            self.memory.extend_from_slice(bytes);
        } else {
            self.append_to_file(bytes).map_err(Error::of_spool)?;
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Bytes so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The spool to read from.
    pub fn finish(self) -> Spool {
        match self.file {
            Some(file) => Spool {
                length: self.length,
                bytes: Stored::File(Arc::new(file)),
            },
            None => Spool::from(Bytes::from(self.memory)),
        }
    }

    fn append_to_file(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &self.file {
            return file.write_all_at(bytes, self.length);
        }
        let file = match &self.options.folder {
            Some(folder) => tempfile::tempfile_in(folder)?,
            None => tempfile::tempfile()?,
        };
        file.write_all_at(&self.memory, 0)?;
        file.write_all_at(bytes, self.length)?;
        self.memory = Vec::new();
        self.file = Some(file);
        Ok(())
    }
}

/// An object's bytes. Clones share them.
#[derive(Debug, Clone)]
pub struct Spool {
    length: u64,
    bytes: Stored,
}

#[derive(Debug, Clone)]
enum Stored {
    Memory(Bytes),
    File(Arc<File>),
}

impl Spool {
    /// The object's size in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether the bytes are in a file, so that reading may block.
    pub fn is_in_file(&self) -> bool {
        matches!(self.bytes, Stored::File(_))
    }

    /// The bytes of the range, which must lie within the object. Blocks while it reads the file.
    pub fn read(&self, range: Range<u64>) -> Result<Bytes, Error> {
        if range.start > range.end || range.end > self.length {
            return Err(Error::Bug(format!(
                "bytes {} to {} of a spool of {}",
                range.start, range.end, self.length
            )));
        }
        match &self.bytes {
            // Both ends are at most the length of what is in memory.
            Stored::Memory(bytes) => Ok(bytes.slice(range.start as usize..range.end as usize)),
            Stored::File(file) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                file.read_exact_at(&mut bytes, range.start)
                    .map_err(Error::of_spool)?;
                Ok(bytes.into())
            }
        }
    }
}

impl From<Bytes> for Spool {
    fn from(bytes: Bytes) -> Self {
        Self {
            length: bytes.len() as u64,
            bytes: Stored::Memory(bytes),
        }
    }
}

#[cfg(test)]
mod tests;
