//! Arrays for the Python package (`python/src/hyperslab/_reader.py`), as C functions that ctypes calls without Python's lock.
//!
//! Every function that can fail returns null, or text that says why and is released by `hs_free_text`: its first word is the
//! kind of error. The functions are no public interface; the two sides come in one package and compare [`VERSION`].
//! **Invariant:** no panic leaves a function; any number of threads may call with the same handle.

mod describe;
mod text;

use hyperslab::{Array, File, OpenMode, Result};
use hyperslab_core::{Error, MemoryViewMut, Selection, Slab, TransferMode};
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use text::{Text, into_c, kind_of};

/// The version of these functions.
pub const VERSION: u32 = 1;

/// The most dimensions of an array.
const MAX_RANK: usize = 64;

/// Runs a function's body; its error, or its panic, as text for the caller.
fn told(body: impl FnOnce() -> Result<()>) -> *mut c_char {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => std::ptr::null_mut(),
        Ok(Err(error)) => into_c(format!("{} {error}", kind_of(error.kind()))),
        Err(_) => into_c("Panic a fault of hyperslab: please report what was read".into()),
    }
}

/// [`VERSION`].
#[unsafe(no_mangle)]
pub extern "C" fn hs_version() -> u32 {
    VERSION
}

/// Releases text of these functions.
///
/// # Safety
/// `text` is null or came from one of these functions, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hs_free_text(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller's promise: it was made by `into_c`.
        drop(unsafe { std::ffi::CString::from_raw(text) });
    }
}

/// Opens a file for reading, on a stack or, if that is empty, on the one that is detected.
///
/// # Safety
/// `path` and `stack` describe readable UTF-8 text, `file` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hs_open(path: Text, stack: Text, file: *mut *mut File) -> *mut c_char {
    told(|| {
        // SAFETY: the caller's promise.
        let (path, stack) = unsafe { (path.get()?, stack.get()?) };
        let opened = match stack {
            "" => describe::open_detected(path)?,
            stack => File::open_with(path, stack, OpenMode::Read)?,
        };
        // SAFETY: the caller's promise.
        unsafe { file.write(Box::into_raw(Box::new(opened))) };
        Ok(())
    })
}

/// Closes a file and releases it, whatever the result. Its arrays must have been released before.
///
/// # Safety
/// `file` came from [`hs_open`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hs_close(file: *mut File) -> *mut c_char {
    // SAFETY: the caller's promise.
    told(|| unsafe { Box::from_raw(file) }.close())
}

/// Describes an object of a file as JSON: attributes, and of an array type, shape, chunks and filters; of the root (`""`) also
/// the names of all arrays and groups, and the stack.
///
/// # Safety
/// `file` came from [`hs_open`], `name` is readable UTF-8 text, `json` can be written; its text is released by [`hs_free_text`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hs_describe(file: *const File, name: Text, json: *mut *mut c_char) -> *mut c_char {
    told(|| {
        // SAFETY: the caller's promise.
        let described = unsafe { describe::object(&*file, name.get()?)? };
        // SAFETY: the caller's promise.
        unsafe { json.write(into_c(described.to_string())) };
        Ok(())
    })
}

/// Opens an array of a file.
///
/// # Safety
/// `file` came from [`hs_open`], `name` is readable UTF-8 text, `array` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hs_array(file: *const File, name: Text, array: *mut *mut Array) -> *mut c_char {
    told(|| {
        // SAFETY: the caller's promise.
        let opened = unsafe { (*file).array(name.get()?)? };
        // SAFETY: the caller's promise.
        unsafe { array.write(Box::into_raw(Box::new(opened))) };
        Ok(())
    })
}

/// Releases an array.
///
/// # Safety
/// `array` came from [`hs_array`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hs_release_array(array: *mut Array) -> *mut c_char {
    told(|| {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(array) });
        Ok(())
    })
}

