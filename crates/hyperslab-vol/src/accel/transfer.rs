//! Reads and writes of datasets: translation of the arguments, and dispatch to layers, direct path or libhdf5.

use super::attachment::decide_for;
use super::callback_scope::with_native_call;
use super::dataset::Dataset;
use super::dataspace::{MOST_PIECES, TOO_MANY, refused, selection_of};
use super::element_type::{ElementType, layout};
use super::file::{FileState, invalidate_all, write_back_all};
use super::operation::{AnnouncedRead, Operation, submit};
use super::parallel_file::{Alone, is_collective, join};
use super::piecewise::PiecewisePlan;
use crate::host::Host;
use crate::host::api::{Const, H5S_ALL, H5S_BLOCK, H5S_PLIST, Herr, Hid, Ptr, Req};
use crate::object::Object;
use hyperslab_core::{
    BufferRegion, Datatype, Dims, Gather, MemoryLayout, MemoryView, MemoryViewMut, Result, Run, Selection, TransferMode,
};
use hyperslab_h5direct::{Conversion, FallbackReason, WriteEffect};
use std::ffi::{CStr, c_int};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The program's arguments of a transfer of one dataset.
pub(crate) struct Transfer {
    pub(crate) mem_type_id: Hid,
    pub(crate) mem_space_id: Hid,
    pub(crate) file_space_id: Hid,
    pub(crate) dxpl_id: Hid,
}

/// A translated transfer.
pub(crate) struct Plan {
    pub(crate) selection: Selection,
    pub(crate) layout: MemoryLayout,
    /// Element type in memory, if it differs.
    dtype: Option<Datatype>,
    /// Byte range of the program's buffer that the transfer touches.
    offset: usize,
    len: usize,
}

/// A transfer translated either way.
enum Planned {
    Selection(Box<Plan>),
    Pieces(PiecewisePlan),
}

/// Irregular selections of more pieces are transferred by their runs.
const FEW_PIECES: i64 = 48;
/// Runs of many pieces that are listed and transferred at a time: the list fits into a core's cache.
const RUNS_OF_A_PART: usize = 1 << 13;
/// The same for datasets with filters.
const RUNS_IN_ALL: usize = 1 << 21;
/// Asks a dataset for its space.
const GET_SPACE: c_int = 2;
/// Properties of a transfer list that libhdf5 writes its answers to, and those that say how ranks work together.
const OTHER_PROPERTIES: [&CStr; 11] = [
    c"io_xfer_mode",
    c"mpio_collective_opt",
    c"mpio_chunk_opt_hard",
    c"mpio_chunk_opt_num",
    c"mpio_chunk_opt_ratio",
    c"actual_selection_io_mode",
    c"no_selection_io_cause",
    c"actual_chunk_opt_mode",
    c"actual_io_mode",
    c"local_no_collective_cause",
    c"global_no_collective_cause",
];

/// Whether a transfer list asks for nothing that changes elements: programs reuse lists, and choose how ranks work together.
///
/// # Safety
/// Inside a call of the library; the list is open.
unsafe fn is_default_list(host: &Host, list: Hid) -> bool {
    let (usual, known) = (host.default_transfer(), host.usual_list.load(Ordering::Relaxed));
    // SAFETY: all lists are open, and names end in NUL.
    unsafe {
        if list == usual || (known > 0 && host.H5Pequal(list, known) > 0) {
            return true;
        }
        host.preserving_error_stack(|| {
            let copy = host.H5Pcopy(list);
            if copy < 0 {
                return false;
            }
            for name in OTHER_PROPERTIES.map(CStr::as_ptr) {
                if host.H5Pexist(copy, name) > 0 && host.H5Pexist(usual, name) > 0 {
                    host.H5Pcopy_prop(copy, usual, name);
                }
            }
            let equal = host.H5Pequal(copy, usual) > 0;
            host.H5Pclose(copy);
            if equal {
                // Programs use a list for many transfers.
                let before = host.usual_list.swap(host.H5Pcopy(list), Ordering::Relaxed);
                if before > 0 {
                    host.H5Pclose(before);
                }
            }
            equal
        })
    }
}

