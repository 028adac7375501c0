//! The program's libhdf5 as metadata backend of the direct path.

use super::transfer::Transfer;
use crate::host::Host;
use crate::host::api::{Const, HADDR_UNDEF, Herr, Hid, Ptr};
use hyperslab_core::{Error, ErrorKind, MAX_RANK, Result};
use hyperslab_h5direct::{ChunkAddress, MetadataBackend};
use std::ffi::{c_int, c_uint};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

const GET_SPACE_STATUS: c_int = 3;
const CHUNK_SIZE: c_int = 2;
const CHUNK_READ: c_int = 6;
const CHUNK_WRITE: c_int = 7;
const GET_OFFSET: c_int = 9;
const CHUNK_ITER: c_int = 10;
const ALLOCATED: c_int = 2;

/// An open dataset of the connector below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) under: Ptr,
    pub(crate) connector: Hid,
}

// SAFETY: the pointer is libhdf5's own, and used by threads that it has called only.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// Arguments of an optional operation of the native connector.
#[repr(C)]
struct Optional {
    operation: c_int,
    arguments: Ptr,
}

impl Handle {
    /// Calls an optional operation of the native connector.
    ///
    /// # Safety
    /// `arguments` are those of the operation, and the thread is inside a call of the library.
    pub(crate) unsafe fn optional<T>(self, host: &Host, operation: c_int, arguments: &mut T) -> Herr {
        let mut optional = Optional { operation, arguments: (&raw mut *arguments).cast() };
        let list = host.default_transfer();
        // SAFETY: the dataset is open, and the caller answers for the arguments.
        unsafe { host.H5VLdataset_optional(self.under, self.connector, (&raw mut optional).cast(), list, null_mut()) }
    }

    /// Calls a `get` operation.
    ///
    /// # Safety
    /// `arguments` are those of a `get` operation, and the thread is inside a call of the library.
    pub(crate) unsafe fn get<T>(self, host: &Host, arguments: &mut T) -> Herr {
        let arguments = (&raw mut *arguments).cast();
        // SAFETY: the dataset is open, and the caller answers for the arguments.
        unsafe { host.H5VLdataset_get(self.under, self.connector, arguments, host.default_transfer(), null_mut()) }
    }

    /// Queries an identifier: property lists, dataspace or type. The caller closes it.
    pub(crate) fn identifier(self, host: &Host, operation: c_int) -> Option<Hid> {
        #[repr(C)]
        struct Get {
            operation: c_int,
            identifier: Hid,
        }
        let mut get = Get { operation, identifier: -1 };
        // SAFETY: the arguments are those of such an operation.
        let status = unsafe { self.get(host, &mut get) };
        (status >= 0 && get.identifier >= 0).then_some(get.identifier)
    }
}

impl Handle {
    /// Writes elements by libhdf5.
    ///
    /// # Safety
    /// Inside a call of the library; all identifiers are open, and the buffer has all selected elements.
    pub(crate) unsafe fn write(mut self, host: &Host, one: &Transfer, mut data: Const) -> Herr {
        let (mut kind, mut memory, mut file) = (one.mem_type_id, one.mem_space_id, one.file_space_id);
        let (under, connector) = (&raw mut self.under, self.connector);
        let (kind, memory, file) = (&raw mut kind, &raw mut memory, &raw mut file);
        // SAFETY: one dataset, with everything that belongs to it.
        unsafe {
            host.H5VLdataset_write(1, under, connector, kind, memory, file, one.dxpl_id, &raw mut data, null_mut())
        }
    }

    /// Reads elements by libhdf5.
    ///
    /// # Safety
    /// Inside a call of the library; all identifiers are open, and the buffer has room for all selected elements.
    pub(crate) unsafe fn read(mut self, host: &Host, one: &Transfer, mut data: Ptr) -> Herr {
        let (mut kind, mut memory, mut file) = (one.mem_type_id, one.mem_space_id, one.file_space_id);
        let (under, connector) = (&raw mut self.under, self.connector);
        let (kind, memory, file) = (&raw mut kind, &raw mut memory, &raw mut file);
        // SAFETY: one dataset, with everything that belongs to it.
        unsafe {
            host.H5VLdataset_read(1, under, connector, kind, memory, file, one.dxpl_id, &raw mut data, null_mut())
        }
    }
}

