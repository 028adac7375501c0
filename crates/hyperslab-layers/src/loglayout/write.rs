//! Writes: appended to the log, or written through to the array if that is not possible.

use super::array::LogLayoutArray;
use super::entry::{DataLocation, Entry, Piece, encoded_len, pieces_of, stride};
use super::read::Reading;
use hyperslab_core::{
    Array, ArraySpec, Error, ErrorKind, Gather, MemoryLayout, MemoryView, Reduce, Result, Selection, TransferMode,
    agree,
};
use std::sync::Arc;

/// Size of the staging buffer.
pub(super) const STAGE: u64 = 4 << 20;
/// Maximum length of an index entry that exceeds its data.
const LONG_DESCRIPTION: u64 = 64 << 10;

/// Index bytes beyond the option, for writes that go to the array and must be recorded.
const RESERVE: u64 = 16 << 20;

/// What remains to be done for a write after the log.
enum WriteOutcome {
    Nothing,
    /// It must be written through to the array.
    WriteThrough(Vec<Piece>),
}

pub(super) fn write(
    array: &LogLayoutArray,
    selection: &Selection,
    memory: MemoryView<'_>,
    transfer: TransferMode,
) -> Result<()> {
    let begun = begin(array, selection, memory);
    if !array.is_collective(transfer) {
        return match begun? {
            WriteOutcome::Nothing => Ok(()),
            WriteOutcome::WriteThrough(pieces) => {
                write_through(array, selection, memory, pieces, TransferMode::Independent)
            }
        };
    }
    let left = agree(&*array.shared.comm, begun)?;
    let mut any = [u64::from(matches!(left, WriteOutcome::WriteThrough(_)))];
    array.shared.comm.all_reduce(&mut any, Reduce::Max)?;
    match left {
        WriteOutcome::WriteThrough(pieces) => write_through(array, selection, memory, pieces, TransferMode::Collective),
        // An empty part, so that the collective call is complete.
        WriteOutcome::Nothing if any[0] > 0 => {
            array.inner.write(&Selection::empty(selection.rank()), MemoryView::packed(&[]), TransferMode::Collective)
        }
        WriteOutcome::Nothing => Ok(()),
    }
}