impl Plan {
    /// Translates a transfer. The error is the reason for a fallback.
    ///
    /// # Safety
    /// Inside a call of the library; all identifiers are open.
    pub(crate) unsafe fn new(
        host: &'static Host,
        kind: &ElementType,
        shape: &[u64],
        one: &Transfer,
        writes: bool,
    ) -> Result<Self, String> {
        // SAFETY: the caller's.
        unsafe { Self::of_pieces(host, kind, shape, one, writes, MOST_PIECES) }
    }

    /// The same of at most so many pieces of an irregular selection; the reason is [`TOO_MANY`] if there are more.
    ///
    /// # Safety
    /// As for [`Self::new`].
    unsafe fn of_pieces(
        host: &'static Host,
        kind: &ElementType,
        shape: &[u64],
        one: &Transfer,
        writes: bool,
        most: i64,
    ) -> Result<Self, String> {
        // SAFETY: the list is open.
        if one.dxpl_id != 0 && !unsafe { is_default_list(host, one.dxpl_id) } {
            return Err("the transfer list asks for something".into());
        }
        let too_large = |_| "the space is too large".to_owned();
        let selection = match one.file_space_id {
            H5S_ALL => Selection::all(shape).map_err(too_large)?,
            space => {
                // SAFETY: the space is open.
                let (extents, selection) = unsafe { selection_of(host, space, most) }?;
                if extents.as_slice() != shape {
                    return Err("the space for the file has other extents than the dataset".into());
                }
                selection
            }
        };
        // SAFETY: the type is open.
        let (structure, dtype) = unsafe { kind.in_memory(host, one.mem_type_id, writes, selection.len()) }?.structure();
        let element = match (&structure, &dtype) {
            (Some(structure), _) => structure.size,
            (_, Some(dtype)) => dtype.size(),
            _ => kind.dtype.size(),
        };
        let packed = || BufferRegion { shape: Dims::from_slice(&[selection.len()]), selection: Selection::empty(0) };
        let within = match one.mem_space_id {
            H5S_BLOCK => packed(),
            H5S_ALL if one.file_space_id == H5S_ALL => packed(),
            H5S_ALL => BufferRegion { shape: shape.into(), selection: selection.clone() },
            space => {
                // SAFETY: the space is open.
                let (shape, selection) = unsafe { selection_of(host, space, MOST_PIECES) }?;
                BufferRegion { shape, selection }
            }
        };
        let (within, offset) = memory_region(within, selection.len(), element)?;
        let elements =
            within.as_ref().map_or(Ok(selection.len()), |within| hyperslab_core::dims::element_count(&within.shape));
        let len = elements.ok().and_then(|elements| elements.checked_mul(element));
        let len = len.and_then(|len| usize::try_from(len).ok()).filter(|len| *len <= isize::MAX as usize);
        let len = len.ok_or("the memory exceeds the address space")?;
        Ok(Self { selection, layout: layout(within, structure), dtype, offset, len })
    }
}

/// Memory region of a transfer, and its byte offset; `None` if it is contiguous.
fn memory_region(within: BufferRegion, elements: u64, element: u64) -> Result<(Option<BufferRegion>, usize), String> {
    let BufferRegion { mut shape, selection } = within;
    if selection.rank() == 0 {
        // Contiguous, or a single element.
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
    // The buffer need not contain rows before and after the selection.
    let row = shape[1..].iter().try_fold(element, |bytes, extent| bytes.checked_mul(*extent));
    let offset = row.and_then(|row| row.checked_mul(low[0])).and_then(|offset| usize::try_from(offset).ok());
    let offset = offset.ok_or("the memory exceeds the address space")?;
    shape[0] = high[0] - low[0];
    let mut by = vec![0i64; shape.len()];
    by[0] = -i64::try_from(low[0]).map_err(|_| "the memory exceeds the address space")?;
    let selection = selection.shifted(&by).map_err(|error| error.to_string())?;
    Ok((Some(BufferRegion { shape, selection }), offset))
}

/// Outcome of a transfer: its size, and the fallback reason if libhdf5 executed it.
struct TransferOutcome {
    status: Herr,
    bytes: u64,
    why: Option<String>,
    ack: AckPending,
    /// What the program may wait for, if it asked for that.
    operation: Option<Operation>,
}

/// What must be flushed before a write call returns, in modes where it must survive a kill.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AckPending {
    /// Nothing: a log or layers hold it, or nothing was written.
    Nothing,
    /// Elements only: they were written in place, and the file's metadata locate them.
    InPlace,
    /// Metadata too: libhdf5 or the direct path may hold elements or their location in memory.
    Unsaved,
}