/// libhdf5 as metadata backend of one dataset. Exists only inside callbacks.
pub(crate) struct LibraryBackend<'a> {
    pub(crate) host: &'static Host,
    pub(crate) handle: Handle,
    /// Element type identifier.
    pub(crate) type_id: Hid,
    pub(crate) shape: &'a [u64],
    /// Whether allocating the dataset writes fill values.
    pub(crate) allocation_fills: bool,
    /// Shape of the chunks; empty without.
    pub(crate) chunk: &'a [u64],
    /// Whether the only chunk was refused, so that no write of it can be trusted any more.
    pub(crate) only_chunk_refused: &'a AtomicBool,
}

impl LibraryBackend<'_> {
    /// After a write of a chunk that failed, libhdf5 takes the chunk for stored: it would write the next time to the place that it
    /// had found, and leave it out of the index without an error. It forgets that when it looks another chunk up.
    fn forget_chunk(&self, origin: &[u64]) {
        let mut axes = self.shape.iter().zip(self.chunk).enumerate();
        let another = axes.find(|(_, (extent, chunk))| extent > chunk).map(|(axis, (_, chunk))| {
            let mut another = origin.to_vec();
            another[axis] = if another[axis] == 0 { *chunk } else { 0 };
            another
        });
        let forgets = |another: Vec<u64>| self.host.preserving_error_stack(|| self.stored_size(&another)).is_ok();
        if !another.is_some_and(forgets) {
            self.only_chunk_refused.store(true, Ordering::Relaxed);
        }
    }

    fn done(&self, doing: &'static str, status: Herr) -> Result<()> {
        if status >= 0 { Ok(()) } else { Err(self.host.failed(doing)) }
    }

    fn is_allocated(&self) -> Result<bool> {
        #[repr(C)]
        struct Get {
            operation: c_int,
            status: *mut c_int,
        }
        let mut status = 0;
        let mut get = Get { operation: GET_SPACE_STATUS, status: &raw mut status };
        // SAFETY: the arguments are those of the operation.
        self.done("transfer", unsafe { self.handle.get(self.host, &mut get) })?;
        Ok(status == ALLOCATED)
    }

    /// Allocates the dataset by writing zeros to its first element, which is zero or undefined anyway.
    fn allocate(&self, element: usize) -> Result<bool> {
        if self.shape.is_empty() || self.shape.contains(&0) {
            return Ok(false);
        }
        let first = vec![0u64; self.shape.len()];
        let one = vec![1u64; self.shape.len()];
        let data = vec![0u8; element];
        let space = crate::accel::Dataspace::simple(self.host, self.shape)?;
        space.select(0, &first, &one, &one, &one)?;
        let memory = crate::accel::Dataspace::simple(self.host, &one)?;
        self.write(memory.id(), space.id(), data.as_ptr().cast())?;
        Ok(true)
    }

    /// A transfer in the file's type with default properties.
    fn usual(&self, memory: Hid, file: Hid) -> Transfer {
        Transfer {
            mem_type_id: self.type_id,
            mem_space_id: memory,
            file_space_id: file,
            dxpl_id: self.host.default_transfer(),
        }
    }

    /// Writes by libhdf5. The buffer has all selected elements.
    pub(crate) fn write(&self, memory: Hid, file: Hid, data: Const) -> Result<()> {
        // SAFETY: identifiers are open, and the caller answers for the buffer.
        self.done("write", unsafe { self.handle.write(self.host, &self.usual(memory, file), data) })
    }

    /// Reads by libhdf5. The buffer has room for all selected elements.
    pub(crate) fn read(&self, memory: Hid, file: Hid, data: Ptr) -> Result<()> {
        // SAFETY: identifiers are open, and the caller answers for the buffer.
        self.done("read", unsafe { self.handle.read(self.host, &self.usual(memory, file), data) })
    }

    fn stored_size(&self, origin: &[u64]) -> Result<u64> {
        #[repr(C)]
        struct Size {
            origin: *const u64,
            bytes: *mut u64,
        }
        let mut bytes = 0;
        let mut arguments = Size { origin: origin.as_ptr(), bytes: &raw mut bytes };
        // SAFETY: the arguments are those of the operation.
        self.done("find chunk", unsafe { self.handle.optional(self.host, CHUNK_SIZE, &mut arguments) })?;
        Ok(bytes)
    }
}

