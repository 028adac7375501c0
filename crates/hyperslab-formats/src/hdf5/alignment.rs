//! Alignment of what lies in a file: what follows from the option, and whether it had an effect.

use super::options::Options;
use crate::hdf5_entry::align_threshold;
use hyperslab_core::storage::{StoredArray, StoredLayout};
use hyperslab_core::{ArraySpec, dims, units};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a block of metadata in aligned files. Smaller ones come to lie between chunks and move every later one off its
/// place among the stripes.
pub(super) const META_BLOCK: u64 = 64 << 10;

/// The smallest object that `align` concerns.
pub(super) fn threshold(options: &Options, align: u64) -> u64 {
    align_threshold(options.align_threshold, align)
}

/// What a container has aligned so far.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    aligned: AtomicU64,
    too_small: AtomicU64,
    largest: AtomicU64,
}

impl Alignment {
    /// Notes an array that was made.
    pub(super) fn made(&self, spec: &ArraySpec, storage: &StoredArray, options: &Options) {
        let Some(align) = options.rules.align.filter(|align| *align > 1) else { return };
        let extents = match &storage.layout {
            StoredLayout::Chunks(chunk) | StoredLayout::Shards { chunk, .. } => chunk,
            StoredLayout::Contiguous => &spec.shape,
            StoredLayout::Compact => return,
        };
        let bytes = dims::byte_count(extents, spec.dtype.size()).unwrap_or(u64::MAX);
        if bytes >= threshold(options, align) {
            self.aligned.fetch_add(1, Ordering::Relaxed);
        } else if bytes > 0 {
            self.too_small.fetch_add(1, Ordering::Relaxed);
            self.largest.fetch_max(bytes, Ordering::Relaxed);
        }
    }

    /// Says so when arrays were made and none was large enough.
    pub(super) fn remark(&self, options: &Options) -> Option<String> {
        let (aligned, small) = (self.aligned.load(Ordering::Relaxed), self.too_small.load(Ordering::Relaxed));
        let align = options.rules.align.filter(|_| aligned == 0 && small > 0)?;
        Some(format!(
            "align={} aligned nothing: the largest chunk or array has {}, and align_threshold is {}",
            units::display_size(align),
            units::display_size(self.largest.load(Ordering::Relaxed)),
            units::display_size(threshold(options, align)),
        ))
    }
}