impl TransferOutcome {
    fn well(bytes: u64, ack: AckPending) -> Self {
        Self { status: 0, bytes, why: None, ack, operation: None }
    }

    fn with(self, operation: Option<Operation>) -> Self {
        Self { operation, ..self }
    }

    /// The status, after handing the operation over, if there is one and a place for it.
    unsafe fn hand_over(self, object: &Object, request: Req) -> Herr {
        if let Some(operation) = self.operation.filter(|_| self.status >= 0 && !request.is_null()) {
            // SAFETY: the caller's.
            unsafe { *request = object.requested(operation) };
        }
        self.status
    }

    fn failed(bytes: u64) -> Self {
        Self { status: -1, bytes, why: None, ack: AckPending::Nothing, operation: None }
    }
}

/// Writes elements of one dataset. `request`: where an operation goes that the program waits for later; null if it waits now.
///
/// # Safety
/// Inside a call of the library, with the arguments it gives.
pub(crate) unsafe fn write(object: &Object, one: &Transfer, data: Const, request: Req) -> Herr {
    // SAFETY: as above.
    unsafe { decide_for(object, one, true) };
    if object.passes_through() && object.file.as_ref().is_none_or(|file| !file.survives_kill()) {
        // SAFETY: as above.
        return unsafe { object.handle().write(object.host, one, data) };
    }
    let begin = Instant::now();
    // SAFETY: as above, here and below.
    let work = || unsafe { dispatch_write(object, one, data, !request.is_null()) };
    // SAFETY: as above.
    let mut outcome = unsafe { traced(object, one, true, work) };
    if outcome.status >= 0
        && let Err(error) = acknowledge(object, outcome.ack)
    {
        object.host.report(&error);
        outcome.status = -1;
    }
    if let (Some(file), 0) = (&object.file, outcome.status) {
        file.flush_early(object.dataset().as_deref());
    }
    object.host.stats.write.note(outcome.bytes, begin.elapsed(), outcome.why.as_deref());
    object.host.refresh_stats_if_due();
    // SAFETY: the library gives a place for it.
    unsafe { outcome.hand_over(object, request) }
}

/// Reads elements of one dataset. `request`: as for [`write`].
///
/// # Safety
/// Inside a call of the library, with the arguments it gives.
pub(crate) unsafe fn read(object: &Object, one: &Transfer, data: Ptr, request: Req) -> Herr {
    // SAFETY: as above.
    unsafe { decide_for(object, one, false) };
    if object.passes_through() {
        // SAFETY: as above.
        return unsafe { object.handle().read(object.host, one, data) };
    }
    let begin = Instant::now();
    // SAFETY: as above, here and below.
    let work = || unsafe { dispatch_read(object, one, data, !request.is_null()) };
    // SAFETY: as above.
    let outcome = unsafe { traced(object, one, false, work) };
    object.host.stats.read.note(outcome.bytes, begin.elapsed(), outcome.why.as_deref());
    object.host.refresh_stats_if_due();
    // SAFETY: the library gives a place for it.
    unsafe { outcome.hand_over(object, request) }
}

/// Flushes what the mode requires before a write call returns.
fn acknowledge(object: &Object, ack: AckPending) -> Result<()> {
    let Some(file) = object.file.as_ref().filter(|file| ack != AckPending::Nothing && file.survives_kill()) else {
        return Ok(());
    };
    match object.dataset() {
        Some(dataset) => file.acknowledge_write(&dataset, object.handle(), ack == AckPending::InPlace),
        None => file.acknowledge_library(object.handle()),
    }
}

/// Executes a transfer, and records it if the file is traced.
unsafe fn traced(
    object: &Object,
    one: &Transfer,
    writes: bool,
    work: impl FnOnce() -> TransferOutcome,
) -> TransferOutcome {
    let Some(traced) = &object.traced else { return work() };
    // SAFETY: the caller's.
    let Some(plan) = (unsafe { traced.plan(object, one, writes) }) else { return work() };
    let mut outcome = None;
    with_native_call(
        || {
            let result = work();
            let failed = result.status < 0;
            outcome = Some(result);
            if failed { Err(refused("transfer", "libhdf5 refused")) } else { Ok(()) }
        },
        || traced.record(&plan, writes),
    );
    // Recording never fails before the call; that would skip the transfer.
    outcome.unwrap_or_else(|| TransferOutcome::failed(0))
}