/// User data of the chunk iteration.
struct Visit<'a> {
    each: &'a mut dyn FnMut(&[u64], ChunkAddress),
    rank: usize,
}

unsafe extern "C" fn visit(origin: *const u64, mask: c_uint, address: u64, bytes: u64, data: Ptr) -> c_int {
    let visited = std::panic::catch_unwind(|| {
        // SAFETY: `data` is the `Visit` that the walk was started with, whose rank is that of the dataset.
        let (visit, origin) = unsafe {
            let visit = &mut *data.cast::<Visit<'_>>();
            let origin = std::slice::from_raw_parts(origin, visit.rank);
            (visit, origin)
        };
        if address != HADDR_UNDEF {
            (visit.each)(origin, ChunkAddress { address, bytes, mask });
        }
    });
    if visited.is_ok() { 0 } else { -1 }
}

impl MetadataBackend for LibraryBackend<'_> {
    fn dataset_address(&self, allocate: bool) -> Result<Option<u64>> {
        if !self.is_allocated()? {
            // SAFETY: the type is open.
            let element = unsafe { self.host.H5Tget_size(self.type_id) };
            if !allocate || self.allocation_fills || !self.allocate(element)? || !self.is_allocated()? {
                return Ok(None);
            }
        }
        let mut address = HADDR_UNDEF;
        let mut arguments: *mut u64 = &raw mut address;
        // SAFETY: the arguments are those of the operation.
        self.done("find array", unsafe { self.handle.optional(self.host, GET_OFFSET, &mut arguments) })?;
        Ok((address != HADDR_UNDEF).then_some(address))
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(&[u64], ChunkAddress)) -> Result<()> {
        #[repr(C)]
        struct Walk {
            function: unsafe extern "C" fn(*const u64, c_uint, u64, u64, Ptr) -> c_int,
            data: Ptr,
        }
        let mut data = Visit { each, rank: self.shape.len().min(MAX_RANK) };
        let mut arguments = Walk { function: visit, data: (&raw mut data).cast() };
        // SAFETY: the arguments are those of the operation; `data` outlives the call.
        self.done("find chunks", unsafe { self.handle.optional(self.host, CHUNK_ITER, &mut arguments) })
    }

    fn read_chunk(&self, origin: &[u64], limit: usize, stored: &mut Vec<u8>) -> Result<u32> {
        let bytes = self.stored_size(origin)?;
        if bytes > limit as u64 {
            let message = format!("it is said to have {bytes} bytes, more than its filters can make of it");
            return Err(Error::new(ErrorKind::Corrupt, "read chunk", message));
        }
        /// The last field is there since 2.0.
        #[repr(C)]
        struct Read {
            origin: *const u64,
            mask: u32,
            data: Ptr,
            room: *mut usize,
        }
        stored.resize(bytes as usize, 0);
        let mut room = stored.len();
        let data = stored.as_mut_ptr().cast();
        let mut arguments = Read { origin: origin.as_ptr(), mask: 0, data, room: &raw mut room };
        // SAFETY: the arguments are those of the operation in all versions that are served.
        self.done("read chunk", unsafe { self.handle.optional(self.host, CHUNK_READ, &mut arguments) })?;
        Ok(arguments.mask)
    }

    fn write_chunk(&self, origin: &[u64], stored: &[u8], mask: u32) -> Result<()> {
        if self.only_chunk_refused.load(Ordering::Relaxed) {
            let message = "a write of this chunk has failed, after which libhdf5 cannot store it any more";
            return Err(Error::new(ErrorKind::Io, "write chunk", message).hint("close the file, and write it again"));
        }
        /// Before 2.0.
        #[repr(C)]
        struct Narrow {
            origin: *const u64,
            mask: u32,
            bytes: u32,
            data: *const u8,
        }
        #[repr(C)]
        struct Wide {
            origin: *const u64,
            mask: u32,
            bytes: usize,
            data: *const u8,
        }
        let (first, data) = (origin.as_ptr(), stored.as_ptr());
        let status = if self.host.version.0 >= 2 {
            let mut arguments = Wide { origin: first, mask, bytes: stored.len(), data };
            // SAFETY: the arguments are those of the operation in this version.
            unsafe { self.handle.optional(self.host, CHUNK_WRITE, &mut arguments) }
        } else {
            let bytes = u32::try_from(stored.len());
            let bytes = bytes.map_err(|_| Error::unsupported("write chunk", "it has 4 GiB or more"))?;
            let mut arguments = Narrow { origin: first, mask, bytes, data };
            // SAFETY: the arguments are those of the operation in this version.
            unsafe { self.handle.optional(self.host, CHUNK_WRITE, &mut arguments) }
        };
        self.done("write chunk", status).inspect_err(|_| self.forget_chunk(origin))
    }

    fn write_elements(&self, origin: &[u64], extents: &[u64], chunk: &[u8], _: (&[u8], u32)) -> Result<bool> {
        // A chunk at the edge has elements beyond it.
        let inside = origin.iter().zip(extents).zip(self.shape);
        let inside: Vec<u64> = inside.map(|((at, extent), end)| (*extent).min(end.saturating_sub(*at))).collect();
        if inside.is_empty() || inside.contains(&0) {
            return Ok(false);
        }
        let (first, one) = (vec![0; extents.len()], vec![1; extents.len()]);
        let file = crate::accel::Dataspace::simple(self.host, self.shape)?;
        file.select(0, origin, &one, &one, &inside)?;
        let memory = crate::accel::Dataspace::simple(self.host, extents)?;
        memory.select(0, &first, &one, &one, &inside)?;
        // Its own filter may be missing.
        let write = || self.write(memory.id(), file.id(), chunk.as_ptr().cast());
        Ok(self.host.preserving_error_stack(write).is_ok())
    }
}

