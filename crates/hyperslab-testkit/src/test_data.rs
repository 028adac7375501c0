//! Elements that look like data: reproducible, valid for their type, and different from their neighbours.

use hyperslab_core::Datatype;

/// A reproducible stream of bytes.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        (self.next() >> 24) as u8
    }

    pub(crate) fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let mut noise = Self::new(seed);
        (0..len).map(|_| noise.byte()).collect()
    }
}

/// One valid element of `dtype`. Padding of compounds is noise.
pub fn element(dtype: &Datatype, seed: u64) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    let size = dtype.size() as usize;
    match dtype {
        Datatype::Bool => vec![noise.byte() & 1],
        Datatype::FixedString(_) => {
            // Shorter than the field now and then, since padding is what string types get wrong.
            let used = 1 + noise.next() as usize % size;
            (0..size).map(|i| if i < used { b'a' + noise.byte() % 26 } else { 0 }).collect()
        }
        Datatype::Float { size: bytes, order } => {
            let value = (noise.next() % 20_001) as f64 / 8.0 - 1250.0;
            float_bytes(value, *bytes, *order == hyperslab_core::ByteOrder::Big)
        }
        // It has no packed form.
        Datatype::VariableString => vec![0; size],
        Datatype::Integer { .. } | Datatype::Opaque(_) => (0..size).map(|_| noise.byte()).collect(),
        Datatype::Compound(compound) => {
            let mut out: Vec<u8> = (0..size).map(|_| noise.byte()).collect();
            for (i, field) in compound.fields.iter().enumerate() {
                let value = element(&field.dtype, seed.wrapping_add(1 + i as u64).wrapping_mul(31));
                out[field.offset as usize..][..value.len()].copy_from_slice(&value);
            }
            out
        }
    }
}

fn float_bytes(value: f64, size: u8, big: bool) -> Vec<u8> {
    let mut bytes = match size {
        2 => half::f16::from_f64(value).to_le_bytes().to_vec(),
        4 => (value as f32).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    };
    if big {
        bytes.reverse();
    }
    bytes
}

/// Which bytes of an element carry meaning: all but the padding of compounds.
pub(crate) fn meaningful(dtype: &Datatype) -> Vec<bool> {
    let Datatype::Compound(compound) = dtype else {
        return vec![true; dtype.size() as usize];
    };
    let mut out = vec![false; compound.size as usize];
    for field in &compound.fields {
        for (i, counts) in meaningful(&field.dtype).into_iter().enumerate() {
            out[field.offset as usize + i] = counts;
        }
    }
    out
}
