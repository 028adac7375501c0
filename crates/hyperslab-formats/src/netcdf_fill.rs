//! NetCDF's default fill values.

use hyperslab_core::{ByteOrder, Datatype};

/// NetCDF's value for elements never written, in the array's byte order; `None` for types without one.
pub fn default_fill(dtype: &Datatype) -> Option<Vec<u8>> {
    let order = |mut little: Vec<u8>, order: ByteOrder| {
        if order == ByteOrder::Big {
            little.reverse();
        }
        little
    };
    Some(match *dtype {
        Datatype::Integer { size: 1, signed: true, .. } => (-127i8).to_le_bytes().to_vec(),
        Datatype::Integer { size: 2, signed: true, order: o } => order((-32767i16).to_le_bytes().to_vec(), o),
        Datatype::Integer { size: 4, signed: true, order: o } => order((-2_147_483_647i32).to_le_bytes().to_vec(), o),
        Datatype::Integer { size: 8, signed: true, order: o } => {
            order((-9_223_372_036_854_775_806i64).to_le_bytes().to_vec(), o)
        }
        Datatype::Integer { size: 1, signed: false, .. } => vec![255],
        Datatype::Integer { size: 2, signed: false, order: o } => order(65535u16.to_le_bytes().to_vec(), o),
        Datatype::Integer { size: 4, signed: false, order: o } => order(4_294_967_295u32.to_le_bytes().to_vec(), o),
        Datatype::Integer { size: 8, signed: false, order: o } => {
            order(18_446_744_073_709_551_614u64.to_le_bytes().to_vec(), o)
        }
        Datatype::Float { size: 4, order: o } => order(9.969_21e36_f32.to_le_bytes().to_vec(), o),
        Datatype::Float { size: 8, order: o } => order(9.969_209_968_386_869e36f64.to_le_bytes().to_vec(), o),
        Datatype::FixedString(1) => vec![0],
        _ => return None,
    })
}
