//! Whether the program's libhdf5 converts floats as the direct path does, bit by bit: asked once for each pair of types.

use crate::host::Host;
use crate::host::api::{H5P_DEFAULT, Hid};
use hyperslab_core::{ByteOrder, Datatype};
use hyperslab_h5direct::Conversion;
use std::ptr::null_mut;
use std::sync::PoisonError;

/// Smaller transfers are not worth the question; libhdf5 converts them.
const WORTH_ASKING: u64 = 1 << 16;
/// Fractions of floats, from the top of their bits: around everything that is rounded or is not a number.
const FRACTIONS: [u64; 12] = [
    0,
    1,
    1 << 51,
    (1 << 51) - 1,
    (1 << 51) + 1,
    1 << 28,
    (1 << 28) - 1,
    (1 << 28) + 1,
    3 << 28,
    (1 << 29) - 1,
    (1 << 52) - 1,
    ((1 << 52) - 1) ^ ((1 << 29) - 1),
];
const RANDOM: u64 = 4096;

/// A number type, and libhdf5's identifier of it.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    pub(super) dtype: &'a Datatype,
    pub(super) id: Hid,
}

/// Whether libhdf5 gives the same as this conversion, which may depend on its version. `false` also if that is not known and
/// the transfer is small.
///
/// # Safety
/// Inside a call of the library; both types are open.
pub(super) unsafe fn converts_alike(
    host: &Host,
    conversion: &Conversion,
    from: Numbers<'_>,
    to: Numbers<'_>,
    elements: u64,
) -> bool {
    let mut known = host.conversions.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, _, alike)) = known.iter().find(|(one, other, _)| one == from.dtype && other == to.dtype) {
        return *alike;
    }
    if elements < WORTH_ASKING {
        return false;
    }
    // SAFETY: the caller's.
    let alike = host.preserving_error_stack(|| unsafe { compare(host, conversion, from, to) }).unwrap_or(false);
    known.push((from.dtype.clone(), to.dtype.clone(), alike));
    alike
}

unsafe fn compare(host: &Host, conversion: &Conversion, from: Numbers<'_>, to: Numbers<'_>) -> Option<bool> {
    let probes = probes(from.dtype)?;
    let (before, after) = (from.dtype.size() as usize, to.dtype.size() as usize);
    let elements = probes.len() / before;
    let mut ours = vec![0; elements * after];
    conversion.convert(&probes, &mut ours).ok()?;
    let mut theirs = probes;
    theirs.resize(elements * before.max(after), 0);
    // SAFETY: both types are open, and the buffer has room for the elements in either.
    let status =
        unsafe { host.H5Tconvert(from.id, to.id, elements, theirs.as_mut_ptr().cast(), null_mut(), H5P_DEFAULT) };
    (status >= 0).then(|| theirs[..elements * after] == ours)
}

/// Floats of a type: each exponent with fractions that matter, and random bits.
fn probes(dtype: &Datatype) -> Option<Vec<u8>> {
    let Datatype::Float { size, order } = dtype else { return None };
    let bits = u64::from(*size) * 8;
    let fraction = match size {
        2 => 10,
        4 => 23,
        8 => 52,
        _ => return None,
    };
    let exponents = 0..1u64 << (bits - 1 - fraction);
    let mut patterns: Vec<u64> = Vec::new();
    for exponent in exponents {
        for of in FRACTIONS {
            // The bits from the top, and those at the bottom of shorter floats.
            for of in [of >> (52 - fraction), of & ((1 << fraction) - 1)] {
                let positive = exponent << fraction | of;
                patterns.extend([positive, positive | 1 << (bits - 1)]);
            }
        }
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    patterns.extend((0..RANDOM).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> (64 - bits)
    }));
    let size = usize::from(*size);
    let bytes = |pattern: u64| match order {
        ByteOrder::Little => pattern.to_le_bytes()[..size].to_vec(),
        ByteOrder::Big => pattern.to_be_bytes()[8 - size..].to_vec(),
    };
    Some(patterns.into_iter().flat_map(bytes).collect())
}
