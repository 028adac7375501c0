//! Reads and writes of elements: what they mean here, and which way they go.

use super::dataset::Dataset;
use super::file::{FileState, forget_all, settle_all};
use super::inside::native_call;
use super::kind::{Kind, layout};
use super::space::{refused, selection_of};
use crate::host::Host;
use crate::host::api::{Const, H5S_ALL, H5S_BLOCK, Herr, Hid, Ptr};
use crate::object::Object;
use hyperslab_core::{
    BufferRegion, Datatype, Dims, Gather, MemoryLayout, MemoryView, MemoryViewMut, Result, Selection, TransferMode,
};
use hyperslab_plane::{Conversion, Touched};
use std::ffi::{CStr, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What the program says about a transfer of one dataset.
pub(crate) struct Transfer {
    pub(crate) kind: Hid,
    pub(crate) memory: Hid,
    pub(crate) file: Hid,
    pub(crate) list: Hid,
}

/// What a transfer means.
pub(crate) struct Plan {
    pub(crate) selection: Selection,
    pub(crate) layout: MemoryLayout,
    /// Of the elements in memory, if it is another one.
    dtype: Option<Datatype>,
    /// Where the part of memory begins, and how long it is.
    offset: usize,
    len: usize,
}

/// Properties of a transfer list that libhdf5 writes its answers to.
/// Asks a dataset for its space.
const GET_SPACE: c_int = 2;
const ANSWERS: [&CStr; 6] = [
    c"actual_selection_io_mode",
    c"no_selection_io_cause",
    c"actual_chunk_opt_mode",
    c"actual_io_mode",
    c"local_no_collective_cause",
    c"global_no_collective_cause",
];

/// Whether a list is the usual one, apart from what libhdf5 has answered in it: programs use one list for many calls.
///
/// # Safety
/// Inside a call of the library; the list is open.
unsafe fn asks_for_nothing(host: &Host, list: Hid) -> bool {
    let usual = host.default_transfer();
    // SAFETY: all lists are open, and names end in NUL.
    unsafe {
        if list == usual || host.H5Pequal(list, usual) > 0 {
            return true;
        }
        host.keeping_errors(|| {
            let copy = host.H5Pcopy(list);
            if copy < 0 {
                return false;
            }
            for name in ANSWERS.map(CStr::as_ptr) {
                if host.H5Pexist(copy, name) > 0 && host.H5Pexist(usual, name) > 0 {
                    host.H5Pcopy_prop(copy, usual, name);
                }
            }
            let equal = host.H5Pequal(copy, usual) > 0;
            host.H5Pclose(copy);
            equal
        })
    }
}

impl Plan {
    /// What a transfer means; or why that cannot be said.
    ///
    /// # Safety
    /// Inside a call of the library; all identifiers are open.
    pub(crate) unsafe fn new(
        host: &'static Host,
        kind: &Kind,
        shape: &[u64],
        one: &Transfer,
        writes: bool,
    ) -> Result<Self, String> {
        // SAFETY: the list is open.
        if one.list != 0 && !unsafe { asks_for_nothing(host, one.list) } {
            return Err("the transfer list asks for something".into());
        }
        let too_large = |_| "the space is too large".to_owned();
        let selection = match one.file {
            H5S_ALL => Selection::all(shape).map_err(too_large)?,
            space => {
                // SAFETY: the space is open.
                let (extents, selection) = unsafe { selection_of(host, space) }?;
                if extents.as_slice() != shape {
                    return Err("the space for the file has other extents than the dataset".into());
                }
                selection
            }
        };
        // SAFETY: the type is open.
        let (structure, dtype) = unsafe { kind.in_memory(host, one.kind, writes) }?.structure();
        let element = match (&structure, &dtype) {
            (Some(structure), _) => structure.size,
            (_, Some(dtype)) => dtype.size(),
            _ => kind.dtype.size(),
        };
        let packed = || BufferRegion { shape: Dims::from_slice(&[selection.len()]), selection: Selection::empty(0) };
        let within = match one.memory {
            H5S_BLOCK => packed(),
            H5S_ALL if one.file == H5S_ALL => packed(),
            H5S_ALL => BufferRegion { shape: shape.into(), selection: selection.clone() },
            space => {
                // SAFETY: the space is open.
                let (shape, selection) = unsafe { selection_of(host, space) }?;
                BufferRegion { shape, selection }
            }
        };
        let (within, offset) = part_of_memory(within, selection.len(), element)?;
        let elements =
            within.as_ref().map_or(Ok(selection.len()), |within| hyperslab_core::dims::element_count(&within.shape));
        let len = elements.ok().and_then(|elements| elements.checked_mul(element));
        let len = len.and_then(|len| usize::try_from(len).ok()).filter(|len| *len <= isize::MAX as usize);
        let len = len.ok_or("the memory exceeds the address space")?;
        Ok(Self { selection, layout: layout(within, structure), dtype, offset, len })
    }
}

/// Where elements lie in memory: `None` if one after the other, from an offset on.
fn part_of_memory(within: BufferRegion, elements: u64, element: u64) -> Result<(Option<BufferRegion>, usize), String> {
    let BufferRegion { mut shape, selection } = within;
    if selection.rank() == 0 {
        // One piece, or one element.
        let fits = shape.iter().product::<u64>() == elements || (shape.is_empty() && elements == 1);
        return if fits { Ok((None, 0)) } else { Err("memory and file differ in the number of elements".into()) };
    }
    if selection.len() != elements {
        return Err("memory and file differ in the number of elements".into());
    }
    if let Some(run) = selection.single_run(&shape, element) {
        return Ok((None, run.offset as usize));
    }
    let Some((low, high)) = selection.bounds() else { return Ok((None, 0)) };
    // Rows before and after the selection need not exist.
    let row = shape[1..].iter().try_fold(element, |bytes, extent| bytes.checked_mul(*extent));
    let offset = row.and_then(|row| row.checked_mul(low[0])).and_then(|offset| usize::try_from(offset).ok());
    let offset = offset.ok_or("the memory exceeds the address space")?;
    shape[0] = high[0] - low[0];
    let mut by = vec![0i64; shape.len()];
    by[0] = -i64::try_from(low[0]).map_err(|_| "the memory exceeds the address space")?;
    let selection = selection.shifted(&by).map_err(|error| error.to_string())?;
    Ok((Some(BufferRegion { shape, selection }), offset))
}

/// How a transfer ended: the bytes of its elements, and why libhdf5 made it, if it did.
struct Ended {
    status: Herr,
    bytes: u64,
    why: Option<String>,
    left: Left,
}

/// What is left to be done before a call that wrote may return.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// A log has it, or layers that promise nothing; or nothing was written.
    Nothing,
    /// It is in the file where the file says so already.
    InPlace,
    /// libhdf5 or the plane may have it, or what says where it is, in memory.
    Unsaved,
}