/// Reads the union of `slabs` slabs, in row-major order, into `bytes` bytes. A slab is four numbers for each of the `rank`
/// dimensions: start, stride, count, block. `ahead` other than 0 reads nothing, and asks for it to be fetched.
///
/// # Safety
/// `array` came from [`hs_array`]; `numbers` are `4 * rank * slabs` readable numbers; `memory` are `bytes` writable bytes
/// that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hs_read(
    array: *const Array,
    rank: usize,
    slabs: usize,
    numbers: *const u64,
    memory: *mut u8,
    bytes: usize,
    ahead: u32,
) -> *mut c_char {
    told(|| {
        let count = slabs.checked_mul(4 * rank).filter(|_| rank <= MAX_RANK);
        let count = count.ok_or_else(|| Error::invalid("read array", "too many dimensions"))?;
        // SAFETY: the caller's promise.
        let (array, numbers) = unsafe { (&*array, slice(numbers, count)) };
        let selection = selection(rank, slabs, numbers)?;
        if ahead != 0 {
            array.inner().prefetch(&selection);
            return Ok(());
        }
        let spec = array.spec()?;
        selection.check_inside(&spec.shape)?;
        if selection.len().checked_mul(spec.dtype.size()) != Some(bytes as u64) {
            let message =
                format!("{} elements of {} bytes do not fill {bytes} bytes", selection.len(), spec.dtype.size());
            return Err(Error::invalid("read array", message));
        }
        // SAFETY: the caller's promise.
        let memory = unsafe { if bytes == 0 { &mut [][..] } else { std::slice::from_raw_parts_mut(memory, bytes) } };
        array.inner().read(&selection, MemoryViewMut::packed(memory), TransferMode::Independent)
    })
}

/// # Safety
/// `numbers` are `count` readable numbers.
unsafe fn slice<'a>(numbers: *const u64, count: usize) -> &'a [u64] {
    // SAFETY: the caller's promise.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(numbers, count) } }
}

/// The union of slabs. Of no dimensions, one slab is the only element.
fn selection(rank: usize, slabs: usize, numbers: &[u64]) -> Result<Selection> {
    if rank == 0 {
        return if slabs == 0 { Ok(Selection::empty(0)) } else { Selection::all(&[]) };
    }
    let mut parts = Vec::with_capacity(slabs);
    for slab in numbers.chunks_exact(4 * rank) {
        let column = |nth: usize| slab.iter().skip(nth).step_by(4).copied().collect::<Vec<u64>>();
        parts.extend(Slab::strided(&column(0), &column(1), &column(2), &column(3))?);
    }
    Selection::union(rank, parts)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::ptr::null_mut;

    fn said(text: *mut c_char) -> Option<String> {
        if text.is_null() {
            return None;
        }
        // SAFETY: text of these functions, released once.
        unsafe {
            let copy = CStr::from_ptr(text).to_str().unwrap().to_owned();
            hs_free_text(text);
            Some(copy)
        }
    }

    #[test]
    fn an_array_is_read_through_c() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.posix");
        let made = File::create(&path, "posix").unwrap();
        made.create_array::<u8>("x", &[4, 6])
            .unwrap()
            .write(.., &std::array::from_fn::<u8, 24, _>(|n| n as u8))
            .unwrap();
        made.close().unwrap();
        let path = path.to_str().unwrap();
        // SAFETY: handles are used as their functions ask.
        unsafe {
            let (mut file, mut array, mut json) = (null_mut(), null_mut(), null_mut());
            assert_eq!(said(hs_open(Text::of(path), Text::of(""), &raw mut file)), None);
            assert_eq!(said(hs_describe(file, Text::of("x"), &raw mut json)), None);
            assert!(said(json).unwrap().contains("\"shape\":[4,6]"));
            assert_eq!(said(hs_array(file, Text::of("x"), &raw mut array)), None);
            let slabs = [[3, 1, 1, 1, 0, 3, 2, 1], [1, 1, 1, 1, 5, 1, 1, 1]].concat();
            let mut memory = [0; 3];
            assert_eq!(said(hs_read(array, 2, 2, slabs.as_ptr(), memory.as_mut_ptr(), 3, 0)), None);
            assert_eq!(memory, [11, 18, 21]);
            let wrong = said(hs_read(array, 2, 2, slabs.as_ptr(), memory.as_mut_ptr(), 2, 0)).unwrap();
            assert!(wrong.starts_with("InvalidInput ") && wrong.contains("do not fill 2 bytes"), "{wrong}");
            let outside = [9, 1, 1, 1, 0, 1, 1, 1];
            assert!(said(hs_read(array, 2, 1, outside.as_ptr(), memory.as_mut_ptr(), 1, 0)).is_some());
            assert!(said(hs_array(file, Text::of("y"), &raw mut array)).unwrap().starts_with("NotFound "));
            assert_eq!(said(hs_release_array(array)), None);
            assert_eq!(said(hs_close(file)), None);
        }
    }
}
