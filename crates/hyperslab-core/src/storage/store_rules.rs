//! A file for each chunk, or for each shard of several chunks: the rules of Zarr.

use super::{StoredArray, StoredLayout, asked};
use crate::default_chunk::{CHUNK_BYTES, for_growth, grows, part_of_shard, whole_rows};
use crate::{ArraySpec, Error, Filter, Result, Shapes, dims};

/// What the options of a format say; `None` leaves it to the array.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreRules {
    /// Extents of chunks.
    pub chunk: Option<Shapes>,
    /// Extents of shards; `None`: a file holds one chunk.
    pub shard: Option<Shapes>,
    /// Filters of every array, instead of those that it asks for.
    pub filters: Option<Vec<Filter>>,
    /// Chunks have checksums.
    pub crc32c: bool,
}

impl StoreRules {
    /// Decides. Options override the specification.
    pub fn decide(&self, spec: &ArraySpec) -> Result<StoredArray> {
        spec.check()?;
        let rank = spec.shape.len();
        let shard = asked("shard", self.shard.as_ref(), rank)?;
        let chunk = asked("chunk", self.chunk.as_ref(), rank)?.cloned().or_else(|| spec.chunk.clone());
        let chunk = chunk.unwrap_or_else(|| match shard {
            Some(shard) => part_of_shard(shard, spec.dtype.size()),
            None if grows(spec) => for_growth(spec, CHUNK_BYTES),
            None => whole_rows(spec),
        });
        let layout = match shard {
            Some(shard) => {
                Self::check_shard(&chunk, shard)?;
                StoredLayout::Shards { file: shard.clone(), chunk }
            }
            None => StoredLayout::Chunks(chunk),
        };
        let filters = self.filters.clone().unwrap_or_else(|| spec.filters.clone());
        Ok(StoredArray { layout, filters, crc32c: self.crc32c, allocation: None })
    }

    /// Refuses a shard that is no multiple of the chunk.
    pub fn check_shard(chunk: &[u64], shard: &[u64]) -> Result<()> {
        let fits = chunk.len() == shard.len() && chunk.iter().zip(shard).all(|(c, s)| *c > 0 && s % c == 0);
        if fits {
            return Ok(());
        }
        let (chunk, shard) = (dims::display(chunk), dims::display(shard));
        Err(Error::invalid("create array", format!("shard {shard} is not a multiple of chunk {chunk}"))
            .hint("choose shard extents that are whole multiples of the chunk's, in the same number of dimensions"))
    }
}
