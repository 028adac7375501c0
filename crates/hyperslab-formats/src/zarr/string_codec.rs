//! Chunks of strings of variable length: the codec `vlen-utf8`, and what follows it.

use super::array_metadata::VLEN_UTF8;
use super::chunk_codec::{self, guarded};
use super::codecs::Pipeline;
use super::layout::ArrayLayout;
use hyperslab_core::{Datatype, Error, ErrorKind, Result, Strings, dims};
use std::borrow::Cow;
use std::num::NonZeroU64;
use zarrs::array::{
    ArrayBytes, ArrayBytesOffsets, ArrayToBytesCodecTraits, CodecChain, CodecOptions, DataType, FillValue, data_type,
};
use zarrs::metadata::v3::MetadataV3;

/// The most bytes of strings in one chunk.
const MAX_BYTES: u64 = 1 << 30;

/// Transforms chunks of as many strings each.
pub struct StringCodec {
    chain: CodecChain,
    pipeline: Pipeline,
    shape: Vec<NonZeroU64>,
    dtype: DataType,
    fill: FillValue,
    options: CodecOptions,
}

impl std::fmt::Debug for StringCodec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StringCodec").field("pipeline", &self.pipeline).field("strings", &self.shape).finish()
    }
}

impl StringCodec {
    /// For the chunks of an array; `None` if its elements are something else.
    pub fn of(layout: &ArrayLayout) -> Result<Option<Self>> {
        if layout.dtype != Datatype::VariableString {
            return Ok(None);
        }
        let broken = |message: String| Error::unsupported("set up codecs", message);
        let strings = NonZeroU64::new(dims::element_count(&layout.file)?);
        let strings = strings.ok_or_else(|| broken("a chunk has no elements".into()))?;
        let mut codecs = vec![serde_json::json!({"name": VLEN_UTF8})];
        codecs.extend(layout.pipeline.to_v3(1));
        let metadata = codecs.into_iter().map(serde_json::from_value::<MetadataV3>);
        let metadata = metadata.collect::<Result<Vec<_>, _>>().map_err(|e| broken(e.to_string()))?;
        Ok(Some(Self {
            chain: CodecChain::from_metadata(&metadata).map_err(|e| broken(e.to_string()))?,
            pipeline: layout.pipeline,
            shape: vec![strings],
            dtype: data_type::string(),
            fill: FillValue::from(""),
            options: CodecOptions::default().with_concurrent_target(1),
        }))
    }

    /// The stored form of a chunk. Refuses what is not UTF-8.
    pub fn encode(&self, strings: &Strings) -> Result<Vec<u8>> {
        let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
        for text in strings.iter() {
            if std::str::from_utf8(text).is_err() {
                return Err(Error::unsupported("write", "Zarr's strings are UTF-8, and one of these is not")
                    .hint("write text in UTF-8, or to hdf5"));
            }
            bytes.extend_from_slice(text);
            offsets.push(bytes.len());
        }
        if bytes.len() as u64 > MAX_BYTES {
            return Err(
                Error::unsupported("write", "the strings of a chunk are more than 1 GiB").hint("smaller chunks")
            );
        }
        let invalid = |message: String| Error::invalid("write", message);
        let offsets = ArrayBytesOffsets::new(offsets).map_err(|e| invalid(e.to_string()))?;
        let chunk = ArrayBytes::new_vlen(bytes, offsets).map_err(|e| invalid(e.to_string()))?;
        guarded("compress chunk", ErrorKind::Io, || {
            self.chain.encode(chunk, &self.shape, &self.dtype, &self.fill, &self.options).map(Cow::into_owned)
        })
    }

    /// The chunk of a stored form.
    pub fn decode(&self, stored: Vec<u8>) -> Result<Strings> {
        if chunk_codec::most_bytes(&self.pipeline, &stored).is_none_or(|most| most > 4 * MAX_BYTES) {
            return Err(chunk_codec::corrupt("the compressed data does not hold what a chunk of strings can"));
        }
        let decoded = guarded("decompress chunk", ErrorKind::Corrupt, || {
            self.chain.decode(Cow::Owned(stored), &self.shape, &self.dtype, &self.fill, &self.options)
        })?;
        let strings = decoded.into_variable().map_err(|e| chunk_codec::corrupt(e.to_string()))?;
        let (bytes, offsets) = (strings.bytes(), strings.offsets());
        Strings::check(bytes).map_err(|e| chunk_codec::corrupt(e.to_string()))?;
        let ends = offsets.windows(2).map(|ends| bytes.get(ends[0]..ends[1]));
        ends.collect::<Option<Vec<_>>>()
            .map(|texts| texts.into_iter().collect())
            .ok_or_else(|| chunk_codec::corrupt("a string ends beyond the chunk"))
    }
}
