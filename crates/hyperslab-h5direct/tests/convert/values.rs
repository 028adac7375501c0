//! Numbers worth converting.

use super::library::has_hardware_halves;
use hyperslab_core::{ByteOrder, Datatype};

/// Every type of number in one byte order; without floats of 2 bytes where libhdf5 has other rules for them.
pub fn types(order: ByteOrder) -> Vec<Datatype> {
    let integers = [1, 2, 4, 8].into_iter().flat_map(|size| [true, false].map(|signed| (size, signed)));
    let integers = integers.map(|(size, signed)| Datatype::Integer { size, signed, order });
    let halves = (!has_hardware_halves()).then_some(2);
    if halves.is_none() {
        eprintln!("not compared: floats of 2 bytes, for which this libhdf5 uses hardware");
    }
    integers.chain(halves.into_iter().chain([4, 8]).map(|size| Datatype::Float { size, order })).collect()
}

/// Numbers that look random.
pub struct Dice(pub u64);

impl Dice {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Bits of numbers of a type: the ends of all ranges and what is next to them, then random ones of all magnitudes.
pub fn interesting(dtype: &Datatype, random: usize, seed: u64) -> Vec<u64> {
    let mut dice = Dice(seed);
    let mut bits = Vec::new();
    match *dtype {
        Datatype::Integer { size, .. } => {
            for power in 0..64 {
                for near in [-2i64, -1, 0, 1, 2] {
                    let edge = (1u64 << power).wrapping_add_signed(near);
                    bits.extend([edge, edge.wrapping_neg()]);
                }
            }
            // Half way between two floats, and next to that.
            for (power, digits) in (8..64).flat_map(|power| [10, 23, 52].map(|digits| (power, digits))) {
                if power > digits {
                    let half = 1u64 << (power - digits - 1);
                    let one = 1u64 << power;
                    for odd in [one + half, one + 3 * half, one + half + 1, (one << 1).wrapping_sub(half)] {
                        bits.extend([odd, odd.wrapping_sub(1), odd.wrapping_neg()]);
                    }
                }
            }
            bits.extend((0..random).map(|_| {
                let shift = dice.next() % (8 * u64::from(size));
                dice.next() >> shift
            }));
        }
        Datatype::Float { size, .. } => {
            let fraction = match size {
                2 => 10,
                4 => 23,
                _ => 52,
            };
            let exponents = 1u64 << (8 * u32::from(size) - 1 - fraction);
            // Far from what any other type has, some exponents will do.
            let far = |exponent: u64| size == 8 && exponent.abs_diff(1023) > 160 && exponent % 64 > 1;
            // The others with fractions that are round, full, half way for a narrower type, or next to that.
            let mut fractions = vec![0, 1, 2, (1 << fraction) - 1, (1 << fraction) - 2, 1 << (fraction - 1)];
            for cut in [13, 29, 42] {
                if cut <= fraction {
                    let half = 1u64 << (cut - 1);
                    let full = (1u64 << fraction) - half;
                    fractions.extend([half, half - 1, half + 1, 3 * half, 3 * half - 1, full, full - 1, full + 1]);
                }
            }
            for exponent in (0..exponents).filter(|exponent| !far(*exponent)) {
                for fraction_bits in &fractions {
                    let magnitude = exponent << fraction | (fraction_bits & ((1 << fraction) - 1));
                    bits.extend([magnitude, magnitude | exponents << fraction]);
                }
            }
            // Integers and their neighbours, where they have floats.
            for power in -2..66 {
                for near in [-1i64, 0, 1] {
                    let number = 2f64.powi(power);
                    let edge = match size {
                        2 => continue,
                        4 => u64::from((number as f32).to_bits()),
                        _ => number.to_bits(),
                    };
                    let edge = edge.wrapping_add_signed(near);
                    bits.extend([edge, edge | exponents << fraction]);
                }
            }
            bits.extend((0..random).map(|_| dice.next()));
            if size == 2 {
                bits.extend(0..1 << 16);
            }
        }
        _ => {}
    }
    bits
}

/// Packed numbers of a type from their bits.
pub fn packed(dtype: &Datatype, bits: &[u64]) -> Vec<u8> {
    let size = dtype.size() as usize;
    let order = match dtype {
        Datatype::Integer { order, .. } | Datatype::Float { order, .. } => *order,
        _ => ByteOrder::NATIVE,
    };
    let mut out = Vec::with_capacity(bits.len() * size);
    for bits in bits {
        let little = bits.to_le_bytes();
        match order {
            ByteOrder::Little => out.extend(&little[..size]),
            ByteOrder::Big => out.extend(little[..size].iter().rev()),
        }
    }
    out
}