unsafe fn dispatch_write(object: &Object, one: &Transfer, data: Const, waits_later: bool) -> TransferOutcome {
    if let Some(file) = &object.file {
        file.complete_reads();
    }
    let joins = object.file.as_ref().is_some_and(|file| file.moves_alone())
        && (object.dataset().is_some() || object.moves_alone());
    // SAFETY: the caller's.
    let alone = match if joins { unsafe { Alone::joining(object, one) } } else { Ok(None) } {
        Ok(alone) => alone,
        Err(error) => {
            object.host.report(&error);
            return TransferOutcome::failed(0);
        }
    };
    let one = &Transfer { dxpl_id: alone.as_ref().map_or(one.dxpl_id, |alone| alone.list), ..*one };
    // SAFETY: the caller's.
    let write = || unsafe { object.handle().write(object.host, one, data) };
    let native = || match &alone {
        Some(_) => object.host.in_new_context(write).unwrap_or(-1),
        None => write(),
    };
    let (Some(dataset), Some(file)) = (object.dataset(), &object.file) else {
        // SAFETY: the caller's.
        return unsafe { library_only(object, one, true, native) };
    };
    // SAFETY: the caller's.
    let plan = unsafe { plan_transfer(object, &dataset, file, one, true) };
    let plan = match plan {
        _ if !object.writable => {
            let why = "the file is open for reading only";
            return through_library(object, one, file, &dataset, WriteEffect::Nothing, why.into(), native);
        }
        Ok(Planned::Pieces(mut plan)) if !data.is_null() => {
            // SAFETY: the program gives memory that has all selected elements.
            let memory = unsafe { std::slice::from_raw_parts(data.cast::<u8>().add(plan.offset), plan.len) };
            return write_pieces(object, one, file, &dataset, &mut plan, memory, native);
        }
        Ok(Planned::Selection(plan)) if !data.is_null() && !plan.selection.is_empty() => plan,
        Ok(_) => {
            return through_library(
                object,
                one,
                file,
                &dataset,
                WriteEffect::Nothing,
                "nothing is transferred".into(),
                native,
            );
        }
        Err(why) => return through_library(object, one, file, &dataset, WriteEffect::Everything, why, native),
    };
    // SAFETY: the list is open.
    if file.parallel.is_some() && unsafe { is_collective(object.host, one.dxpl_id) } {
        let (why, effect) = ("all ranks write together, which MPI-IO does", WriteEffect::Elements(&plan.selection));
        return through_library(object, one, file, &dataset, effect, why.into(), native);
    }
    let bytes = plan.selection.len() * dataset.element_type.dtype.size();
    // SAFETY: the program gives memory that has all selected elements; others are not touched.
    let memory = unsafe { std::slice::from_raw_parts(data.cast::<u8>().add(plan.offset), plan.len) };
    let view = MemoryView { data: memory, layout: &plan.layout };
    let mut operation = None;
    let written = (|| {
        if let Some(array) = dataset.layered(file)? {
            let whole = plan.dtype.is_some() || plan.layout.plan(&dataset.element_type.dtype)?.covers_element();
            file.prepare(&dataset)?;
            // If libhdf5 may be needed, use the direct path, whose fallback is the program's own call.
            let converted;
            let (kind, view) = match &plan.dtype {
                None => (None, view),
                // Converted to the file's type, it can be logged.
                Some(dtype) => {
                    match convert_memory(&dataset.element_type.dtype, dtype, view, plan.selection.len(), file)? {
                        Some(packed) => {
                            converted = packed;
                            (None, MemoryView::packed(&converted))
                        }
                        None => (Some(dtype), view),
                    }
                }
            };
            let alone = !file.is_shared() || (whole && dataset.io.direct.has_full_index());
            if kind.is_none() && alone && (whole || dataset.io.direct.has_full_index()) {
                if file.settings.modes.copies() && !dataset.io.direct.has_full_index() {
                    file.store_encoded_chunks()?;
                    dataset.io.decide_background_write(&plan.selection, whole)?;
                }
                object.host.pending.store(true, Ordering::Relaxed);
                let written = match waits_later {
                    true => {
                        submit(&*array, &plan.selection, view, whole).map(|request| Some(Operation::write(request)))
                    }
                    false => array.write(&plan.selection, view, TransferMode::Independent).map(|()| None),
                };
                dataset.io.needs_no_reads.store(false, Ordering::Relaxed);
                operation = written?;
                return Ok((None, AckPending::Nothing));
            }
            file.write_back_before_call()?;
        }
        if plan.dtype.is_none()
            && file.may_buffer_fields()
            && dataset.io.buffer_fields(&plan.selection, view, file.settings.memory)?
        {
            object.host.pending.store(true, Ordering::Relaxed);
            return Ok((None, AckPending::Nothing));
        }
        let dtype = plan.dtype.as_ref().unwrap_or(&dataset.element_type.dtype);
        let ack = if dataset.io.is_metadata_flushed() { AckPending::InPlace } else { AckPending::Unsaved };
        let reason = dataset.io.write_as(&plan.selection, view, dtype)?;
        if !dataset.io.direct.has_full_index() {
            object.host.pending.store(true, Ordering::Relaxed);
        }
        Ok((reason, ack))
    })();
    match written {
        Ok((None, ack)) => TransferOutcome::well(bytes, ack).with(operation),
        Ok((Some(reason), _)) => {
            let effect = WriteEffect::Elements(&plan.selection);
            through_library(object, one, file, &dataset, effect, reason.to_string(), native)
        }
        Err(error) => {
            object.host.report(&error);
            TransferOutcome::failed(bytes)
        }
    }
}

