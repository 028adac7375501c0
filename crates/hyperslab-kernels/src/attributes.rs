//! Steps that set attributes.

use hyperslab_core::workload::Step;
use hyperslab_core::{Attribute, ByteOrder, Datatype, Dims};
use std::sync::Arc;

/// A 32-bit integer without sign.
pub const U32: Datatype = Datatype::Integer { size: 4, signed: false, order: ByteOrder::NATIVE };
/// A 64-bit integer without sign.
pub const U64: Datatype = Datatype::Integer { size: 8, signed: false, order: ByteOrder::NATIVE };

/// One number without sign in 32 bits.
pub fn unsigned(value: u32) -> Attribute {
    Attribute { dtype: U32, shape: Dims::new(), data: value.to_ne_bytes().to_vec() }
}

/// One 32-bit integer.
pub fn integer(value: i32) -> Attribute {
    Attribute { dtype: Datatype::I32, shape: Dims::new(), data: value.to_ne_bytes().to_vec() }
}

/// A list of numbers without sign.
pub fn extents(values: &[u64]) -> Attribute {
    list(U64, values.iter().map(|value| value.to_ne_bytes()))
}

/// A list of 32-bit integers.
pub fn integers(values: &[i32]) -> Attribute {
    list(Datatype::I32, values.iter().map(|value| value.to_ne_bytes()))
}

/// A list of floats.
pub fn floats(values: &[f64]) -> Attribute {
    list(Datatype::F64, values.iter().map(|value| value.to_ne_bytes()))
}

/// A list of texts of the same length.
pub fn texts(values: &[&str]) -> Attribute {
    let longest = values.iter().map(|text| text.len()).max().unwrap_or(0).max(1);
    let padded = |text: &&str| text.bytes().chain(std::iter::repeat(0)).take(longest).collect::<Vec<u8>>();
    Attribute {
        dtype: Datatype::FixedString(longest as u32),
        shape: Dims::from_slice(&[values.len() as u64]),
        data: values.iter().flat_map(padded).collect(),
    }
}

fn list<const N: usize>(dtype: Datatype, values: impl ExactSizeIterator<Item = [u8; N]>) -> Attribute {
    let shape = Dims::from_slice(&[values.len() as u64]);
    Attribute { dtype, shape, data: values.flatten().collect() }
}

/// The steps that set these attributes of an object.
pub fn set<'a>(file: u32, object: &str, values: impl IntoIterator<Item = (&'a str, Attribute)>) -> Vec<Step> {
    let object: Arc<str> = object.into();
    let step =
        |(name, value): (&str, Attribute)| Step::Attribute { file, object: object.clone(), name: name.into(), value };
    values.into_iter().map(step).collect()
}