/// A chunk to be stored by libhdf5.
#[derive(Debug)]
pub(crate) struct EncodedChunk {
    origin: Vec<u64>,
    stored: Vec<u8>,
    mask: u32,
    /// The chunk and its extents, if libhdf5 is to filter it by itself.
    elements: Option<(Vec<u8>, Vec<u64>)>,
}

impl EncodedChunk {
    pub(crate) fn store(&self, library: &LibraryBackend<'_>) -> Result<()> {
        let encoded = (self.stored.as_slice(), self.mask);
        match &self.elements {
            Some((chunk, extents)) if library.write_elements(&self.origin, extents, chunk, encoded)? => Ok(()),
            _ => library.write_chunk(&self.origin, &self.stored, self.mask),
        }
    }
}

/// Backend for threads outside callbacks: chunks to be stored are queued for the next callback, everything else fails.
pub(crate) struct DeferredBackend<'a>(pub(crate) &'a Mutex<Vec<EncodedChunk>>);

impl DeferredBackend<'_> {
    fn queue(&self, chunk: EncodedChunk) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
    }
}

fn not_here() -> Error {
    Error::unsupported("transfer", "libhdf5 would be needed in the background")
}

impl MetadataBackend for DeferredBackend<'_> {
    fn dataset_address(&self, _: bool) -> Result<Option<u64>> {
        Err(not_here())
    }

    fn for_each_chunk(&self, _: &mut dyn FnMut(&[u64], ChunkAddress)) -> Result<()> {
        Err(not_here())
    }

    fn read_chunk(&self, _: &[u64], _: usize, _: &mut Vec<u8>) -> Result<u32> {
        Err(not_here())
    }

    fn write_chunk(&self, origin: &[u64], stored: &[u8], mask: u32) -> Result<()> {
        self.queue(EncodedChunk { origin: origin.to_vec(), stored: stored.to_vec(), mask, elements: None });
        Ok(())
    }

    fn write_elements(
        &self,
        origin: &[u64],
        extents: &[u64],
        chunk: &[u8],
        (stored, mask): (&[u8], u32),
    ) -> Result<bool> {
        let elements = Some((chunk.to_vec(), extents.to_vec()));
        self.queue(EncodedChunk { origin: origin.to_vec(), stored: stored.to_vec(), mask, elements });
        Ok(true)
    }
}
