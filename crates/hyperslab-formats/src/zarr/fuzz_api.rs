//! Entry points of the fuzz targets: untrusted metadata documents and compressed chunks.

use super::chunk_codec::ChunkCodec;
use super::codecs::{BloscShuffle, Compressor, Pipeline};
use super::layout::Version;
use super::{array_metadata, attributes, json};
use hyperslab_core::{ArraySpec, Result};
use serde_json::{Map, Value};

/// The array that a document describes, and the document that describes it again. The attributes of version 2 lie
/// apart.
pub fn array(text: &[u8], apart: &[u8]) -> Result<(ArraySpec, String)> {
    let found = json::parse(text)?;
    let (version, own) = match found.get("zarr_format").and_then(Value::as_u64) {
        Some(2) => (Version::V2, json::parse(apart)?),
        _ => (Version::V3, found.get("attributes").cloned().unwrap_or_default()),
    };
    let own = own.as_object().cloned().unwrap_or_default();
    let layout = array_metadata::read(version, &found, &own)?;
    read_attributes(&own);
    let (again, kept) = array_metadata::write(&layout)?;
    let again = match (version, again) {
        (Version::V3, Value::Object(mut object)) => {
            object.insert("attributes".into(), Value::Object(kept));
            Value::Object(object)
        }
        (_, other) => other,
    };
    Ok((layout.spec(), again.to_string()))
}

fn read_attributes(found: &Map<String, Value>) {
    for name in attributes::names(found) {
        // What no attribute can hold is refused.
        let _ = attributes::get(found, &name);
    }
}

/// A stored chunk of `bytes` bytes; `how` chooses the codecs.
pub fn chunk(stored: &[u8], how: u8, bytes: usize) -> Result<Vec<u8>> {
    let blosc = |inside| Compressor::Blosc { inside, level: 5, shuffle: BloscShuffle::Byte, typesize: 4, blocksize: 0 };
    let compressor = match how % 8 {
        0 => None,
        1 => Some(Compressor::Gzip { level: 5 }),
        2 => Some(Compressor::Zstd { level: 3, checksum: false }),
        3 => Some(blosc("lz4")),
        4 => Some(blosc("zstd")),
        5 => Some(blosc("zlib")),
        6 => Some(blosc("blosclz")),
        _ => Some(blosc("lz4hc")),
    };
    let pipeline = Pipeline { shuffle: (how & 8 != 0).then_some(4), compressor, crc32c: how & 16 != 0 };
    ChunkCodec::new(pipeline, bytes, 4)?.decode(stored.to_vec())
}