impl Ended {
    fn well(bytes: u64, left: Left) -> Self {
        Self { status: 0, bytes, why: None, left }
    }

    fn failed(bytes: u64) -> Self {
        Self { status: -1, bytes, why: None, left: Left::Nothing }
    }
}

/// Writes elements of one dataset.
///
/// # Safety
/// Inside a call of the library, with the arguments it gives.
pub(crate) unsafe fn write(object: &Object, one: &Transfer, data: Const) -> Herr {
    if object.is_passed_on() && object.file.as_ref().is_none_or(|file| !file.promises()) {
        // SAFETY: as above.
        return unsafe { object.handle().write(object.host, one, data) };
    }
    let begin = Instant::now();
    // SAFETY: as above, here and below.
    let work = || unsafe { write_somehow(object, one, data) };
    // SAFETY: as above.
    let mut ended = unsafe { traced(object, one, true, work) };
    if ended.status >= 0
        && let Err(error) = acknowledge(object, ended.left)
    {
        object.host.report(&error);
        ended.status = -1;
    }
    if let (Some(file), 0) = (&object.file, ended.status) {
        file.flush_early(object.dataset().as_deref());
    }
    object.host.stats.write.note(ended.bytes, begin.elapsed(), ended.why.as_deref());
    object.host.refresh_stats_if_due();
    ended.status
}

