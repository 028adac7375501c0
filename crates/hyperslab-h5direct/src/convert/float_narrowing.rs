//! Floats to narrower ones by libhdf5's own arithmetic, which it uses where the machine's does not apply: for numbers in the
//! other byte order, and for those of 2 bytes.
//!
//! It rounds to the nearest, ties away from zero; never from the largest number to infinity. What is not a number keeps its sign
//! and has all bits of its fraction set. Where the result has no full exponent, a carry out of its fraction is lost.

/// The form of an IEEE number: bits of its exponent and of its fraction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub exponent: u32,
    pub fraction: u32,
}

pub(super) const HALF: Form = Form { exponent: 5, fraction: 10 };
pub(super) const SINGLE: Form = Form { exponent: 8, fraction: 23 };
pub(super) const DOUBLE: Form = Form { exponent: 11, fraction: 52 };

impl Form {
    pub const fn bias(self) -> i64 {
        (1 << (self.exponent - 1)) - 1
    }

    pub const fn largest_exponent(self) -> i64 {
        (1 << self.exponent) - 1
    }

    const fn sign(self) -> u32 {
        self.exponent + self.fraction
    }
}

/// The bits of a number in a form with less exponent and fraction.
#[inline(always)]
pub(super) fn narrow(bits: u64, from: Form, to: Form) -> u64 {
    let magnitude = bits & ((1 << from.sign()) - 1);
    let sign = bits >> from.sign() << to.sign();
    let exponent = (magnitude >> from.fraction) as i64 - from.bias() + to.bias();
    if exponent >= 1 && exponent < to.largest_exponent() {
        let cut = from.fraction - to.fraction;
        let rebased = magnitude - (((from.bias() - to.bias()) as u64) << from.fraction);
        let largest = ((to.largest_exponent() as u64) << to.fraction) - 1;
        return sign | ((rebased + (1 << (cut - 1))) >> cut).min(largest);
    }
    sign | unusual(magnitude, from, to)
}

/// The rest: zero, infinity, what is not a number, and what becomes zero, infinite or loses its leading bits.
#[inline(never)]
fn unusual(magnitude: u64, from: Form, to: Form) -> u64 {
    let infinity = (to.largest_exponent() as u64) << to.fraction;
    let (field, fraction) = ((magnitude >> from.fraction) as i64, magnitude & ((1 << from.fraction) - 1));
    if field == from.largest_exponent() {
        return if fraction == 0 { infinity } else { infinity | ((1 << to.fraction) - 1) };
    }
    let exponent = field - from.bias() + to.bias();
    if exponent >= to.largest_exponent() {
        return infinity;
    }
    // A source without a full exponent is far too small for any target that has less of it.
    if exponent < -i64::from(to.fraction) {
        return 0;
    }
    let shift = (1 - exponent) as u32;
    if shift == to.fraction + 1 {
        return 1;
    }
    let keeps = to.fraction - shift;
    // The carry is lost, and with it half of the number.
    let kept = (((fraction >> (from.fraction - keeps - 1)) + 1) >> 1) & ((1 << keeps) - 1);
    1 << keeps | kept
}
