//! Loops over packed numbers of the machine's byte order, one for each pair of types and each set of rules.

use super::cast::Cast;
use super::fast_paths;
use super::half::Half;
use hyperslab_core::{ByteOrder, Datatype};

/// Converts as many packed numbers as both slices hold.
///
/// # Safety
/// The machine must have the instructions that the function was compiled for; [`kernel`] gives only such.
pub(super) type Kernel = unsafe fn(&[u8], &mut [u8]);

/// A kind of number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

impl Kind {
    /// The kind and byte order of a type; `None` for what is no number.
    pub fn of(dtype: &Datatype) -> Option<(Self, ByteOrder)> {
        Some(match *dtype {
            Datatype::Integer { size, signed, order } => {
                let kind = match (size, signed) {
                    (1, true) => Self::I8,
                    (1, false) => Self::U8,
                    (2, true) => Self::I16,
                    (2, false) => Self::U16,
                    (4, true) => Self::I32,
                    (4, false) => Self::U32,
                    (8, true) => Self::I64,
                    (8, false) => Self::U64,
                    _ => return None,
                };
                (kind, order)
            }
            Datatype::Float { size: 2, order } => (Self::F16, order),
            Datatype::Float { size: 4, order } => (Self::F32, order),
            Datatype::Float { size: 8, order } => (Self::F64, order),
            _ => return None,
        })
    }

    /// Whether it has a fraction.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

/// Whether this machine has the wider instructions. Tests may do without them.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_wide_instructions() -> bool {
    #[cfg(test)]
    if tests::WITHOUT.get() {
        return false;
    }
    std::arch::is_x86_feature_detected!("avx2")
}

/// A loop as compiled for the instructions of this machine: those that all have, or wider ones.
macro_rules! compiled {
    ($body:ident) => {{
        fn plain(from: &[u8], to: &mut [u8]) {
            $body(from, to);
        }

        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2")]
            fn wide(from: &[u8], to: &mut [u8]) {
                $body(from, to);
            }
            if $crate::convert::kernel::has_wide_instructions() { wide as Kernel } else { plain as Kernel }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            plain as Kernel
        }
    }};
}
pub(super) use compiled;

macro_rules! pair {
    ($from:ty, $to:ty, $rules:ident) => {{
        #[inline(always)]
        fn body(from: &[u8], to: &mut [u8]) {
            let (from, _) = from.as_chunks::<{ size_of::<$from>() }>();
            let (to, _) = to.as_chunks_mut::<{ size_of::<$to>() }>();
            for (from, to) in from.iter().zip(to) {
                let value: $to = <$from>::from_ne_bytes(*from).$rules();
                *to = value.to_ne_bytes();
            }
        }

        compiled!(body)
    }};
}

macro_rules! to_any {
    ($from:ty, $to:expr, $rules:ident) => {
        match $to {
            Kind::I8 => pair!($from, i8, $rules),
            Kind::U8 => pair!($from, u8, $rules),
            Kind::I16 => pair!($from, i16, $rules),
            Kind::U16 => pair!($from, u16, $rules),
            Kind::I32 => pair!($from, i32, $rules),
            Kind::U32 => pair!($from, u32, $rules),
            Kind::I64 => pair!($from, i64, $rules),
            Kind::U64 => pair!($from, u64, $rules),
            Kind::F16 => pair!($from, Half, $rules),
            Kind::F32 => pair!($from, f32, $rules),
            Kind::F64 => pair!($from, f64, $rules),
        }
    };
}

/// The loop for a pair of kinds. `hard`: both are of the machine's own byte order.
pub(super) fn kernel(from: Kind, to: Kind, hard: bool) -> Kernel {
    if let Some(kernel) = fast_paths::kernel(from, to, hard) {
        return kernel;
    }
    match (from, hard) {
        // Their rules are the same.
        (Kind::I8, _) => to_any!(i8, to, hard),
        (Kind::U8, _) => to_any!(u8, to, hard),
        (Kind::I16, _) => to_any!(i16, to, hard),
        (Kind::U16, _) => to_any!(u16, to, hard),
        (Kind::I32, _) => to_any!(i32, to, hard),
        (Kind::U32, _) => to_any!(u32, to, hard),
        (Kind::I64, _) => to_any!(i64, to, hard),
        (Kind::U64, _) => to_any!(u64, to, hard),
        (Kind::F16, _) => to_any!(Half, to, soft),
        (Kind::F32, true) => to_any!(f32, to, hard),
        (Kind::F32, false) => to_any!(f32, to, soft),
        (Kind::F64, true) => to_any!(f64, to, hard),
        (Kind::F64, false) => to_any!(f64, to, soft),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::Conversion;
    use hyperslab_core::Datatype;
    use std::cell::Cell;

    thread_local! {
        pub(super) static WITHOUT: Cell<bool> = const { Cell::new(false) };
    }

    /// The tests against libhdf5 run what this machine is best at; machines without wide instructions must get the same.
    #[test]
    fn results_do_not_depend_on_the_instructions() {
        let names = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"];
        let types = || ["<", ">"].into_iter().flat_map(|order| names.map(|name| format!("{order}{name}")));
        let types: Vec<Datatype> = types().map(|text| text.parse().unwrap()).collect();
        // Every exponent of every float, and much else.
        let bits = (0..1 << 16)
            .flat_map(|n: u64| (n << 48 | n << 29 | n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40).to_le_bytes());
        let bits: Vec<u8> = bits.chain([0; 64]).collect();
        for (from, to) in types.iter().flat_map(|from| types.iter().map(move |to| (from, to))) {
            let convert = |without| {
                WITHOUT.set(without);
                let mut out = vec![0; bits.len() / from.size() as usize * to.size() as usize];
                if let Some(conversion) = Conversion::new(from, to).unwrap() {
                    conversion.convert(&bits, &mut out).unwrap();
                }
                WITHOUT.set(false);
                out
            };
            assert!(convert(true) == convert(false), "{from} to {to}");
        }
    }
}