unsafe fn dispatch_read(object: &Object, one: &Transfer, data: Ptr, waits_later: bool) -> TransferOutcome {
    let (Some(dataset), Some(file)) = (object.dataset(), &object.file) else {
        // SAFETY: the caller's.
        return unsafe { library_only(object, one, false, || object.handle().read(object.host, one, data)) };
    };
    // SAFETY: the caller's.
    let plan = unsafe { plan_transfer(object, &dataset, file, one, false) };
    // SAFETY: the caller's.
    let native = || unsafe { object.handle().read(object.host, one, data) };
    let plan = match plan {
        Ok(Planned::Pieces(mut plan)) if !data.is_null() => {
            // SAFETY: the program gives memory that has all selected elements.
            let memory = unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>().add(plan.offset), plan.len) };
            return read_pieces(object, one, file, &dataset, &mut plan, memory, native);
        }
        Ok(Planned::Selection(plan)) if !data.is_null() && !plan.selection.is_empty() => plan,
        Ok(_) => {
            return through_library(
                object,
                one,
                file,
                &dataset,
                WriteEffect::Nothing,
                "nothing is transferred".into(),
                native,
            );
        }
        Err(why) => return through_library(object, one, file, &dataset, WriteEffect::Nothing, why, native),
    };
    // SAFETY: the list is open.
    let together = file.parallel.is_some() && unsafe { is_collective(object.host, one.dxpl_id) };
    if together && dataset.io.spec.filters.is_empty() {
        let why = "all ranks read together, which MPI-IO does";
        return through_library(object, one, file, &dataset, WriteEffect::Nothing, why.into(), native);
    }
    let bytes = plan.selection.len() * dataset.element_type.dtype.size();
    // SAFETY: the program gives memory that has all selected elements; others are not touched.
    let memory = unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>().add(plan.offset), plan.len) };
    let mut view = MemoryViewMut { data: memory, layout: &plan.layout };
    let mut operation = None;
    file.forget_made_reads();
    let read = (|| {
        if let Some(array) = dataset.layered(file)? {
            if plan.dtype.is_none() && waits_later && !together && file.settings.modes.copies() {
                // SAFETY: the program gives memory that has all selected elements, and leaves it alone until it has waited.
                let read =
                    unsafe { AnnouncedRead::announce(file, &dataset, array, &plan.selection, &plan.layout, view.data) };
                operation = Some(Operation::read(read));
                return Ok(None);
            }
            if plan.dtype.is_none() {
                return array.read(&plan.selection, view, TransferMode::Independent).map(|()| None);
            }
            file.write_back_before_call()?;
        }
        let dtype = plan.dtype.as_ref().unwrap_or(&dataset.element_type.dtype);
        dataset.io.read_as(&plan.selection, &mut view, dtype)
    })();
    if together && matches!(read, Ok(None)) {
        // SAFETY: nothing is selected, and so no memory is needed.
        let read = |nothing: &Transfer| unsafe { object.handle().read(object.host, nothing, std::ptr::null_mut()) };
        let joined = join(object, one, |nothing| object.host.in_new_context(|| read(nothing)).unwrap_or(-1));
        if let Err(error) = joined {
            object.host.report(&error);
            return TransferOutcome::failed(bytes);
        }
    }
    match read {
        Ok(None) => TransferOutcome::well(bytes, AckPending::Nothing).with(operation),
        Ok(Some(reason)) => {
            through_library(object, one, file, &dataset, WriteEffect::Nothing, reason.to_string(), native)
        }
        // libhdf5 reports errors best.
        Err(error) => through_library(object, one, file, &dataset, WriteEffect::Nothing, error.to_string(), native),
    }
}

