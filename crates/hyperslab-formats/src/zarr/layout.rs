//! What an array is and how its chunks lie in files: the metadata document of an array, understood.

use super::codecs::{Compressor, Pipeline};
use super::dimension_names;
use super::options::Options;
use hyperslab_core::storage::{StoreRules, StoredLayout};
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, Result, dims};

/// Version of the Zarr specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `.zarray`, `.zgroup`, `.zattrs`.
    V2,
    /// `zarr.json`.
    V3,
}

/// The largest chunk or shard that is read or written, decoded: 4 GiB.
pub const MAX_CHUNK_BYTES: u64 = 1 << 32;
/// The largest chunk that blosc takes.
const MAX_BLOSC_BYTES: u64 = (1 << 31) - 1 - 16;
/// The most chunks in one shard.
const MAX_CHUNKS_PER_SHARD: u64 = 1 << 24;

/// How chunk files are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkKeys {
    /// `c/0/1` as in version 3, or `0.1` as in version 2.
    pub prefixed: bool,
    /// Between the numbers.
    pub separator: char,
}

/// A shard: a file that holds several chunks and an index of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharding {
    /// Extents of the chunks inside.
    pub chunk: Dims,
    /// The index follows the chunks instead of preceding them.
    pub index_at_end: bool,
    /// The index has a checksum.
    pub index_crc32c: bool,
}

/// An array as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayLayout {
    /// Version of its metadata.
    pub version: Version,
    /// Type of elements.
    pub dtype: Datatype,
    /// Extents.
    pub shape: Dims,
    /// Extents it may grow to; absent: fixed.
    pub max_shape: Option<Vec<Option<u64>>>,
    /// Extents of what one file holds: a chunk, or a shard.
    pub file: Dims,
    /// What is inside a file, unless it is one chunk.
    pub sharding: Option<Sharding>,
    /// Elements of a chunk lie fastest dimension first (version 2's order F).
    pub column_major: bool,
    /// Bytes of one element never written.
    pub fill: Vec<u8>,
    /// What is done to the bytes of a chunk.
    pub pipeline: Pipeline,
    /// Names of files.
    pub keys: ChunkKeys,
    /// Names of the dimensions.
    pub dims: Option<Vec<String>>,
}

impl ChunkKeys {
    /// The file of a chunk, relative to the array's directory.
    pub fn name(&self, index: &[u64]) -> String {
        let mut parts: Vec<String> = Vec::with_capacity(index.len() + 1);
        if self.prefixed {
            parts.push("c".into());
        }
        parts.extend(index.iter().map(u64::to_string));
        if parts.is_empty() {
            parts.push("0".into());
        }
        parts.join(&self.separator.to_string())
    }

    /// The chunk that a file name of [`ChunkKeys::name`] means.
    pub fn parse(&self, name: &str, rank: usize) -> Option<Dims> {
        let mut parts = name.split(self.separator);
        if self.prefixed && parts.next() != Some("c") {
            return None;
        }
        let index =
            parts.map(|part| part.parse().ok().filter(|n: &u64| n.to_string() == part)).collect::<Option<Dims>>()?;
        match rank {
            0 if !self.prefixed => (index.as_slice() == [0]).then(Dims::new),
            rank => (index.len() == rank).then_some(index),
        }
    }
}

impl ArrayLayout {
    /// The layout of a new array.
    pub fn new(spec: &ArraySpec, options: &Options, version: Version) -> Result<Self> {
        spec.check()?;
        if options.rules.shard.is_some() && version == Version::V2 {
            return Err(Error::invalid("create array", "shards need a store of version 3").hint("leave out shard"));
        }
        if options.rules.crc32c && version == Version::V2 {
            return Err(Error::invalid("create array", "crc32c needs a store of version 3").hint("leave out crc32c"));
        }
        let stored = options.rules.decide(spec)?;
        let mut pipeline = match options.codec {
            Some(choice) => Pipeline {
                shuffle: choice.shuffle.then_some(spec.dtype.size() as u32),
                compressor: choice.compressor,
                crc32c: false,
            },
            None => Pipeline::from_filters(&spec.filters, &spec.dtype)?,
        };
        let is_text = spec.dtype == Datatype::VariableString;
        if is_text {
            pipeline.shuffle = None; // there are no numbers in it
        }
        pipeline.crc32c = stored.crc32c;
        let separator = options.separator.unwrap_or(if version == Version::V3 { '/' } else { '.' });
        let (file, sharding) = match stored.layout {
            StoredLayout::Shards { file, chunk } => {
                (file, Some(Sharding { chunk, index_at_end: true, index_crc32c: true }))
            }
            StoredLayout::Chunks(chunk) => (chunk, None),
            StoredLayout::Contiguous | StoredLayout::Compact => (spec.shape.clone(), None),
        };
        let layout = Self {
            version,
            dtype: spec.dtype.clone(),
            shape: spec.shape.clone(),
            max_shape: spec.max_shape.clone(),
            file,
            sharding,
            column_major: false,
            fill: spec
                .fill_value
                .clone()
                .unwrap_or_else(|| vec![0; if is_text { 0 } else { spec.dtype.size() as usize }]),
            pipeline,
            keys: ChunkKeys { prefixed: version == Version::V3, separator },
            dims: spec.dims.clone().map(dimension_names::stored),
        };
        layout.check()?;
        Ok(layout)
    }