/// In a collective transfer ranks may have different numbers of parts.
pub(super) fn write_many(
    array: &LogLayoutArray,
    parts: &[(&Selection, MemoryView<'_>)],
    transfer: TransferMode,
) -> Result<()> {
    if !array.is_collective(transfer) {
        return parts.iter().try_for_each(|(selection, memory)| write(array, selection, *memory, transfer));
    }
    let rank = agree(&*array.shared.comm, array.inner.spec())?.shape.len();
    let mut most = [parts.len() as u64];
    array.shared.comm.all_reduce(&mut most, Reduce::Max)?;
    let nothing = Selection::empty(rank);
    for number in 0..most[0] as usize {
        let (selection, memory) = parts.get(number).copied().unwrap_or((&nothing, MemoryView::packed(&[])));
        write(array, selection, memory, transfer)?;
    }
    Ok(())
}

/// Checks a write, and appends it to the log if there is space.
fn begin(array: &LogLayoutArray, selection: &Selection, memory: MemoryView<'_>) -> Result<WriteOutcome> {
    let spec = array.named.lock().spec.clone();
    let spec = spec.ok_or_else(|| Error::new(ErrorKind::Io, "write", "the array is not known"))?;
    let check = || {
        selection.check_inside(&spec.shape)?;
        memory.check(&spec.dtype, selection.len())?;
        memory.layout.plan(&spec.dtype)
    };
    let plan = check().map_err(|error| error.backend(super::NAME).target(&array.named.name))?;
    if selection.is_empty() {
        return Ok(WriteOutcome::Nothing);
    }
    let pieces = pieces_of(&plan);
    if !pieces.is_empty() && !array.shared.caps.data.partial_fields {
        // The format below decides whether it can write some fields.
        return Ok(WriteOutcome::WriteThrough(pieces));
    }
    let bytes = selection.len() * stride(&pieces, &spec.dtype);
    let described = encoded_len(selection, &pieces);
    let worth_while = described <= LONG_DESCRIPTION || described <= bytes;
    let has_index = array.shared.counts.index() + described <= array.shared.options.index;
    let reserved = if worth_while && has_index { array.named.lock().log.reserve(bytes) } else { None };
    let Some((volume, offset, log)) = reserved else { return Ok(WriteOutcome::WriteThrough(pieces)) };
    match append(&log, offset, selection.len(), memory, &pieces, &spec) {
        Ok(()) => {}
        // Zarr, for example, refuses partial chunk writes of ranks that are processes.
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(WriteOutcome::WriteThrough(pieces)),
        Err(error) => return Err(error.target(&array.named.name)),
    }
    note(array, Entry { selection: selection.clone(), pieces, place: DataLocation::Log { volume, offset } });
    array.shared.counts.logged();
    Ok(WriteOutcome::Nothing)
}

fn note(array: &LogLayoutArray, entry: Entry) {
    array.shared.counts.add_index(encoded_len(&entry.selection, &entry.pieces));
    array.named.lock().push(entry);
}

/// Length of the prefix of a buffer that can be logged without gathering: whole elements, or structures of only the
/// transferred fields.
fn as_it_is(layout: &MemoryLayout, elements: u64, spec: &ArraySpec) -> Result<Option<usize>> {
    let plan = layout.plan(&spec.dtype)?;
    let mut pieces = plan.pieces;
    pieces.sort_unstable_by_key(|piece| piece.element);
    let mut at = 0;
    let in_order = pieces.iter().all(|piece| {
        let follows = piece.memory == at;
        at += piece.len;
        follows
    });
    Ok((layout.within.is_none() && in_order && at == plan.stride).then_some((elements * at) as usize))
}

/// Appends elements, or their transferred bytes, packed.
fn append(
    log: &Arc<dyn Array>,
    mut offset: u64,
    elements: u64,
    memory: MemoryView<'_>,
    pieces: &[Piece],
    spec: &ArraySpec,
) -> Result<()> {
    let mut put = |bytes: &[u8]| {
        let place = Selection::dense(&[offset], &[bytes.len() as u64])?;
        offset += bytes.len() as u64;
        log.write(&place, MemoryView::packed(bytes), TransferMode::Independent)
    };
    if let Some(len) = as_it_is(memory.layout, elements, spec)? {
        return put(&memory.data[..len]);
    }
    let size = spec.dtype.size() as usize;
    let at_a_time = (STAGE / size as u64).clamp(1, elements) as usize;
    let (mut stage, mut short) = (vec![0; at_a_time * size], Vec::new());
    let mut gather = Gather::new(memory, &spec.dtype, elements)?;
    let mut left = elements as usize;
    while left > 0 {
        let now = gather.next_into(&mut stage[..at_a_time.min(left) * size]);
        if now == 0 {
            return Err(Error::new(ErrorKind::Io, "write", "elements are missing"));
        }
        left -= now;
        let whole = &stage[..now * size];
        if pieces.is_empty() {
            put(whole)?;
            continue;
        }
        short.clear();
        for element in whole.chunks_exact(size) {
            for piece in pieces {
                short.extend_from_slice(&element[piece.offset as usize..][..piece.len as usize]);
            }
        }
        put(&short)?;
    }
    Ok(())
}

/// Writes to the array. If elements are in the log, adds an index entry that they are in the array now.
fn write_through(
    array: &LogLayoutArray,
    selection: &Selection,
    memory: MemoryView<'_>,
    pieces: Vec<Piece>,
    transfer: TransferMode,
) -> Result<()> {
    // If that cannot be determined, assumes so.
    let covered = Reading::new(array)?.resolve(selection).map_or(true, |found| !found.nothing_logged());
    let index = array.shared.counts.index() + encoded_len(selection, &pieces);
    if covered && index > array.shared.options.index.saturating_add(RESERVE) {
        // A collective call for the sake of other ranks.
        if array.is_collective(transfer) {
            array.inner.write(&Selection::empty(selection.rank()), MemoryView::packed(&[]), transfer)?;
        }
        return Err(Error::new(ErrorKind::NoSpace, "write", "the index of loglayout is full")
            .backend(super::NAME)
            .target(&array.named.name)
            .hint(
                "give it more with index, write larger parts, or make the file canonical: hyperslab convert IN OUT",
            ));
    }
    array.inner.write(selection, memory, transfer)?;
    let size = array.named.lock().spec.as_ref().map_or(0, |spec| stride(&pieces, &spec.dtype));
    array.shared.counts.write_through(selection.len() * size);
    if covered {
        note(array, Entry { selection: selection.clone(), pieces, place: DataLocation::Array });
    }
    Ok(())
}
