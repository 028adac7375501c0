//! Writes: appended to the log, or through to the array where that is not possible.

use super::array::LogArray;
use super::entry::{Entry, Piece, Place, encoded_len, pieces_of, stride};
use super::read::Reading;
use hyperslab_core::{
    Array, ArraySpec, Error, ErrorKind, Gather, MemoryLayout, MemoryView, Reduce, Result, Selection, TransferMode,
    agree,
};
use std::sync::Arc;

/// Bytes of elements that are put together at a time.
pub(super) const STAGE: u64 = 4 << 20;
/// A description longer than this goes into the index only if the data is longer still.
const LONG_DESCRIPTION: u64 = 64 << 10;

/// Bytes of index beyond the option, for writes that go to the array and must be told of.
const RESERVE: u64 = 16 << 20;

/// What remains to be done for a write.
enum Left {
    Nothing,
    /// It goes to the array.
    Through(Vec<Piece>),
}

pub(super) fn write(
    array: &LogArray,
    selection: &Selection,
    memory: MemoryView<'_>,
    transfer: TransferMode,
) -> Result<()> {
    let begun = begin(array, selection, memory);
    if !array.together(transfer) {
        return match begun? {
            Left::Nothing => Ok(()),
            Left::Through(pieces) => through(array, selection, memory, pieces, TransferMode::Independent),
        };
    }
    let left = agree(&*array.shared.comm, begun)?;
    let mut any = [u64::from(matches!(left, Left::Through(_)))];
    array.shared.comm.all_reduce(&mut any, Reduce::Max)?;
    match left {
        Left::Through(pieces) => through(array, selection, memory, pieces, TransferMode::Collective),
        // With nothing to write, so that the others are not alone.
        Left::Nothing if any[0] > 0 => {
            array.inner.write(&Selection::empty(selection.rank()), MemoryView::packed(&[]), TransferMode::Collective)
        }
        Left::Nothing => Ok(()),
    }
}

/// In a collective transfer ranks may bring different numbers of parts.
pub(super) fn write_many(
    array: &LogArray,
    parts: &[(&Selection, MemoryView<'_>)],
    transfer: TransferMode,
) -> Result<()> {
    if !array.together(transfer) {
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

/// Checks a write, and appends it to the log if there is room.
fn begin(array: &LogArray, selection: &Selection, memory: MemoryView<'_>) -> Result<Left> {
    let spec = array.named.lock().spec.clone();
    let spec = spec.ok_or_else(|| Error::new(ErrorKind::Io, "write", "the array is not known"))?;
    let check = || {
        selection.check_inside(&spec.shape)?;
        memory.check(&spec.dtype, selection.len())?;
        memory.layout.plan(&spec.dtype)
    };
    let plan = check().map_err(|error| error.backend(super::NAME).target(&array.named.name))?;
    if selection.is_empty() {
        return Ok(Left::Nothing);
    }
    let pieces = pieces_of(&plan);
    if !pieces.is_empty() && !array.shared.caps.partial_fields {
        // The format below says whether it can do without the other bytes.
        return Ok(Left::Through(pieces));
    }
    let bytes = selection.len() * stride(&pieces, &spec.dtype);
    let described = encoded_len(selection, &pieces);
    let worth_while = described <= LONG_DESCRIPTION || described <= bytes;
    let has_index = array.shared.counts.index() + described <= array.shared.options.index;
    let reserved = if worth_while && has_index { array.named.lock().log.reserve(bytes) } else { None };
    let Some((volume, offset, log)) = reserved else { return Ok(Left::Through(pieces)) };
    match append(&log, offset, selection.len(), memory, &pieces, &spec) {
        Ok(()) => {}
        // Zarr, for one, takes no parts of chunks of ranks that are processes.
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(Left::Through(pieces)),
        Err(error) => return Err(error.target(&array.named.name)),
    }
    note(array, Entry { selection: selection.clone(), pieces, place: Place::Log { volume, offset } });
    array.shared.counts.logged();
    Ok(Left::Nothing)
}

fn note(array: &LogArray, entry: Entry) {
    array.shared.counts.add_index(encoded_len(&entry.selection, &entry.pieces));
    array.named.lock().push(entry);
}

/// Bytes at the beginning of a buffer that are what the log shall have, if nothing needs to be gathered: whole elements, or
/// structures of nothing but the transferred fields.
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

/// Writes elements, or the pieces of them that are transferred, one after the other.
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

/// Writes to the array. Where elements are in the log, the index hears that they no longer are.
fn through(
    array: &LogArray,
    selection: &Selection,
    memory: MemoryView<'_>,
    pieces: Vec<Piece>,
    transfer: TransferMode,
) -> Result<()> {
    // What cannot be found out counts as such.
    let covered = Reading::new(array)?.resolve(selection).map_or(true, |found| !found.nothing_logged());
    let index = array.shared.counts.index() + encoded_len(selection, &pieces);
    if covered && index > array.shared.options.index.saturating_add(RESERVE) {
        // Still a collective call, for the others' sake.
        if array.together(transfer) {
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
    array.shared.counts.through(selection.len() * size);
    if covered {
        note(array, Entry { selection: selection.clone(), pieces, place: Place::Array });
    }
    Ok(())
}
