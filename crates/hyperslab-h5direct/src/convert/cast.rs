//! One number as another, by libhdf5's rules.
//!
//! `hard` is what libhdf5 does with numbers of the machine's own kinds: an explicit clamp, then a cast in C. Where C leaves the cast
//! open (of what is not a number, or of the float just above the largest integer) the result is that of the machine's instruction.
//! `soft` is what its own arithmetic gives, which it uses for all other numbers: the ends are the same.

use super::float_narrowing::{DOUBLE, HALF, SINGLE, narrow};
use super::half::Half;

pub(super) trait Cast<To> {
    fn hard(self) -> To;
    fn soft(self) -> To;
}

/// The smaller of two ranges' ends, as a number of the source's type.
macro_rules! common {
    ($from:ty, $to:ty) => {{
        const LOW: i128 =
            if (<$from>::MIN as i128) > (<$to>::MIN as i128) { <$from>::MIN as i128 } else { <$to>::MIN as i128 };
        const HIGH: i128 =
            if (<$from>::MAX as i128) < (<$to>::MAX as i128) { <$from>::MAX as i128 } else { <$to>::MAX as i128 };
        (LOW as $from, HIGH as $from)
    }};
}

macro_rules! integer_to_integers {
    ($from:ty: $($to:ty)*) => {$(
        impl Cast<$to> for $from {
            #[inline(always)]
            fn hard(self) -> $to {
                let (low, high) = common!($from, $to);
                self.clamp(low, high) as $to
            }

            #[inline(always)]
            fn soft(self) -> $to {
                self.hard()
            }
        }
    )*};
}

macro_rules! integer_to_floats {
    ($from:ty: $($to:ty)*) => {$(
        impl Cast<$to> for $from {
            #[inline(always)]
            fn hard(self) -> $to {
                self as $to
            }

            #[inline(always)]
            fn soft(self) -> $to {
                self as $to
            }
        }
    )*};
}

macro_rules! integers {
    ($($from:ty)*) => {$(
        integer_to_integers!($from: i8 u8 i16 u16 i32 u32 i64 u64);
        integer_to_floats!($from: f32 f64);

        impl Cast<Half> for $from {
            #[inline(always)]
            fn hard(self) -> Half {
                self.soft()
            }

            #[inline(always)]
            fn soft(self) -> Half {
                #[allow(unused_comparisons, reason = "for unsigned ones, too")]
                let negative = self < 0;
                Half::from_integer(negative, (self as i128).unsigned_abs() as u64)
            }
        }
    )*};
}

integers!(i8 u8 i16 u16 i32 u32 i64 u64);

/// What a cast gives where C leaves it open, with the instructions that compilers choose on this machine.
#[cfg(target_arch = "x86_64")]
macro_rules! open {
    (u32) => {
        0
    };
    (u64) => {
        1 << 63
    };
    (i32) => {
        i32::MIN
    };
    (i64) => {
        i64::MIN
    };
    ($narrow:ty) => {
        0
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! open {
    ($to:ty) => {
        0
    };
}

/// Where the largest integer is no float, the next one is not larger than it to the comparison before the cast.
#[cfg(target_arch = "x86_64")]
macro_rules! just_above {
    (u64) => {
        0
    };
    ($to:tt) => {
        open!($to)
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! just_above {
    ($to:tt) => {
        <$to>::MAX
    };
}

/// What machines have instructions for.
macro_rules! wide_enough {
    (i8) => {
        i32
    };
    (u8) => {
        i32
    };
    (i16) => {
        i32
    };
    (u16) => {
        i32
    };
    ($to:tt) => {
        $to
    };
}

/// A float without its fraction, clamped. What `as` gives, but for two cases that are chosen, and in a form of which compilers make
/// vector instructions.
macro_rules! truncated {
    ($value:expr, $from:ty, $to:tt, $just_above:expr, $no_number:expr) => {{
        const LOW: $from = <$to>::MIN as $from;
        const ABOVE: $from = <$to>::MAX as $from;
        const ROUNDED: bool = <$to>::MAX as i128 != ABOVE as i128;
        const HIGH: $from = if ROUNDED { ABOVE.next_down() } else { ABOVE };
        let value = $value;
        // In this order, so that what is not a number becomes the lowest.
        let inside = if value >= LOW { value } else { LOW };
        let inside = if inside <= HIGH { inside } else { HIGH };
        // SAFETY: it is a number between the lowest and the highest that are in the range of the target.
        let mut whole = unsafe { inside.to_int_unchecked::<wide_enough!($to)>() } as $to;
        if ROUNDED {
            whole = if value > HIGH { <$to>::MAX } else { whole };
            whole = if value == ABOVE { $just_above } else { whole };
        }
        if $no_number != <$to>::MIN && value.is_nan() { $no_number } else { whole }
    }};
}

macro_rules! float_to_integers {
    ($from:ty: $($to:tt)*) => {$(
        impl Cast<$to> for $from {
            #[inline(always)]
            fn hard(self) -> $to {
                truncated!(self, $from, $to, just_above!($to), open!($to))
            }

            #[inline(always)]
            fn soft(self) -> $to {
                // Negative numbers so near to zero become the lowest of all: a defect of libhdf5 2.2.
                let lost = <$to>::MIN != 0 && self < 0.0 && self > -0.5;
                let value = truncated!(self, $from, $to, <$to>::MAX, 0);
                if lost { <$to>::MIN } else { value }
            }
        }
    )*};
}

float_to_integers!(f32: i8 u8 i16 u16 i32 u32 i64 u64);
float_to_integers!(f64: i8 u8 i16 u16 i32 u32 i64 u64);

impl Cast<f64> for f32 {
    #[inline(always)]
    fn hard(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn soft(self) -> f64 {
        let all = f64::from_bits(u64::from(self.to_bits() >> 31) << 63 | 0x7FFF_FFFF_FFFF_FFFF);
        if self.is_nan() { all } else { f64::from(self) }
    }
}

impl Cast<f32> for f64 {
    #[inline(always)]
    fn hard(self) -> f32 {
        let largest = f64::from(f32::MAX);
        let above = if self > largest { f32::INFINITY } else { self as f32 };
        if self < -largest { f32::NEG_INFINITY } else { above }
    }

    #[inline(always)]
    fn soft(self) -> f32 {
        f32::from_bits(narrow(self.to_bits(), DOUBLE, SINGLE) as u32)
    }
}

macro_rules! itself {
    ($($number:ty)*) => {$(
        impl Cast<$number> for $number {
            #[inline(always)]
            fn hard(self) -> $number {
                self
            }

            #[inline(always)]
            fn soft(self) -> $number {
                self
            }
        }
    )*};
}

itself!(Half f32 f64);

macro_rules! half {
    ($($to:ty)*) => {$(
        impl Cast<$to> for Half {
            #[inline(always)]
            fn hard(self) -> $to {
                self.soft()
            }

            #[inline(always)]
            fn soft(self) -> $to {
                // Exact for every one, so that nothing is rounded twice.
                <f32 as Cast<$to>>::soft(self.widen())
            }
        }
    )*};
}

half!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);

impl Cast<Half> for f32 {
    #[inline(always)]
    fn hard(self) -> Half {
        self.soft()
    }

    #[inline(always)]
    fn soft(self) -> Half {
        Half(narrow(u64::from(self.to_bits()), SINGLE, HALF) as u16)
    }
}

impl Cast<Half> for f64 {
    #[inline(always)]
    fn hard(self) -> Half {
        self.soft()
    }

    #[inline(always)]
    fn soft(self) -> Half {
        Half(narrow(self.to_bits(), DOUBLE, HALF) as u16)
    }
}
