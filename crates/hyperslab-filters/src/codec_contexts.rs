//! Reusable codec contexts: creating one costs more than coding a small chunk.

use crate::lz_matcher::Table;
use crate::scratch::Scratch;
use libdeflater::{CompressionLvl, Compressor, Decompressor};
use std::fmt;
use zstd_safe::{CCtx, DCtx};

/// The contexts and scratch buffers of one thread, each created on first use.
#[derive(Default)]
pub(crate) struct CodecContexts {
    deflate: Option<(i32, Compressor)>,
    inflate: Option<Decompressor>,
    zstd_writer: Option<CCtx<'static>>,
    zstd_reader: Option<DCtx<'static>>,
    /// Hash table of the LZ matcher.
    pub(crate) places: Table,
    /// Scratch block of blockwise filters.
    pub(crate) block: Scratch,
    /// A second scratch block, for filters of two steps.
    pub(crate) between: Scratch,
    /// The reference block of delta-encoded blocks, where blocks are not contiguous in the output.
    pub(crate) reference: Scratch,
}

impl CodecContexts {
    /// A compressor of libdeflate at its own `level`, 0 to 12.
    pub(crate) fn deflate(&mut self, level: i32) -> &mut Compressor {
        let kept = self.deflate.take().filter(|(of, _)| *of == level);
        let entry = kept.unwrap_or_else(|| (level, Compressor::new(CompressionLvl::new(level).unwrap_or_default())));
        &mut self.deflate.insert(entry).1
    }

    /// A decompressor of libdeflate.
    pub(crate) fn inflate(&mut self) -> &mut Decompressor {
        self.inflate.get_or_insert_with(Decompressor::new)
    }

    /// The zstd compression context.
    pub(crate) fn zstd_writer(&mut self) -> &mut CCtx<'static> {
        self.zstd_writer.get_or_insert_with(CCtx::create)
    }

    /// The zstd decompression context.
    pub(crate) fn zstd_reader(&mut self) -> &mut DCtx<'static> {
        self.zstd_reader.get_or_insert_with(DCtx::create)
    }
}

impl fmt::Debug for CodecContexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodecContexts").finish_non_exhaustive()
    }
}
