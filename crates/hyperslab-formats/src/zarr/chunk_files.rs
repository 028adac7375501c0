//! The files of an array's chunks or shards, decoded and encoded. Callers hold the chunk's lock.

use super::atomic_files::{self, AtomicFiles};
use super::chunk_codec::ChunkCodec;
use super::layout::{ArrayLayout, MAX_CHUNK_BYTES};
use super::region::{self, BoxInBuffer, Region};
use super::shard::{Shard, ShardIndex};
use super::string_codec::StringCodec;
use hyperslab_core::{Dims, Error, ErrorKind, Result, Strings};
use std::borrow::Cow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Reads and writes chunk files of one array.
#[derive(Debug)]
pub struct ChunkFiles {
    directory: PathBuf,
    codec: ChunkCodec,
    index: Option<ShardIndex>,
    /// For strings of variable length.
    strings: Option<StringCodec>,
}

/// What an existing file holds.
pub struct Loaded {
    /// The decoded file, row-major; right inside the region asked for, unspecified outside.
    pub data: Vec<u8>,
    /// The shard it came from, to keep its other chunks when storing.
    pub shard: Option<Shard>,
}

impl ChunkFiles {
    /// For the array in `directory`.
    pub fn new(directory: PathBuf, layout: &ArrayLayout) -> Result<Self> {
        let chunk_bytes = layout.chunk().iter().product::<u64>() * layout.dtype.size();
        let codec = ChunkCodec::new(layout.pipeline, chunk_bytes as usize, layout.dtype.size())?;
        let strings = StringCodec::of(layout)?;
        let index = layout.sharding.as_ref().map(|sharding| ShardIndex::new(layout, sharding)).transpose()?;
        Ok(Self { directory, codec, index, strings })
    }

    /// The array's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, layout: &ArrayLayout, index: &[u64]) -> PathBuf {
        self.directory.join(layout.keys.name(index))
    }

    /// The strings of file `index`, row-major; `None` when the file is not there: all fill value.
    pub fn load_strings(&self, layout: &ArrayLayout, index: &[u64]) -> Result<Option<Strings>> {
        let path = self.path(layout, index);
        let Some(codec) = &self.strings else { return Err(no_strings("read")) };
        let stored = atomic_files::read(&path, MAX_CHUNK_BYTES);
        let decoded = stored.and_then(|stored| stored.map(|stored| codec.decode(stored)).transpose());
        decoded.map_err(|error| error.target(path.display()))
    }

    /// Encodes and replaces file `index`.
    pub fn store_strings(
        &self,
        files: &AtomicFiles,
        layout: &ArrayLayout,
        index: &[u64],
        strings: &Strings,
    ) -> Result<()> {
        let path = self.path(layout, index);
        let Some(codec) = &self.strings else { return Err(no_strings("write")) };
        let empty = !files.write_empty() && strings.iter().all(|text| text == layout.fill);
        let stored = match empty {
            true => files.remove(&path),
            false => codec.encode(strings).and_then(|stored| files.replace(&path, &[&stored])),
        };
        stored.map_err(|error| error.target(path.display()))
    }

    /// Decodes what `region` of file `index` needs; `None` when the file is not there: all fill value.
    pub fn load(&self, layout: &ArrayLayout, index: &[u64], region: &Region) -> Result<Option<Loaded>> {
        let path = self.path(layout, index);
        let loaded = match &self.index {
            Some(shards) => self.load_shard(layout, shards, &path, region),
            None if self.codec.is_plain() && !layout.column_major => load_rows(layout, &path, region),
            None => atomic_files::read(&path, self.codec.encoded_limit())?
                .map(|stored| {
                    let data = self.codec.decode(stored)?;
                    let reversed: Dims = layout.file.iter().rev().copied().collect();
                    let element = layout.dtype.size() as usize;
                    let turn = |data: Vec<u8>| region::reverse_dimensions(&data, &reversed, element);
                    Ok(Loaded { data: if layout.column_major { turn(data) } else { data }, shard: None })
                })
                .transpose(),
        };
        loaded.map_err(|error| error.target(path.display()))
    }

    fn load_shard(
        &self,
        layout: &ArrayLayout,
        shards: &ShardIndex,
        path: &Path,
        region: &Region,
    ) -> Result<Option<Loaded>> {
        let Some(shard) = shards.open(path)? else { return Ok(None) };
        let mut data = vec![0; layout.file_bytes()];
        let element = layout.dtype.size() as usize;
        let chunk = layout.chunk();
        let grid = Inside::new(layout);
        let zeros = Dims::from_elem(0, chunk.len());
        let mut absent = None;
        region::for_each_index(&grid.touched(region), |at| {
            let decoded = match shard.chunk(grid.number(at), self.codec.encoded_limit())? {
                Some(stored) => self.codec.decode(stored)?,
                None => absent
                    .take()
                    .unwrap_or_else(|| region::filled(chunk.iter().product::<u64>() as usize * element, &layout.fill)),
            };
            let from = BoxInBuffer { shape: chunk, start: &zeros };
            let to = BoxInBuffer { shape: &layout.file, start: &grid.start(at) };
            region::copy_box(&decoded, from, &mut data, to, chunk, element);
            Ok(())
        })?;
        Ok(Some(Loaded { data, shard: Some(shard) }))
    }

    /// Encodes and replaces file `index`. `data` is the decoded file; with a `shard` only the chunks that `region`
    /// touches are taken from it, the others stay as they are in the shard.
    pub fn store(
        &self,
        files: &AtomicFiles,
        layout: &ArrayLayout,
        index: &[u64],
        data: &[u8],
        region: &Region,
        shard: Option<&Shard>,
    ) -> Result<()> {
        let path = self.path(layout, index);
        let stored = match &self.index {
            Some(shards) => self.store_shard(files, layout, shards, &path, data, region, shard),
            None if !files.write_empty() && region::is_filled(data, &layout.fill) => files.remove(&path),
            None if layout.column_major => {
                let turned = region::reverse_dimensions(data, &layout.file, layout.dtype.size() as usize);
                self.codec.encode(&turned).and_then(|stored| files.replace(&path, &[&stored]))
            }
            None => self.codec.encode(data).and_then(|stored| files.replace(&path, &[&stored])),
        };
        stored.map_err(|error| error.target(path.display()))
    }

    #[allow(clippy::too_many_arguments)]
    fn store_shard(
        &self,
        files: &AtomicFiles,
        layout: &ArrayLayout,
        shards: &ShardIndex,
        path: &Path,
        data: &[u8],
        region: &Region,
        shard: Option<&Shard>,
    ) -> Result<()> {
        let element = layout.dtype.size() as usize;
        let chunk = layout.chunk();
        let grid = Inside::new(layout);
        let touched = grid.touched(region);
        let zeros = Dims::from_elem(0, chunk.len());
        let mut scratch = vec![0; chunk.iter().product::<u64>() as usize * element];
        let mut chunks: Vec<Option<Cow<'_, [u8]>>> = Vec::with_capacity(layout.chunks_per_file() as usize);
        region::for_each_index(&Region::all(&grid.shape), |at| {
            let is_touched = (0..at.len()).all(|d| (touched.start[d]..touched.end[d]).contains(&at[d]));
            if !is_touched && let Some(shard) = shard {
                chunks.push(shard.chunk(grid.number(at), self.codec.encoded_limit())?.map(Cow::Owned));
                return Ok(());
            }
            let from = BoxInBuffer { shape: &layout.file, start: &grid.start(at) };
            region::copy_box(data, from, &mut scratch, BoxInBuffer { shape: chunk, start: &zeros }, chunk, element);
            let empty = (!files.write_empty() || !is_touched) && region::is_filled(&scratch, &layout.fill);
            chunks.push(if empty { None } else { Some(Cow::Owned(self.codec.encode(&scratch)?.into_owned())) });
            Ok::<(), Error>(())
        })?;
        shards.write(files, path, &chunks)
    }
}

