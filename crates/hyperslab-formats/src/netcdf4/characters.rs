//! Transfers of texts that are stored as characters along one more dimension.

use hyperslab_core::{
    Array, Datatype, Error, Gather, MemoryView, MemoryViewMut, Result, Scatter, Selection, Slab, StridedRange,
    TransferMode,
};

/// The characters of the selected texts.
fn extended(selection: &Selection, length: u32) -> Result<Selection> {
    let slabs = selection.slabs().iter().map(|slab| {
        let ranges = slab.ranges();
        let each = |of: fn(&StridedRange) -> u64, last: u64| -> Vec<u64> {
            ranges.iter().map(of).chain(std::iter::once(last)).collect()
        };
        let (start, stride) = (each(StridedRange::start, 0), each(StridedRange::stride, 1));
        let (count, block) = (each(StridedRange::count, u64::from(length)), each(StridedRange::block, 1));
        Slab::strided(&start, &stride, &count, &block)
    });
    let slabs = slabs.collect::<Result<Option<Vec<_>>>>()?.unwrap_or_default();
    Selection::union(selection.rank() + 1, slabs)
}

fn bytes(selection: &Selection, length: u32) -> Result<usize> {
    let bytes = selection.len().checked_mul(u64::from(length)).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| Error::invalid("transfer", "the texts exceed the address space"))
}

/// Writes texts of `length` characters.
pub(super) fn write(
    characters: &dyn Array,
    length: u32,
    selection: &Selection,
    memory: MemoryView<'_>,
    transfer: TransferMode,
) -> Result<()> {
    let inner = extended(selection, length)?;
    if memory.layout.is_packed() {
        return characters.write(&inner, MemoryView::packed(memory.data), transfer);
    }
    let mut packed = vec![0; bytes(selection, length)?];
    let mut gather = Gather::new(memory, &Datatype::FixedString(length), selection.len())?;
    let mut filled = 0;
    while filled < packed.len() {
        match gather.next_into(&mut packed[filled..]) {
            0 => return Err(Error::invalid("write", "the memory holds too few texts")),
            more => filled += more * length as usize,
        }
    }
    characters.write(&inner, MemoryView::packed(&packed), transfer)
}

/// Reads texts of `length` characters.
pub(super) fn read(
    characters: &dyn Array,
    length: u32,
    selection: &Selection,
    memory: MemoryViewMut<'_>,
    transfer: TransferMode,
) -> Result<()> {
    let inner = extended(selection, length)?;
    if memory.layout.is_packed() {
        return characters.read(&inner, MemoryViewMut::packed(memory.data), transfer);
    }
    let mut packed = vec![0; bytes(selection, length)?];
    let mut scatter = Scatter::new(memory, &Datatype::FixedString(length), selection.len())?;
    characters.read(&inner, MemoryViewMut::packed(&mut packed), transfer)?;
    let mut taken = 0;
    while taken < packed.len() {
        match scatter.next_from(&packed[taken..]) {
            0 => return Err(Error::invalid("read", "the memory has room for too few texts")),
            more => taken += more * length as usize,
        }
    }
    Ok(())
}