/// Reads elements of one dataset.
///
/// # Safety
/// Inside a call of the library, with the arguments it gives.
pub(crate) unsafe fn read(object: &Object, one: &Transfer, data: Ptr) -> Herr {
    if object.is_passed_on() {
        // SAFETY: as above.
        return unsafe { object.handle().read(object.host, one, data) };
    }
    let begin = Instant::now();
    // SAFETY: as above, here and below.
    let work = || unsafe { read_somehow(object, one, data) };
    // SAFETY: as above.
    let ended = unsafe { traced(object, one, false, work) };
    object.host.stats.read.note(ended.bytes, begin.elapsed(), ended.why.as_deref());
    object.host.refresh_stats_if_due();
    ended.status
}

/// Before a call that wrote returns: what was written is where `log` promises it to be.
fn acknowledge(object: &Object, left: Left) -> Result<()> {
    let Some(file) = object.file.as_ref().filter(|file| left != Left::Nothing && file.promises()) else {
        return Ok(());
    };
    match object.dataset() {
        Some(dataset) => file.acknowledge_write(&dataset, object.handle(), left == Left::InPlace),
        None => file.acknowledge_library(object.handle()),
    }
}

/// Makes a transfer, and records it if that is asked for and can be.
unsafe fn traced(object: &Object, one: &Transfer, writes: bool, work: impl FnOnce() -> Ended) -> Ended {
    let Some(traced) = &object.traced else { return work() };
    // SAFETY: the caller's.
    let Some(plan) = (unsafe { traced.plan(object, one, writes) }) else { return work() };
    let mut ended = None;
    native_call(
        || {
            let made = work();
            let failed = made.status < 0;
            ended = Some(made);
            if failed { Err(refused("transfer", "libhdf5 refused")) } else { Ok(()) }
        },
        || traced.record(&plan, writes),
    );
    // Recording never fails before the call; if it did, the transfer would be missing.
    ended.unwrap_or_else(|| Ended::failed(0))
}

