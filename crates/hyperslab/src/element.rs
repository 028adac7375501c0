//! Rust types that are elements of arrays.

use hyperslab_core::{ByteOrder, Datatype};

mod sealed {
    pub trait Sealed {}
}

/// A number that arrays can hold: `f32`, `f64` and the integers of 8 to 64 bits. Sealed.
///
/// ```
/// use hyperslab::{Datatype, Element};
/// assert_eq!(f32::datatype(), Datatype::F32);
/// assert_eq!(u16::datatype().to_string(), "<u2");
/// ```
pub trait Element: bytemuck::Pod + sealed::Sealed {
    /// The datatype of the number in this machine's byte order.
    fn datatype() -> Datatype;
}

macro_rules! elements {
    ($($rust:ty => $datatype:expr),* $(,)?) => {
        $(
            impl sealed::Sealed for $rust {}
            impl Element for $rust {
                fn datatype() -> Datatype {
                    $datatype
                }
            }
        )*
    };
}

const fn integer(size: u8, signed: bool) -> Datatype {
    Datatype::Integer { size, signed, order: ByteOrder::NATIVE }
}

elements! {
    f32 => Datatype::F32,
    f64 => Datatype::F64,
    i8 => integer(1, true),
    i16 => integer(2, true),
    i32 => integer(4, true),
    i64 => integer(8, true),
    u8 => integer(1, false),
    u16 => integer(2, false),
    u32 => integer(4, false),
    u64 => integer(8, false),
}