/// Converts to packed elements of the file's type; `None` if memory is short or the result depends on libhdf5's
/// version.
fn convert_memory(
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

unsafe fn plan_transfer(
    object: &Object,
    dataset: &Dataset,
    file: &FileState,
    one: &Transfer,
    writes: bool,
) -> Result<Planned, String> {
    if let Some(why) = file.fallback_reason() {
        return Err(why);
    }
    let (host, shape) = (object.host, dataset.io.direct.shape());
    let plan = |most| {
        // SAFETY: the caller's.
        unsafe { Plan::of_pieces(host, &dataset.element_type, &shape, one, writes, most) }
            .map(|plan| Planned::Selection(Box::new(plan)))
    };
    // Layers need selections; among ranks nobody may read and write back what lies between pieces.
    if file.is_shared() || !matches!(file.layers(), Ok(None)) {
        return plan(MOST_PIECES);
    }
    match plan(FEW_PIECES) {
        // SAFETY: the caller's.
        Err(why) if why == TOO_MANY => match unsafe { PiecewisePlan::new(host, dataset, one, writes) } {
            Some(pieces) => Ok(Planned::Pieces(pieces)),
            None => plan(MOST_PIECES),
        },
        planned => planned,
    }
}

/// Hands the runs of many pieces to `each`, some at a time, with their bytes of the program's memory. `Some`: libhdf5 must
/// execute the transfer.
fn for_each_part(
    dataset: &Dataset,
    plan: &mut PiecewisePlan,
    mut each: impl FnMut(&[Run], Range<usize>) -> Result<Option<FallbackReason>>,
) -> Result<Option<FallbackReason>> {
    let size = dataset.element_type.dtype.size();
    let in_memory = plan.dtype.as_ref().map_or(size, Datatype::size);
    // A chunk with filters is decoded once.
    let most = if dataset.io.spec.filters.is_empty() { RUNS_OF_A_PART } else { RUNS_IN_ALL };
    let (mut runs, mut at) = (Vec::new(), 0);
    loop {
        plan.list(&mut runs, most)?;
        if runs.is_empty() {
            break;
        }
        let bytes = runs.iter().map(|run| run.len).sum::<u64>() / size * in_memory;
        let end = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_add(at)).filter(|end| *end <= plan.len);
        let end = end.ok_or_else(|| refused("transfer", "more is listed than is selected"))?;
        if let Some(reason) = each(&runs, at..end)? {
            return Ok(Some(reason));
        }
        at = end;
    }
    if at == plan.len { Ok(None) } else { Err(refused("transfer", "less is listed than is selected")) }
}

/// Writes many pieces by the direct path, or by libhdf5 if that cannot.
fn write_pieces(
    object: &Object,
    one: &Transfer,
    file: &FileState,
    dataset: &Arc<Dataset>,
    plan: &mut PiecewisePlan,
    memory: &[u8],
    native: impl FnOnce() -> Herr,
) -> TransferOutcome {
    let (kind, bytes) = (&dataset.element_type.dtype, plan.elements * dataset.element_type.dtype.size());
    let dtype = plan.dtype.clone();
    let ack = if dataset.io.is_metadata_flushed() { AckPending::InPlace } else { AckPending::Unsaved };
    let written = for_each_part(dataset, plan, |runs, range| {
        dataset.io.write_runs(runs, MemoryView::packed(&memory[range]), dtype.as_ref().unwrap_or(kind))
    });
    if !dataset.io.direct.has_full_index() {
        object.host.pending.store(true, Ordering::Relaxed);
    }
    match written {
        Ok(None) => TransferOutcome::well(bytes, ack),
        // Some of it may have been written.
        Ok(Some(reason)) => {
            through_library(object, one, file, dataset, WriteEffect::Everything, reason.to_string(), native)
        }
        Err(error) => {
            object.host.report(&error);
            TransferOutcome::failed(bytes)
        }
    }
}