unsafe fn write_somehow(object: &Object, one: &Transfer, data: Const) -> Ended {
    let (Some(dataset), Some(file)) = (object.dataset(), &object.file) else {
        // SAFETY: the caller's.
        return unsafe { alone(object, one, true, || object.handle().write(object.host, one, data)) };
    };
    // SAFETY: the caller's.
    let plan = unsafe { plan_of(object, &dataset, file, one, true) };
    // SAFETY: the caller's.
    let native = || unsafe { object.handle().write(object.host, one, data) };
    let plan = match plan {
        _ if !object.writable => {
            let why = "the file is open for reading only";
            return by_library(object, one, file, &dataset, Touched::Nothing, why.into(), native);
        }
        Ok(plan) if !data.is_null() && !plan.selection.is_empty() => plan,
        Ok(_) => {
            return by_library(object, one, file, &dataset, Touched::Nothing, "nothing is transferred".into(), native);
        }
        Err(why) => return by_library(object, one, file, &dataset, Touched::Everything, why, native),
    };
    let bytes = plan.selection.len() * dataset.kind.dtype.size();
    // SAFETY: the program gives memory that has all selected elements; others are not touched.
    let memory = unsafe { std::slice::from_raw_parts(data.cast::<u8>().add(plan.offset), plan.len) };
    let view = MemoryView { data: memory, layout: &plan.layout };
    let written = (|| {
        if let Some(array) = dataset.layered(file)? {
            let whole = plan.dtype.is_some() || plan.layout.plan(&dataset.kind.dtype)?.covers_element();
            file.prepare(&dataset)?;
            // Where libhdf5 may have to help, it should have the program's own call.
            let converted;
            let (kind, view) = match &plan.dtype {
                None => (None, view),
                // As the file has it, a log can have it too.
                Some(dtype) => match converted_to(&dataset.kind.dtype, dtype, view, plan.selection.len(), file)? {
                    Some(packed) => {
                        converted = packed;
                        (None, MemoryView::packed(&converted))
                    }
                    None => (Some(dtype), view),
                },
            };
            if kind.is_none() && (whole || dataset.elements.plane.is_independent()) {
                if file.settings.modes.copies() && !dataset.elements.plane.is_independent() {
                    file.store_finished()?;
                    dataset.elements.note_write(&plan.selection, whole)?;
                }
                object.host.pending.store(true, Ordering::Relaxed);
                let written = array.write(&plan.selection, view, TransferMode::Independent);
                dataset.elements.only_stores.store(false, Ordering::Relaxed);
                return written.map(|()| (None, Left::Nothing));
            }
            file.settle()?;
        }
        if plan.dtype.is_none()
            && file.may_hold()
            && dataset.elements.hold(&plan.selection, view, file.settings.memory)?
        {
            object.host.pending.store(true, Ordering::Relaxed);
            return Ok((None, Left::Nothing));
        }
        let dtype = plan.dtype.as_ref().unwrap_or(&dataset.kind.dtype);
        let left = if dataset.elements.is_saved() { Left::InPlace } else { Left::Unsaved };
        let refusal = dataset.elements.write_as(&plan.selection, view, dtype)?;
        if !dataset.elements.plane.is_independent() {
            object.host.pending.store(true, Ordering::Relaxed);
        }
        Ok((refusal, left))
    })();
    match written {
        Ok((None, left)) => Ended::well(bytes, left),
        Ok((Some(refusal), _)) => {
            let touched = Touched::Elements(&plan.selection);
            by_library(object, one, file, &dataset, touched, refusal.to_string(), native)
        }
        Err(error) => {
            object.host.report(&error);
            Ended::failed(bytes)
        }
    }
}

unsafe fn read_somehow(object: &Object, one: &Transfer, data: Ptr) -> Ended {
    let (Some(dataset), Some(file)) = (object.dataset(), &object.file) else {
        // SAFETY: the caller's.
        return unsafe { alone(object, one, false, || object.handle().read(object.host, one, data)) };
    };
    // SAFETY: the caller's.
    let plan = unsafe { plan_of(object, &dataset, file, one, false) };
    // SAFETY: the caller's.
    let native = || unsafe { object.handle().read(object.host, one, data) };
    let plan = match plan {
        Ok(plan) if !data.is_null() && !plan.selection.is_empty() => plan,
        Ok(_) => {
            return by_library(object, one, file, &dataset, Touched::Nothing, "nothing is transferred".into(), native);
        }
        Err(why) => return by_library(object, one, file, &dataset, Touched::Nothing, why, native),
    };
    let bytes = plan.selection.len() * dataset.kind.dtype.size();
    // SAFETY: the program gives memory that has all selected elements; others are not touched.
    let memory = unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>().add(plan.offset), plan.len) };
    let mut view = MemoryViewMut { data: memory, layout: &plan.layout };
    let read = (|| {
        if let Some(array) = dataset.layered(file)? {
            if plan.dtype.is_none() {
                return array.read(&plan.selection, view, TransferMode::Independent).map(|()| None);
            }
            file.settle()?;
        }
        let dtype = plan.dtype.as_ref().unwrap_or(&dataset.kind.dtype);
        dataset.elements.read_as(&plan.selection, &mut view, dtype)
    })();
    match read {
        Ok(None) => Ended::well(bytes, Left::Nothing),
        Ok(Some(refusal)) => by_library(object, one, file, &dataset, Touched::Nothing, refusal.to_string(), native),
        // libhdf5 knows better how to say what is wrong, if something is.
        Err(error) => by_library(object, one, file, &dataset, Touched::Nothing, error.to_string(), native),
    }
}

