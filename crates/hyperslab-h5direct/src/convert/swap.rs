//! Numbers in the other byte order.

use super::kernel::{Kernel, compiled};

macro_rules! swapped {
    ($number:ty) => {{
        #[inline(always)]
        fn body(from: &[u8], to: &mut [u8]) {
            let (from, _) = from.as_chunks::<{ size_of::<$number>() }>();
            let (to, _) = to.as_chunks_mut::<{ size_of::<$number>() }>();
            for (from, to) in from.iter().zip(to) {
                *to = <$number>::from_ne_bytes(*from).swap_bytes().to_ne_bytes();
            }
        }

        compiled!(body)
    }};
}

/// The loop for numbers of so many bytes; `None` for bytes, which have no order.
pub(super) fn swap(size: u64) -> Option<Kernel> {
    match size {
        2 => Some(swapped!(u16)),
        4 => Some(swapped!(u32)),
        8 => Some(swapped!(u64)),
        _ => None,
    }
}
