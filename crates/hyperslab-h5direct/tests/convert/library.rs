//! libhdf5's own conversion, to compare with.

use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5t::{self, H5T_class_t};
use hdf5_metno_sys::{LOCK, h5, h5p};
use hyperslab_core::{ByteOrder, Datatype};
use std::ffi::CString;

/// A type of libhdf5, for as long as the process lives.
#[derive(Debug, Clone, Copy)]
pub struct LibraryType {
    id: hid_t,
    size: usize,
}

unsafe extern "C" {
    /// Negative where the compiler that built libhdf5 had no floats of 2 bytes.
    static H5T_NATIVE_FLOAT16_g: hid_t;
}

/// Whether libhdf5 converts floats of 2 bytes by hardware, by other rules than its own.
#[allow(dead_code, reason = "not all who include this file ask")]
pub fn has_hardware_halves() -> bool {
    let _guard = LOCK.lock();
    // SAFETY: the lock is held; the library sets the variable when it is opened.
    unsafe {
        h5::H5open();
        H5T_NATIVE_FLOAT16_g >= 0
    }
}

impl LibraryType {
    /// The type as libhdf5 knows it.
    pub fn new(dtype: &Datatype) -> Self {
        let _guard = LOCK.lock();
        // SAFETY: the lock is held; the library may be opened again.
        unsafe { h5::H5open() };
        Self { id: type_of(dtype), size: dtype.size() as usize }
    }

    /// Converts packed elements by `H5Tconvert`, the bytes of the target at the start being `background`.
    pub fn convert(self, to: Self, from: &[u8], background: &[u8]) -> Vec<u8> {
        let elements = from.len() / self.size;
        let mut buffer = from.to_vec();
        buffer.resize(elements * self.size.max(to.size), 0);
        let mut background = background.to_vec();
        background.resize(elements * to.size, 0);
        self.convert_in_place(to, elements, &mut buffer, &mut background);
        buffer.truncate(elements * to.size);
        buffer
    }

    /// The same in a buffer that is large enough for either form.
    pub fn convert_in_place(self, to: Self, elements: usize, buffer: &mut [u8], background: &mut [u8]) {
        assert!(buffer.len() >= elements * self.size.max(to.size) && background.len() >= elements * to.size);
        let _guard = LOCK.lock();
        // SAFETY: the lock is held, both types are live, and the buffers were just found to be large enough.
        let done = unsafe {
            h5t::H5Tconvert(
                self.id,
                to.id,
                elements,
                buffer.as_mut_ptr().cast(),
                background.as_mut_ptr().cast(),
                h5p::H5P_DEFAULT,
            )
        };
        assert!(done >= 0, "H5Tconvert failed");
    }
}

fn type_of(dtype: &Datatype) -> hid_t {
    // SAFETY: under the lock; libhdf5's own types are copied and changed within what it allows.
    unsafe {
        match dtype {
            Datatype::Integer { size, signed, order } => {
                let little = match (size, signed) {
                    (1, true) => *h5t::H5T_STD_I8LE,
                    (1, false) => *h5t::H5T_STD_U8LE,
                    (2, true) => *h5t::H5T_STD_I16LE,
                    (2, false) => *h5t::H5T_STD_U16LE,
                    (4, true) => *h5t::H5T_STD_I32LE,
                    (4, false) => *h5t::H5T_STD_U32LE,
                    (8, true) => *h5t::H5T_STD_I64LE,
                    _ => *h5t::H5T_STD_U64LE,
                };
                ordered(little, *order)
            }
            Datatype::Float { size: 4, order } => ordered(*h5t::H5T_IEEE_F32LE, *order),
            Datatype::Float { size: 8, order } => ordered(*h5t::H5T_IEEE_F64LE, *order),
            Datatype::Float { order, .. } => {
                let id = ordered(*h5t::H5T_IEEE_F32LE, *order);
                assert!(h5t::H5Tset_fields(id, 15, 10, 5, 0, 10) >= 0);
                assert!(h5t::H5Tset_precision(id, 16) >= 0);
                assert!(h5t::H5Tset_size(id, 2) >= 0);
                assert!(h5t::H5Tset_ebias(id, 15) >= 0);
                id
            }
            Datatype::Compound(compound) => {
                let id = h5t::H5Tcreate(H5T_class_t::H5T_COMPOUND, compound.size as usize);
                for field in &compound.fields {
                    let name = CString::new(field.name.as_str()).unwrap();
                    let member = type_of(&field.dtype);
                    assert!(h5t::H5Tinsert(id, name.as_ptr(), field.offset as usize, member) >= 0);
                }
                id
            }
            other => panic!("{other} is not compared"),
        }
    }
}

/// A copy in another byte order.
///
/// # Safety
/// Under the library's lock.
unsafe fn ordered(little: hid_t, order: ByteOrder) -> hid_t {
    // SAFETY: as the caller promises; the copy is ours.
    unsafe {
        let id = h5t::H5Tcopy(little);
        if order == ByteOrder::Big {
            assert!(h5t::H5Tset_order(id, h5t::H5T_order_t::H5T_ORDER_BE) >= 0);
        }
        id
    }
}