/// Packed elements of the file's type, if they may take so much memory and the conversion is not libhdf5's alone.
fn converted_to(
    to: &Datatype,
    from: &Datatype,
    memory: MemoryView<'_>,
    elements: u64,
    file: &FileState,
) -> Result<Option<Vec<u8>>> {
    let bytes = elements.saturating_mul(from.size() + to.size());
    let conversion = match Conversion::new(from, to)? {
        Some(conversion) if bytes <= file.settings.memory / 4 && !conversion.depends_on_library() => conversion,
        _ => return Ok(None),
    };
    let mut converted = vec![0; (elements * to.size()) as usize];
    match memory.layout.is_packed() {
        true => conversion.convert(memory.data, &mut converted)?,
        false => {
            let mut packed = vec![0; (elements * from.size()) as usize];
            Gather::new(memory, from, elements)?.next_into(&mut packed);
            conversion.convert(&packed, &mut converted)?;
        }
    }
    Ok(Some(converted))
}

unsafe fn plan_of(
    object: &Object,
    dataset: &Dataset,
    file: &FileState,
    one: &Transfer,
    writes: bool,
) -> Result<Plan, String> {
    if let Some(why) = file.left() {
        return Err(why);
    }
    let shape = dataset.elements.plane.shape();
    // SAFETY: the caller's.
    unsafe { Plan::new(object.host, &dataset.kind, &shape, one, writes) }
}

/// A transfer of libhdf5, of a dataset that has no other way.
unsafe fn alone(object: &Object, one: &Transfer, writes: bool, native: impl FnOnce() -> Herr) -> Ended {
    if object.elsewhere && settle_all(object.host) < 0 {
        return Ended::failed(0);
    }
    // SAFETY: the caller's. Afterwards the error stack is the program's.
    let bytes = unsafe { bytes_of(object, one) };
    let status = native();
    if object.elsewhere && writes {
        forget_all(object.host);
    }
    let why = Some(object.left.clone().unwrap_or_else(|| "the mode asks for nothing more".into()));
    Ended { status, bytes, why, left: if writes { Left::Unsaved } else { Left::Nothing } }
}

/// Bytes of the elements in memory, as far as spaces say, if anybody will see the number.
unsafe fn bytes_of(object: &Object, one: &Transfer) -> u64 {
    if !object.host.wants_stats() {
        return 0;
    }
    let space = if one.file != H5S_ALL { one.file } else { one.memory };
    if space == H5S_BLOCK {
        return 0;
    }
    if space == H5S_ALL {
        // SAFETY: the dataset and the type are open; the space is closed here.
        return unsafe { bytes_of_all(object, one) };
    }
    // SAFETY: space and type are open.
    let (elements, size) =
        unsafe { (object.host.H5Sget_select_npoints(space), object.host.H5Tget_size(one.kind) as u64) };
    u64::try_from(elements).unwrap_or(0).saturating_mul(size)
}

/// Bytes of all elements of a dataset.
unsafe fn bytes_of_all(object: &Object, one: &Transfer) -> u64 {
    let host = object.host;
    let space = host.keeping_errors(|| object.handle().identifier(host, GET_SPACE));
    let Some(space) = space else { return 0 };
    // SAFETY: space and type are open, and the space is ours.
    let (elements, size) = unsafe {
        let elements = host.H5Sget_select_npoints(space);
        host.H5Sclose(space);
        (elements, host.H5Tget_size(one.kind) as u64)
    };
    u64::try_from(elements).unwrap_or(0).saturating_mul(size)
}