fn no_strings(operation: &'static str) -> Error {
    Error::unsupported(operation, "the elements of this array are no strings of variable length")
}

/// Chunks stored as they are: only the rows that the region spans are read.
fn load_rows(layout: &ArrayLayout, path: &Path, region: &Region) -> Result<Option<Loaded>> {
    let Some((file, length)) = atomic_files::open(path)? else { return Ok(None) };
    let bytes = layout.file_bytes();
    if length != bytes as u64 {
        let message = format!("{length} bytes where a chunk has {bytes}");
        return Err(Error::new(ErrorKind::Corrupt, "read chunk", message));
    }
    let mut data = vec![0; bytes];
    let row = layout.file.first().map_or(bytes, |rows| bytes / *rows as usize);
    let (first, end) = match (region.start.first(), region.end.first()) {
        (Some(first), Some(end)) => (*first as usize * row, *end as usize * row),
        _ => (0, bytes),
    };
    file.read_exact_at(&mut data[first..end], first as u64).map_err(|e| Error::io("read chunk", e))?;
    Ok(Some(Loaded { data, shard: None }))
}

/// The grid of chunks inside a shard.
struct Inside<'a> {
    chunk: &'a Dims,
    shape: Dims,
}

impl<'a> Inside<'a> {
    fn new(layout: &'a ArrayLayout) -> Self {
        let chunk = layout.chunk();
        Self { chunk, shape: layout.file.iter().zip(chunk).map(|(f, c)| f / c).collect() }
    }

    /// The chunks that a region of the shard touches.
    fn touched(&self, region: &Region) -> Region {
        Region {
            start: region.start.iter().zip(self.chunk).map(|(s, c)| s / c).collect(),
            end: region.end.iter().zip(self.chunk).map(|(e, c)| e.div_ceil(*c)).collect(),
        }
    }

    fn number(&self, at: &[u64]) -> usize {
        self.shape.iter().zip(at).fold(0, |n, (extent, i)| n * extent + i) as usize
    }

    fn start(&self, at: &[u64]) -> Dims {
        at.iter().zip(self.chunk).map(|(i, c)| i * c).collect()
    }
}