/// Reads many pieces by the direct path, or by libhdf5 if that cannot.
fn read_pieces(
    object: &Object,
    one: &Transfer,
    file: &FileState,
    dataset: &Arc<Dataset>,
    plan: &mut PiecewisePlan,
    memory: &mut [u8],
    native: impl FnOnce() -> Herr,
) -> TransferOutcome {
    let (kind, bytes) = (&dataset.element_type.dtype, plan.elements * dataset.element_type.dtype.size());
    let dtype = plan.dtype.clone();
    let read = for_each_part(dataset, plan, |runs, range| {
        dataset.io.read_runs(runs, MemoryViewMut::packed(&mut memory[range]), dtype.as_ref().unwrap_or(kind))
    });
    let why = match read {
        Ok(None) => return TransferOutcome::well(bytes, AckPending::Nothing),
        Ok(Some(reason)) => reason.to_string(),
        // libhdf5 reports errors best.
        Err(error) => error.to_string(),
    };
    through_library(object, one, file, dataset, WriteEffect::Nothing, why, native)
}

/// Executes a transfer of a dataset without direct path, by libhdf5.
unsafe fn library_only(
    object: &Object,
    one: &Transfer,
    writes: bool,
    native: impl FnOnce() -> Herr,
) -> TransferOutcome {
    let library = object.attachment().library();
    if library.is_indirect && write_back_all(object.host) < 0 {
        return TransferOutcome::failed(0);
    }
    // SAFETY: the caller's. Afterwards the error stack is the program's.
    let bytes = unsafe { bytes_of(object, one) };
    let status = native();
    if library.is_indirect && writes {
        invalidate_all(object.host);
    }
    let ack = if writes { AckPending::Unsaved } else { AckPending::Nothing };
    TransferOutcome { status, bytes, why: Some(library.reason()), ack, operation: None }
}

/// Bytes of the transfer in memory; 0 if statistics are off.
unsafe fn bytes_of(object: &Object, one: &Transfer) -> u64 {
    // SAFETY: the caller's.
    if object.host.wants_stats() { unsafe { bytes_selected(object, one) } } else { 0 }
}

/// Bytes of the transfer in memory.
///
/// # Safety
/// Inside a call of the library; all identifiers are open.
pub(super) unsafe fn bytes_selected(object: &Object, one: &Transfer) -> u64 {
    let space = if one.file_space_id != H5S_ALL { one.file_space_id } else { one.mem_space_id };
    if matches!(space, H5S_ALL | H5S_BLOCK | H5S_PLIST) {
        // SAFETY: the dataset and the type are open; the space is closed here.
        return unsafe { bytes_of_all(object, one) };
    }
    // SAFETY: space and type are open.
    let (elements, size) =
        unsafe { (object.host.H5Sget_select_npoints(space), object.host.H5Tget_size(one.mem_type_id) as u64) };
    u64::try_from(elements).unwrap_or(0).saturating_mul(size)
}

/// Bytes of all elements of a dataset in memory.
unsafe fn bytes_of_all(object: &Object, one: &Transfer) -> u64 {
    let host = object.host;
    let space = host.preserving_error_stack(|| object.handle().identifier(host, GET_SPACE));
    let Some(space) = space else { return 0 };
    // SAFETY: space and type are open, and the space is ours.
    let (elements, size) = unsafe {
        let elements = host.H5Sget_select_npoints(space);
        host.H5Sclose(space);
        (elements, host.H5Tget_size(one.mem_type_id) as u64)
    };
    u64::try_from(elements).unwrap_or(0).saturating_mul(size)
}

