//! IEEE numbers of 2 bytes, with libhdf5's own arithmetic: it has no hardware for them unless its compiler had.

/// The bits of a number of 2 bytes: sign, 5 bits of exponent, 10 of fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Half(pub u16);

impl Half {
    pub fn from_ne_bytes(bytes: [u8; 2]) -> Self {
        Self(u16::from_ne_bytes(bytes))
    }

    pub fn to_ne_bytes(self) -> [u8; 2] {
        self.0.to_ne_bytes()
    }

    /// The same number; what is none has all bits of its fraction set, as libhdf5 does.
    #[inline(always)]
    pub fn widen(self) -> f32 {
        let (sign, rest) = (u32::from(self.0 & 0x8000) << 16, u32::from(self.0 & 0x7FFF));
        // Shifted into place, the exponent is too small by the difference of the biases; a product is exact also where it has
        // to become normal.
        let finite = f32::from_bits(rest << 13) * f32::from_bits((127 + 127 - 15) << 23);
        let special = if rest == 0x7C00 { 0x7F80_0000 } else { 0x7FFF_FFFF };
        f32::from_bits(sign | if rest < 0x7C00 { finite.to_bits() } else { special })
    }

    /// An integer of this sign and magnitude, rounded to the nearest, ties to even.
    ///
    /// From 65536 to 131008, where the number does not fit, libhdf5 takes the exponent of infinity and keeps the fraction:
    /// what results is not a number, except for 65536 itself.
    #[inline(always)]
    pub fn from_integer(negative: bool, magnitude: u64) -> Self {
        if magnitude == 0 {
            return Self(0);
        }
        let sign = u16::from(negative) << 15;
        let first = 63 - magnitude.leading_zeros();
        let fraction = magnitude & !(1 << first);
        let mut exponent = first + 15;
        let kept = match first.checked_sub(10) {
            None | Some(0) => fraction << (10 - first),
            Some(cut) => {
                let (kept, rest, half) = (fraction >> cut, fraction & ((1 << cut) - 1), 1u64 << (cut - 1));
                let rounded = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
                exponent += (rounded >> 10) as u32;
                rounded & 0x3FF
            }
        };
        match exponent > 31 {
            true => Self(sign | 0x7C00),
            false => Self(sign | (exponent as u16) << 10 | kept as u16),
        }
    }
}
