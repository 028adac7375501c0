//! Packed numbers of one type to another, whatever their byte orders.

use super::kernel::{Kernel, Kind, kernel};
use super::swap::swap;
use hyperslab_core::{ByteOrder, Datatype};

/// Numbers that are converted at a time where their byte order has to change: they stay in the nearest cache.
const BLOCK: usize = 1024;
/// Bytes of the largest number.
const LARGEST: usize = 8;

/// What is done to packed numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    from_size: usize,
    to_size: usize,
    /// Their bytes into the machine's order, before.
    before: Option<Kernel>,
    /// The conversion; where there is none, `before` is all there is to do.
    between: Option<Kernel>,
    /// Their bytes into the order of the target, after.
    after: Option<Kernel>,
    depends_on_library: bool,
}

impl Numbers {
    /// `None` if one of the types is no number.
    pub fn new(from: &Datatype, to: &Datatype) -> Option<Self> {
        let ((from_kind, from_order), (to_kind, to_order)) = (Kind::of(from)?, Kind::of(to)?);
        let sizes = (from.size() as usize, to.size() as usize);
        let new = |before, between, after| Self {
            from_size: sizes.0,
            to_size: sizes.1,
            before,
            between,
            after,
            depends_on_library: false,
        };
        // Integers of one size in different orders have their bytes swapped and nothing else, whatever their signs.
        let only_order = from_order != to_order && sizes.0 == sizes.1 && from_kind.is_float() == to_kind.is_float();
        if only_order || from_kind == to_kind {
            let same = || Some(kernel(from_kind, from_kind, true));
            let swapped = if only_order { swap(from.size()) } else { None };
            let between = if swapped.is_some() { None } else { same() };
            let changes_sign = from_kind != to_kind;
            return Some(Self { depends_on_library: changes_sign, ..new(swapped, between, None) });
        }
        let native = |order| order == ByteOrder::NATIVE;
        let between = kernel(from_kind, to_kind, native(from_order) && native(to_order));
        let before = if native(from_order) { None } else { swap(from.size()) };
        let after = if native(to_order) { None } else { swap(to.size()) };
        // Rules for integers are the same everywhere, and all machines round them alike.
        let depends_on_library = from_kind.is_float() || to_kind == Kind::F16;
        Some(Self { depends_on_library, ..new(before, Some(between), after) })
    }

    pub fn depends_on_library(&self) -> bool {
        self.depends_on_library
    }

    /// Bytes of a number before and after.
    pub fn sizes(&self) -> (usize, usize) {
        (self.from_size, self.to_size)
    }

    /// Converts as many numbers as both slices hold.
    pub fn convert(&self, from: &[u8], to: &mut [u8]) {
        let run = |kernel: Kernel, from: &[u8], to: &mut [u8]| {
            // SAFETY: `kernel` and `swap` give functions that this machine can run.
            unsafe { kernel(from, to) }
        };
        let (before, between, after) = match (self.before, self.between, self.after) {
            (Some(swap), None, _) => return run(swap, from, to),
            (None, Some(between), None) => return run(between, from, to),
            (_, None, _) => return,
            (before, Some(between), after) => (before, between, after),
        };
        let mut scratch = [0; BLOCK * LARGEST];
        let blocks = from.chunks(BLOCK * self.from_size).zip(to.chunks_mut(BLOCK * self.to_size));
        for (from, to) in blocks {
            let count = (from.len() / self.from_size).min(to.len() / self.to_size);
            let from = match before {
                Some(swap) => {
                    run(swap, from, &mut scratch[..count * self.from_size]);
                    &scratch[..count * self.from_size]
                }
                None => from,
            };
            match after {
                None => run(between, from, to),
                Some(swap) => {
                    let mut native = [0; BLOCK * LARGEST];
                    run(between, from, &mut native[..count * self.to_size]);
                    run(swap, &native[..count * self.to_size], to);
                }
            }
        }
    }
}