/// Fallback: executes a transfer by libhdf5, coherently, after the file's layers were written back.
fn through_library(
    object: &Object,
    one: &Transfer,
    file: &FileState,
    dataset: &Arc<Dataset>,
    effect: WriteEffect<'_>,
    why: String,
    native: impl FnOnce() -> Herr,
) -> TransferOutcome {
    // SAFETY: inside a call of the library; all identifiers are open. Afterwards the error stack is the program's.
    let bytes = unsafe { bytes_of(object, one) };
    let (mut status, mut called) = (-1, false);
    let ack = if matches!(effect, WriteEffect::Nothing) { AckPending::Nothing } else { AckPending::Unsaved };
    let written_back = match file.layers() {
        Ok(Some(_)) => file.write_back_before_call(),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    let result = written_back.and_then(|()| {
        dataset.io.library_transfer(effect, || {
            (status, called) = (native(), true);
            if status < 0 { Err(refused("transfer", "libhdf5 refused")) } else { Ok(()) }
        })
    });
    // libhdf5 has reported its own errors.
    if let (Err(error), false) = (&result, called && status < 0) {
        object.host.report(error);
        status = -1;
    }
    TransferOutcome { status, bytes, why: Some(why), ack, operation: None }
}

/// Runs a libhdf5 call that may read or change elements of these datasets, coherently.
pub(crate) fn with_coherent_datasets(objects: &[&Object], writes: bool, body: impl FnOnce() -> Herr) -> Herr {
    let datasets: Vec<Arc<Dataset>> = objects.iter().filter_map(|object| object.dataset()).collect();
    for object in objects {
        // This also invalidates the caches of layers.
        let written_back = match (object.dataset(), &object.file) {
            (Some(_), Some(file)) => file.write_back_before_call(),
            _ => Ok(()),
        };
        if let Err(error) = written_back {
            object.host.report(&error);
            return -1;
        }
    }
    let status = body();
    if writes {
        for dataset in &datasets {
            dataset.io.direct.forget();
            dataset.io.metadata_dirty.store(true, Ordering::Relaxed);
        }
    }
    status
}

/// Flushes what the mode requires before a libhdf5 write to these datasets returns; returns the final status.
pub(crate) fn acknowledge_all(objects: &[&Object], status: Herr) -> Herr {
    for object in objects.iter().filter(|_| status >= 0) {
        if let Err(error) = acknowledge(object, AckPending::Unsaved) {
            object.host.report(&error);
            return -1;
        }
    }
    status
}

/// Whether what waits may go on waiting during this resize, which only adds rows: logged writes in the log, changed chunks in
/// memory.
pub(crate) fn stays_on_resize(object: &Object, shape: &[u64]) -> bool {
    let (Some(dataset), Some(file)) = (object.dataset(), &object.file) else { return false };
    if matches!(file.layers(), Ok(None)) && file.fallback_reason().is_none() {
        return dataset.io.direct.keeps_chunks(shape);
    }
    let old = dataset.io.direct.shape();
    file.survives_kill()
        && dataset.layered(file).is_ok_and(|array| array.is_some())
        && old.get(1..) == shape.get(1..)
        && old.first() <= shape.first()
}

/// Changes the shape of a dataset by `call`. Requires that nothing is buffered in layers, except in the log.
pub(crate) fn resize(object: &Object, shape: Option<&[u64]>, mut call: impl FnMut() -> Herr) -> Herr {
    let (Some(dataset), Some(file), Some(shape)) = (object.dataset(), &object.file, shape) else { return call() };
    let mut status = -1;
    let mut called = false;
    let native = || {
        called = true;
        status = call();
        if status < 0 { Err(refused("resize", "libhdf5 refused")) } else { Ok(()) }
    };
    let resized: Result<()> = with_native_call(native, || {
        let array = if file.is_library_only() { None } else { dataset.layered(file)? };
        match array {
            // Others make this call too: it must be made whatever became of earlier writes.
            Some(_) if file.is_shared() => {
                dataset.drop_layers();
                dataset.io.resize(shape)
            }
            Some(array) => array.resize(shape),
            None => dataset.io.resize(shape),
        }
    });
    if let (Err(error), false) = (&resized, called && status < 0) {
        object.host.report(error);
        return -1;
    }
    // The file must have the new extents before a write that needs them; layers may have flushed them already.
    match acknowledge(object, AckPending::InPlace) {
        Err(error) if status >= 0 => {
            object.host.report(&error);
            -1
        }
        _ => status,
    }
}
