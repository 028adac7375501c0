//! A shard file: chunks one after another and an index of (offset, length) pairs, 2^64-1 twice for absent chunks.

use super::atomic_files::{self, AtomicFiles};
use super::chunk_codec::ChunkCodec;
use super::codecs::Pipeline;
use super::layout::{ArrayLayout, Sharding};
use hyperslab_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Reads and writes the indexes of the shards of an array.
#[derive(Debug)]
pub struct ShardIndex {
    chunks: usize,
    at_end: bool,
    codec: ChunkCodec,
    stored_bytes: u64,
}

/// An existing shard, its index read.
#[derive(Debug)]
pub struct Shard {
    file: File,
    path: PathBuf,
    entries: Vec<Option<(u64, u64)>>,
}

const PAIR: usize = 16;
const ABSENT: u64 = u64::MAX;

impl ShardIndex {
    /// The index of shards of this layout.
    pub fn new(layout: &ArrayLayout, sharding: &Sharding) -> Result<Self> {
        let chunks = layout.chunks_per_file() as usize;
        let pipeline = Pipeline { crc32c: sharding.index_crc32c, ..Pipeline::default() };
        let codec = ChunkCodec::new(pipeline, chunks * PAIR, 1)?;
        let stored_bytes = (chunks * PAIR) as u64 + if sharding.index_crc32c { 4 } else { 0 };
        Ok(Self { chunks, at_end: sharding.index_at_end, codec, stored_bytes })
    }

    /// Opens a shard; `None` when the file is not there.
    pub fn open(&self, path: &Path) -> Result<Option<Shard>> {
        let Some((file, length)) = atomic_files::open(path)? else { return Ok(None) };
        let corrupt = |message: &str| Error::new(ErrorKind::Corrupt, "read shard", message).target(path.display());
        let at = if self.at_end { length.checked_sub(self.stored_bytes) } else { Some(0) };
        let at = at.ok_or_else(|| corrupt("shorter than its index"))?;
        if self.stored_bytes > length {
            return Err(corrupt("shorter than its index"));
        }
        let mut stored = vec![0; self.stored_bytes as usize];
        file.read_exact_at(&mut stored, at).map_err(|e| Error::io("read shard", e).target(path.display()))?;
        let index = self.codec.decode(stored).map_err(|e| corrupt(&format!("its index is damaged: {e}")))?;
        let mut entries = Vec::with_capacity(self.chunks);
        for pair in index.chunks_exact(PAIR) {
            let word = |at: usize| pair[at..at + 8].iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
            let (offset, bytes) = (word(0), word(8));
            if (offset, bytes) == (ABSENT, ABSENT) {
                entries.push(None);
                continue;
            }
            if offset.checked_add(bytes).is_none_or(|end| end > length) {
                return Err(corrupt("a chunk lies outside the file"));
            }
            entries.push(Some((offset, bytes)));
        }
        Ok(Some(Shard { file, path: path.to_owned(), entries }))
    }

    /// Replaces a shard by these stored chunks; one without any chunk is removed.
    pub fn write(&self, files: &AtomicFiles, path: &Path, chunks: &[Option<Cow<'_, [u8]>>]) -> Result<()> {
        if chunks.iter().all(Option::is_none) {
            return files.remove(path);
        }
        let mut offset = if self.at_end { 0 } else { self.stored_bytes };
        let mut index = Vec::with_capacity(self.chunks * PAIR);
        for chunk in chunks {
            let (at, bytes) = chunk.as_ref().map_or((ABSENT, ABSENT), |chunk| (offset, chunk.len() as u64));
            index.extend(at.to_le_bytes());
            index.extend(bytes.to_le_bytes());
            offset += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        }
        let index = self.codec.encode(&index)?;
        let mut parts: Vec<&[u8]> = chunks.iter().flatten().map(AsRef::as_ref).collect();
        parts.insert(if self.at_end { parts.len() } else { 0 }, &index);
        files.replace(path, &parts)
    }
}

impl Shard {
    /// The stored form of chunk `n`; `None` when it is absent. Refuses more than `limit` bytes.
    pub fn chunk(&self, n: usize, limit: u64) -> Result<Option<Vec<u8>>> {
        let Some((offset, bytes)) = self.entries[n] else { return Ok(None) };
        if bytes > limit {
            let message = format!("chunk {n} has {bytes} bytes where at most {limit} make sense");
            return Err(Error::new(ErrorKind::Corrupt, "read shard", message).target(self.path.display()));
        }
        let mut stored = vec![0; bytes as usize];
        self.file
            .read_exact_at(&mut stored, offset)
            .map_err(|e| Error::io("read shard", e).target(self.path.display()))?;
        Ok(Some(stored))
    }
}
