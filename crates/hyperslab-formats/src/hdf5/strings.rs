//! Transfers of strings of variable length, by libhdf5 alone: it keeps them in heaps of its own. Call everything under the lock.

use super::library::{self, Id, done};
use super::transfer::{self, Buffer, PACKED, Request};
use hdf5_metno_sys::h5::H5free_memory;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5t;
use hyperslab_core::{Error, Result, Selection, Strings};
use std::ffi::{CStr, c_char};

/// Strings that libhdf5 makes at a time when it reads.
const PIECE: u64 = 1 << 16;

/// Strings as libhdf5 takes them: pointers to texts that end in NUL.
pub(super) struct Pointers {
    _texts: Vec<u8>,
    pointers: Vec<*const c_char>,
}

impl Pointers {
    /// Texts without NUL inside.
    pub(super) fn new<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut all, mut starts) = (Vec::new(), Vec::new());
        for text in texts {
            starts.push(all.len());
            all.extend_from_slice(text);
            all.push(0);
        }
        // They point into a vector that is not changed any more.
        let pointers = starts.into_iter().map(|start| all[start..].as_ptr().cast()).collect();
        Self { _texts: all, pointers }
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.pointers.as_ptr().cast()
    }
}

/// Copies texts that libhdf5 made; null stands for empty text.
///
/// # Safety
/// Every pointer is null or that of a text that ends in NUL.
pub(super) unsafe fn copied(pointers: &[*mut c_char]) -> Strings {
    // SAFETY: as the caller says.
    let text = |pointer: &*mut c_char| unsafe {
        if pointer.is_null() { &[][..] } else { CStr::from_ptr(*pointer).to_bytes() }
    };
    pointers.iter().map(text).collect()
}

/// Gives texts back that libhdf5 made.
///
/// # Safety
/// libhdf5 filled `pointers` for this type and space, and they are not used any more.
pub(super) unsafe fn reclaim(kind: &Id, space: &Id, pointers: &mut [*mut c_char]) -> Result<()> {
    // SAFETY: as the caller says.
    done("read", unsafe { h5t::H5Treclaim(kind.raw(), space.raw(), H5P_DEFAULT, pointers.as_mut_ptr().cast()) })
}

/// Gives back one text that libhdf5 made, after copying it.
///
/// # Safety
/// The pointer is null or that of a text of libhdf5's that ends in NUL and is not used any more.
pub(super) unsafe fn taken(pointer: *mut c_char) -> Vec<u8> {
    if pointer.is_null() {
        return Vec::new();
    }
    // SAFETY: as the caller says.
    unsafe {
        let text = CStr::from_ptr(pointer).to_bytes().to_vec();
        H5free_memory(pointer.cast());
        text
    }
}

/// Writes the selected strings. Independent.
pub(super) fn write(request: Request<'_>, selection: &Selection, strings: &Strings) -> Result<()> {
    library::with(|| {
        let (space, shape) = request.file_space()?;
        selection.check_inside(&shape)?;
        strings.check_for(selection.len())?;
        if selection.is_empty() {
            return Ok(());
        }
        let pointers = Pointers::new(strings.iter());
        transfer::run(request, selection, space, &shape, PACKED, Buffer::From(pointers.as_ptr()))
    })
}

/// Reads the selected strings. Independent.
pub(super) fn read(request: Request<'_>, selection: &Selection) -> Result<Strings> {
    library::with(|| {
        let (_, shape) = request.file_space()?;
        selection.check_inside(&shape)?;
        let mut all = Strings::new();
        selection.for_each_part(PIECE, &mut |piece| {
            let mut pointers: Vec<*mut c_char> = vec![std::ptr::null_mut(); piece.len() as usize];
            let made = super::dataspace::simple(&[piece.len()], None)?;
            let space = request.file_space()?.0;
            let read = transfer::run(request, piece, space, &shape, PACKED, Buffer::To(pointers.as_mut_ptr().cast()));
            // SAFETY: libhdf5 filled the pointers, or left them null; they are copied before they are given back.
            unsafe {
                let strings = copied(&pointers);
                read.and(reclaim(&request.stored.memory, &made, &mut pointers))?;
                strings.iter().for_each(|text| all.push(text));
            }
            Ok::<_, Error>(())
        })?;
        Ok(all)
    })
}
