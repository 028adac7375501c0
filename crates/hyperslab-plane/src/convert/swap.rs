//! Numbers in the other byte order.

use super::kernel::Kernel;

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

        fn plain(from: &[u8], to: &mut [u8]) {
            body(from, to);
        }

        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2")]
            fn wide(from: &[u8], to: &mut [u8]) {
                body(from, to);
            }
            if std::arch::is_x86_feature_detected!("avx2") { wide as Kernel } else { plain as Kernel }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            plain as Kernel
        }
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
