//! Options of `zarr` that decide costs.

use super::{Codec, Placement, Storage};
use hyperslab_core::default_chunk::{CHUNK_BYTES, for_growth, grows, part_of_shard, whole_rows};
use hyperslab_core::{ArraySpec, Error, Result, Shapes, StackElement};

/// The options, parsed.
#[derive(Debug, Clone)]
pub(crate) struct Zarr {
    chunk: Option<Shapes>,
    pub(crate) shard: Option<Shapes>,
    /// Compression instead of the array's filters.
    codec: Option<Vec<Codec>>,
    crc32c: bool,
    /// Chunk names have directories.
    pub(crate) directories: bool,
}

impl Zarr {
    pub(crate) fn parse(element: &StackElement) -> Result<Self> {
        let codecs =
            [("none", None), ("gzip", Some(Codec::Deflate)), ("zstd", Some(Codec::Zstd)), ("blosc", Some(Codec::Fast))];
        let shuffle = element.flag("shuffle")?.unwrap_or(false);
        let codec = element.choice("codec", &codecs)?.map(|codec| match codec {
            Some(Codec::Fast) => vec![Codec::Fast], // shuffles by itself
            Some(codec) if shuffle => vec![Codec::Shuffle, codec],
            other => other.into_iter().collect(),
        });
        let version_2 = element.get("version") == Some("2");
        let slash = element.choice("separator", &[("slash", true), ("dot", false)])?;
        Ok(Self {
            chunk: element.shapes("chunk")?,
            shard: element.shapes("shard")?,
            codec,
            crc32c: element.flag("crc32c")?.unwrap_or(false),
            directories: slash.unwrap_or(!version_2),
        })
    }

    /// Mirrors how the format decides.
    pub(crate) fn storage(&self, spec: &ArraySpec) -> Result<Storage> {
        let rank = spec.shape.len();
        let fits = |shapes: &Option<Shapes>| match shapes.as_ref().and_then(Shapes::single) {
            Some(extents) if extents.len() != rank => Err(Error::invalid(
                "model stack",
                format!("a chunk or shard has {} dimensions, the array {rank}", extents.len()),
            )),
            _ => Ok(shapes.as_ref().and_then(|shapes| shapes.of_rank(rank)).cloned()),
        };
        let shard = fits(&self.shard)?;
        let chunk = fits(&self.chunk)?.or_else(|| spec.chunk.clone()).unwrap_or_else(|| match &shard {
            Some(shard) => part_of_shard(shard, spec.dtype.size()),
            None if grows(spec) => for_growth(spec, CHUNK_BYTES),
            None => whole_rows(spec),
        });
        if let Some(shard) = &shard
            && shard.iter().zip(&chunk).any(|(shard, chunk)| shard % chunk != 0)
        {
            return Err(Error::invalid("model stack", "shard extents are no multiples of the chunk's"));
        }
        let mut codecs = self.codec.clone().unwrap_or_else(|| spec.filters.iter().map(Codec::of).collect());
        if self.crc32c {
            codecs.push(Codec::Checksum);
        }
        let placement = match shard {
            Some(file) => Placement::Shards { file, chunk },
            None => Placement::Chunks(chunk),
        };
        Ok(Storage { placement, codecs })
    }
}