/// A transfer of libhdf5 beside the plane, after everything of the file that waits in layers.
fn by_library(
    object: &Object,
    one: &Transfer,
    file: &FileState,
    dataset: &Arc<Dataset>,
    touched: Touched<'_>,
    why: String,
    native: impl FnOnce() -> Herr,
) -> Ended {
    // SAFETY: inside a call of the library; all identifiers are open. Afterwards the error stack is the program's.
    let bytes = unsafe { bytes_of(object, one) };
    let (mut status, mut called) = (-1, false);
    let left = if matches!(touched, Touched::Nothing) { Left::Nothing } else { Left::Unsaved };
    let settled = match file.layers() {
        Ok(Some(_)) => file.settle(),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    let made = settled.and_then(|()| {
        dataset.elements.beside(touched, || {
            (status, called) = (native(), true);
            if status < 0 { Err(refused("transfer", "libhdf5 refused")) } else { Ok(()) }
        })
    });
    // What libhdf5 has refused it has explained itself.
    if let (Err(error), false) = (&made, called && status < 0) {
        object.host.report(error);
        status = -1;
    }
    Ended { status, bytes, why: Some(why), left }
}

/// Runs a call of libhdf5 that may read or change elements of these datasets, after everything that waits.
pub(crate) fn beside_planes(objects: &[&Object], writes: bool, body: impl FnOnce() -> Herr) -> Herr {
    let datasets: Vec<Arc<Dataset>> = objects.iter().filter_map(|object| object.dataset()).collect();
    for object in objects {
        // What layers keep of elements is dropped too.
        let settled = match (object.dataset(), &object.file) {
            (Some(_), Some(file)) => file.settle(),
            _ => Ok(()),
        };
        if let Err(error) = settled {
            object.host.report(&error);
            return -1;
        }
    }
    let status = body();
    if writes {
        for dataset in &datasets {
            dataset.elements.plane.forget();
            dataset.elements.unsaved.store(true, Ordering::Relaxed);
        }
    }
    status
}

/// Before a call of libhdf5 that wrote elements of these datasets returns, with the status that it returns.
pub(crate) fn acknowledge_all(objects: &[&Object], status: Herr) -> Herr {
    for object in objects.iter().filter(|_| status >= 0) {
        if let Err(error) = acknowledge(object, Left::Unsaved) {
            object.host.report(&error);
            return -1;
        }
    }
    status
}

/// Whether logged writes may stay in the log while a dataset gets this shape: it has more rows, and is otherwise the same.
pub(crate) fn stays_logged(object: &Object, shape: &[u64]) -> bool {
    let (Some(dataset), Some(file)) = (object.dataset(), &object.file) else { return false };
    let old = dataset.elements.plane.shape();
    file.promises()
        && dataset.layered(file).is_ok_and(|array| array.is_some())
        && old.get(1..) == shape.get(1..)
        && old.first() <= shape.first()
}

/// Changes the shape of a dataset by `call`. Nothing waits in layers but what the log keeps.
pub(crate) fn resizing(object: &Object, shape: Option<&[u64]>, mut call: impl FnMut() -> Herr) -> Herr {
    let (Some(dataset), Some(file), Some(shape)) = (object.dataset(), &object.file, shape) else { return call() };
    let mut status = -1;
    let mut called = false;
    let native = || {
        called = true;
        status = call();
        if status < 0 { Err(refused("resize", "libhdf5 refused")) } else { Ok(()) }
    };
    let resized: Result<()> = native_call(native, || {
        let array = if file.is_left() { None } else { dataset.layered(file)? };
        match array {
            Some(array) => array.resize(shape),
            None => dataset.elements.resize(shape),
        }
    });
    if let (Err(error), false) = (&resized, called && status < 0) {
        object.host.report(error);
        return -1;
    }
    // The file has the extents before a write that needs them; layers may have seen to it.
    match acknowledge(object, Left::InPlace) {
        Err(error) if status >= 0 => {
            object.host.report(&error);
            -1
        }
        _ => status,
    }
}
