//! Vectorised fast paths for conversions with rare special cases: a block without special values is converted by vector
//! instructions, any other value by value.

use super::cast::Cast;
use super::float_narrowing::{DOUBLE, HALF, SINGLE, narrow};
use super::half::Half;
use super::kernel::{Kernel, Kind, compiled};

/// Numbers per block.
const BLOCK: usize = 32;

/// A loop over blocks. `$usual` returns the result for an ordinary number and whether it is one; `$any` converts any.
macro_rules! blocks {
    ($from:ty, $to:ty, $usual:ident, $any:ident) => {{
        #[inline(always)]
        fn body(from: &[u8], to: &mut [u8]) {
            let (from, _) = from.as_chunks::<{ size_of::<$from>() }>();
            let (to, _) = to.as_chunks_mut::<{ size_of::<$to>() }>();
            for (from, to) in from.chunks(BLOCK).zip(to.chunks_mut(BLOCK)) {
                let mut all_usual = true;
                for (from, to) in from.iter().zip(to.iter_mut()) {
                    let (value, usual): ($to, bool) = $usual(<$from>::from_ne_bytes(*from));
                    *to = value.to_ne_bytes();
                    all_usual &= usual;
                }
                if !all_usual {
                    for (from, to) in from.iter().zip(to.iter_mut()) {
                        let value: $to = $any(<$from>::from_ne_bytes(*from));
                        *to = value.to_ne_bytes();
                    }
                }
            }
        }
        compiled!(body)
    }};
}

/// Narrowing of floats: ordinary are zero and numbers whose result is normal.
macro_rules! narrowing {
    ($from:ty, $signed:ty, $from_form:ident, $to:ty, $to_form:ident) => {{
            #[inline(always)]
            fn usual(bits: $from) -> ($to, bool) {
                const CUT: u32 = $from_form.fraction - $to_form.fraction;
                const REBASE: $signed = (($from_form.bias() - $to_form.bias()) as $signed) << $from_form.fraction;
                const LEAST: $signed = REBASE + (1 << $from_form.fraction);
                const BEYOND: $signed = REBASE + (($to_form.largest_exponent() as $signed) << $from_form.fraction);
                const LARGEST: $signed = (($to_form.largest_exponent() as $signed) << $to_form.fraction) - 1;
                let magnitude = (bits & (<$from>::MAX >> 1)) as $signed;
                let sign = (bits >> (<$from>::BITS - 1)) as $to << (<$to>::BITS - 1);
                let rounded = (magnitude.wrapping_sub(REBASE).wrapping_add(1 << (CUT - 1))) >> CUT;
                let rounded = if rounded < LARGEST { rounded } else { LARGEST };
                let value = if magnitude == 0 { 0 } else { rounded };
                let usual = (LEAST..BEYOND).contains(&magnitude) || magnitude == 0;
                (value as $to | sign, usual)
            }

            #[inline(always)]
            fn any(bits: $from) -> $to {
                narrow(u64::from(bits), $from_form, $to_form) as $to
            }
            blocks!($from, $to, usual, any)
    }};
}

/// Integers to 2-byte floats: ordinary are magnitudes below 65536, which `f32` represents exactly.
macro_rules! integers_to_half {
    ($from:ty) => {{
        #[inline(always)]
        fn usual(value: $from) -> (Half, bool) {
            let small = value as i32;
            let bits = (small as f32).to_bits();
            let (sign, magnitude) = ((bits >> 16) as u16 & 0x8000, bits & 0x7FFF_FFFF);
            let odd = (magnitude >> 13) & 1;
            // To the nearest, ties to even; the difference of the biases is taken off.
            let rounded = (magnitude.wrapping_sub(112 << 23).wrapping_add(0xFFF + odd)) >> 13;
            let half = if magnitude == 0 { 0 } else { rounded as u16 };
            let least = if <$from>::MIN == 0 { 0 } else { -65535 };
            (Half(half | sign), value == small as $from && small >= least && small < 65536)
        }

        #[inline(always)]
        fn any(value: $from) -> Half {
            #[allow(unused_comparisons, reason = "for unsigned ones, too")]
            let negative = value < 0;
            Half::from_integer(negative, i128::from(value).unsigned_abs() as u64)
        }
        blocks!($from, Half, usual, any)
    }};
}

/// Floats to 8-byte integers, for which few machines have vector instructions: ordinary are magnitudes below 2^51,
/// whose integer part can be read from the fraction bits of an `f64`.
macro_rules! floats_to_long {
    ($from:ty, $to:ty, $rules:ident) => {{
        #[inline(always)]
        fn usual(value: $from) -> ($to, bool) {
            /// Between this and its double, floats are the integers.
            const WHOLE: f64 = (1u64 << 52) as f64 * 1.5;
            const BEYOND: f64 = (1u64 << 51) as f64;
            let value = f64::from(value);
            let usual = value > -BEYOND && value < BEYOND;
            // Negative ones are clamped, and those near to zero become the lowest by the soft rules.
            let lost = <$to>::MIN != 0 && stringify!($rules) == "soft" && value < 0.0 && value > -0.5;
            let value = if <$to>::MIN == 0 && value < 0.0 { 0.0 } else { value };
            let nearest = (value + WHOLE) - WHOLE;
            let up = if nearest > value && value > 0.0 { 1.0 } else { 0.0 };
            let down = if nearest < value && value < 0.0 { 1.0 } else { 0.0 };
            let whole = (nearest - up + down + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits()) as $to;
            (if lost { <$to>::MIN } else { whole }, usual)
        }

        #[inline(always)]
        fn any(value: $from) -> $to {
            value.$rules()
        }
        blocks!($from, $to, usual, any)
    }};
}

/// The fast path of a pair of types, if there is one.
pub(super) fn kernel(from: Kind, to: Kind, hard: bool) -> Option<Kernel> {
    Some(match (from, to) {
        (Kind::F64, Kind::F32) if !hard => narrowing!(u64, i64, DOUBLE, u32, SINGLE),
        (Kind::F64, Kind::F16) => narrowing!(u64, i64, DOUBLE, u16, HALF),
        (Kind::F32, Kind::F16) => narrowing!(u32, i32, SINGLE, u16, HALF),
        (Kind::F32, Kind::I64) if hard => floats_to_long!(f32, i64, hard),
        (Kind::F32, Kind::U64) if hard => floats_to_long!(f32, u64, hard),
        (Kind::F64, Kind::I64) if hard => floats_to_long!(f64, i64, hard),
        (Kind::F64, Kind::U64) if hard => floats_to_long!(f64, u64, hard),
        (Kind::F32, Kind::I64) => floats_to_long!(f32, i64, soft),
        (Kind::F32, Kind::U64) => floats_to_long!(f32, u64, soft),
        (Kind::F64, Kind::I64) => floats_to_long!(f64, i64, soft),
        (Kind::F64, Kind::U64) => floats_to_long!(f64, u64, soft),
        (Kind::I8, Kind::F16) => integers_to_half!(i8),
        (Kind::U8, Kind::F16) => integers_to_half!(u8),
        (Kind::I16, Kind::F16) => integers_to_half!(i16),
        (Kind::U16, Kind::F16) => integers_to_half!(u16),
        (Kind::I32, Kind::F16) => integers_to_half!(i32),
        (Kind::U32, Kind::F16) => integers_to_half!(u32),
        (Kind::I64, Kind::F16) => integers_to_half!(i64),
        (Kind::U64, Kind::F16) => integers_to_half!(u64),
        _ => return None,
    })
}
