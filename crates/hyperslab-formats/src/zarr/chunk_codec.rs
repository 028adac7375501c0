//! Encoding and decoding of one chunk, by the codecs of `zarrs`, guarded against hostile input.

use super::codecs::{Compressor, Pipeline};
use super::frame_size;
use hyperslab_core::{Error, ErrorKind, Result};
use std::borrow::Cow;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use zarrs::array::{
    ArrayBytes, ArrayToBytesCodecTraits, CodecChain, CodecError, CodecOptions, DataType, FillValue, data_type,
};
use zarrs::metadata::v3::MetadataV3;

/// Transforms chunks of one size.
pub struct ChunkCodec {
    /// `None` when chunks are stored as they are.
    chain: Option<CodecChain>,
    /// To `zarrs` a chunk is a row of bytes: byte order and fill value are ours.
    shape: Vec<NonZeroU64>,
    dtype: DataType,
    fill: FillValue,
    options: CodecOptions,
    pipeline: Pipeline,
    bytes: usize,
}

impl std::fmt::Debug for ChunkCodec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkCodec").field("pipeline", &self.pipeline).field("bytes", &self.bytes).finish()
    }
}

impl ChunkCodec {
    /// For chunks of `bytes` bytes, elements of `element` bytes.
    pub fn new(pipeline: Pipeline, bytes: usize, element: u64) -> Result<Self> {
        let broken = |message: String| Error::new(ErrorKind::Unsupported, "set up codecs", message);
        let length = NonZeroU64::new(bytes as u64).ok_or_else(|| broken("a chunk has no bytes".into()))?;
        let chain = if pipeline.is_plain() {
            None
        } else {
            let mut codecs = vec![serde_json::json!({"name": "bytes"})];
            codecs.extend(pipeline.to_v3(element));
            let metadata = codecs.into_iter().map(serde_json::from_value::<MetadataV3>);
            let metadata = metadata.collect::<Result<Vec<_>, _>>().map_err(|e| broken(e.to_string()))?;
            Some(CodecChain::from_metadata(&metadata).map_err(|e| broken(e.to_string()))?)
        };
        Ok(Self {
            chain,
            shape: vec![length],
            dtype: data_type::uint8(),
            fill: FillValue::from(0u8),
            options: CodecOptions::default().with_concurrent_target(1),
            pipeline,
            bytes,
        })
    }

    /// Whether chunks are stored as they are.
    pub fn is_plain(&self) -> bool {
        self.chain.is_none()
    }

    /// The most bytes a stored chunk may sensibly have.
    pub fn encoded_limit(&self) -> u64 {
        match self.chain {
            None => self.bytes as u64,
            Some(_) => 2 * self.bytes as u64 + (1 << 16),
        }
    }

    /// The stored form of a chunk.
    pub fn encode<'a>(&self, chunk: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let Some(chain) = &self.chain else { return Ok(Cow::Borrowed(chunk)) };
        let bytes = ArrayBytes::new_flen(Cow::Borrowed(chunk));
        guarded("compress chunk", ErrorKind::Io, || {
            chain.encode(bytes, &self.shape, &self.dtype, &self.fill, &self.options)
        })
    }

    /// The chunk of a stored form.
    pub fn decode(&self, stored: Vec<u8>) -> Result<Vec<u8>> {
        let decoded = match &self.chain {
            None => stored,
            Some(chain) => {
                self.check_frame(&stored)?;
                let stored = Cow::Owned(stored);
                let bytes = guarded("decompress chunk", ErrorKind::Corrupt, || {
                    chain.decode(stored, &self.shape, &self.dtype, &self.fill, &self.options)
                })?;
                let fixed = bytes.into_fixed().map_err(|e| corrupt(e.to_string()))?;
                fixed.into_owned()
            }
        };
        if decoded.len() != self.bytes {
            return Err(corrupt(format!("{} bytes where a chunk has {}", decoded.len(), self.bytes)));
        }
        Ok(decoded)
    }

    /// Refuses stored forms that announce another size than a chunk's, before anything is allocated for them.
    fn check_frame(&self, stored: &[u8]) -> Result<()> {
        let frame = frame(&self.pipeline, stored);
        let expected = self.bytes as u64;
        let plausible = match self.pipeline.compressor {
            None => return Ok(()),
            Some(Compressor::Gzip { .. }) => frame_size::gzip(frame) == Some(expected as u32),
            Some(Compressor::Blosc { .. }) => frame_size::blosc(frame) == Some(expected as u32),
            // Frames without a content size are bounded by their blocks, which may be much more than they hold.
            Some(Compressor::Zstd { .. }) => {
                frame_size::zstd(frame).is_some_and(|most| most <= 4 * expected + (1 << 24))
            }
        };
        if plausible { Ok(()) } else { Err(corrupt("the compressed data does not hold what a chunk needs")) }
    }
}

/// Stored data without the checksum after it.
fn frame<'a>(pipeline: &Pipeline, stored: &'a [u8]) -> &'a [u8] {
    let end = if pipeline.crc32c { stored.len().saturating_sub(4) } else { stored.len() };
    &stored[..end]
}

/// The most bytes that stored data can hold, by its own words; `None` when they are malformed.
pub fn most_bytes(pipeline: &Pipeline, stored: &[u8]) -> Option<u64> {
    let frame = frame(pipeline, stored);
    match pipeline.compressor {
        None => Some(frame.len() as u64),
        Some(Compressor::Gzip { .. }) => frame_size::gzip(frame).map(u64::from),
        Some(Compressor::Blosc { .. }) => frame_size::blosc(frame).map(u64::from),
        Some(Compressor::Zstd { .. }) => frame_size::zstd(frame),
    }
}

pub fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, "decompress chunk", message)
}

/// Runs a codec; its errors and panics become errors of `kind`.
pub fn guarded<T>(operation: &'static str, kind: ErrorKind, run: impl FnOnce() -> Result<T, CodecError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Error::new(kind, operation, error.to_string())),
        Err(_) => Err(Error::new(kind, operation, "the codec failed unexpectedly")),
    }
}