    /// Refuses what would need unbounded memory or overflow.
    pub fn check(&self) -> Result<()> {
        let too_large = |m: String| Err(Error::unsupported("check zarr array", m).hint("choose smaller chunks"));
        let element = self.dtype.size();
        dims::byte_count(&self.shape, element)?;
        if self.dtype == Datatype::VariableString && (self.sharding.is_some() || self.column_major) {
            let message = "strings of variable length in shards or in the order F";
            return Err(Error::unsupported("check zarr array", message).hint("leave out shard; use order C"));
        }
        if self.file.len() != self.shape.len() || self.file.contains(&0) {
            let (file, shape) = (dims::display(&self.file), dims::display(&self.shape));
            return Err(Error::invalid("check zarr array", format!("chunk {file} does not suit an array of {shape}")));
        }
        let bytes = dims::byte_count(&self.file, element)?;
        if bytes > MAX_CHUNK_BYTES {
            let shown = hyperslab_core::units::display_size(bytes);
            return too_large(format!(
                "a chunk of {} is {shown}; at most 4 GiB are possible",
                dims::display(&self.file)
            ));
        }
        if let Some(sharding) = &self.sharding {
            StoreRules::check_shard(&sharding.chunk, &self.file)?;
            let inside = self.chunks_per_file();
            if inside > MAX_CHUNKS_PER_SHARD {
                return too_large(format!("{inside} chunks in one shard; at most {MAX_CHUNKS_PER_SHARD} are possible"));
            }
        }
        let chunk_bytes = dims::byte_count(self.chunk(), element)?;
        if matches!(self.pipeline.compressor, Some(Compressor::Blosc { .. })) && chunk_bytes > MAX_BLOSC_BYTES {
            return too_large("a chunk is 2 GiB or more, which blosc cannot take".into());
        }
        if self.pipeline.shuffle.is_some_and(|size| !chunk_bytes.is_multiple_of(u64::from(size))) {
            return too_large("the bytes of a chunk are no multiple of the shuffle's element size".into());
        }
        Ok(())
    }

    /// Extents of what is compressed as one.
    pub fn chunk(&self) -> &Dims {
        self.sharding.as_ref().map_or(&self.file, |s| &s.chunk)
    }

    /// Chunks in one file.
    pub fn chunks_per_file(&self) -> u64 {
        self.file.iter().zip(self.chunk()).map(|(f, c)| f / c).product()
    }

    /// Decoded bytes of one file.
    pub fn file_bytes(&self) -> usize {
        (self.file.iter().product::<u64>() * self.dtype.size()) as usize
    }

    /// The array as callers know it. The chunk is what is compressed as one, also inside shards.
    pub fn spec(&self) -> ArraySpec {
        ArraySpec {
            dtype: self.dtype.clone(),
            shape: self.shape.clone(),
            max_shape: self.max_shape.clone(),
            chunk: (!self.shape.is_empty()).then(|| self.chunk().clone()),
            filters: self.pipeline.filters(),
            fill_value: self.fill.iter().any(|b| *b != 0).then(|| self.fill.clone()),
            dims: self.dims.clone(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Stack;
    use hyperslab_core::default_chunk::whole_rows;

    #[test]
    fn chunk_names_round_trip() {
        for keys in [
            ChunkKeys { prefixed: true, separator: '/' },
            ChunkKeys { prefixed: true, separator: '.' },
            ChunkKeys { prefixed: false, separator: '.' },
            ChunkKeys { prefixed: false, separator: '/' },
        ] {
            for index in [&[][..], &[0], &[3, 12, 0]] {
                assert_eq!(keys.parse(&keys.name(index), index.len()).as_deref(), Some(index), "{keys:?}");
            }
            for bad in ["", "c/x", "zarr.json", ".zarray", "00", "c/00", "1.2.partial"] {
                assert_eq!(keys.parse(bad, 1), None, "{keys:?} {bad}");
            }
        }
    }

    #[test]
    fn default_chunks_are_about_a_mebibyte() {
        let chunk = |shape: &[u64]| whole_rows(&ArraySpec::new(Datatype::F64, shape)).to_vec();
        assert_eq!(chunk(&[1000, 1000]), [131, 1000]);
        assert_eq!(chunk(&[10, 10]), [10, 10]);
        assert_eq!(chunk(&[4, 1 << 30]), [1, 1 << 17]);
        assert_eq!(chunk(&[0, 5]), [1, 5]);
        assert!(chunk(&[]).is_empty());
        let mut growing = ArraySpec::new(Datatype::F32, &[0, 721, 1440]);
        growing.max_shape = Some(vec![None, Some(721), Some(1440)]);
        let element = "zarr".parse::<Stack>().unwrap().format;
        let options = Options::parse(&element).unwrap();
        assert_eq!(ArrayLayout::new(&growing, &options, Version::V3).unwrap().chunk().to_vec(), [1, 181, 1440]);
    }
}
