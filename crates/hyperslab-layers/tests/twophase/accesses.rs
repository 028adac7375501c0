//! How often the format below is accessed, and by whom.

use crate::failures::watched;
use crate::watched::Seen;
use hyperslab_comm::Threads;
use hyperslab_core::{
    Array, ArraySpec, Datatype, Format, MemoryView, MemoryViewMut, OpenMode, Result, Selection, TransferMode,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Runs `body` on an array and returns the accesses that were made, by rank and then in turn.
fn accesses(
    (format, seen): (Arc<dyn Format>, Arc<Seen>),
    name: &str,
    ranks: usize,
    spec: &ArraySpec,
    body: impl Fn(u64, &dyn Array) -> Result<()> + Sync,
) -> Vec<(usize, u64, usize)> {
    let path = PathBuf::from("twophase").join(name);
    Threads::run(ranks, |comm| {
        let container = format.open(&path, OpenMode::Truncate, &comm)?;
        let array = container.create("a", spec)?;
        body(comm.rank() as u64, &*array)?;
        container.close()
    })
    .unwrap();
    assert_eq!(seen.collective.load(SeqCst), 0);
    let mut accesses = std::mem::take(&mut *seen.accesses.lock().unwrap());
    accesses.sort_by_key(|(rank, ..)| *rank);
    accesses
}

#[test]
fn interleaved_pieces_become_one_access_per_window() {
    let spec = ArraySpec::new(Datatype::I64, &[1024]);
    let layer = "twophase(aggregators=2,buffer=2KiB,unit=64)";
    let made = accesses(watched(layer), "interleaved", 4, &spec, |rank, array| {
        let mine = Selection::strided(&[rank * 4], &[16], &[64], &[4])?;
        array.write(&mine, MemoryView::packed(&[rank as u8 + 1; 2048]), TransferMode::Collective)
    });
    assert_eq!(made, [(0, 256, 1), (0, 256, 1), (2, 256, 1), (2, 256, 1)], "dense, by ranks 0 and 2");
    let made = accesses(watched(layer), "read", 4, &spec, |rank, array| {
        let mine = Selection::strided(&[rank * 4], &[16], &[64], &[4])?;
        array.read(&mine, MemoryViewMut::packed(&mut [0; 2048]), TransferMode::Collective)
    });
    assert_eq!(made.len(), 4);
}

#[test]
fn holes_are_not_written_and_regular_ones_cost_one_slab() {
    let spec = ArraySpec::new(Datatype::U8, &[64, 64]);
    let layer = "twophase(aggregators=1)";
    let made = accesses(watched(layer), "holes", 2, &spec, |rank, array| {
        // Columns 0 to 15 and 32 to 47.
        let mine = Selection::dense(&[0, rank * 32], &[64, 16])?;
        array.write(&mine, MemoryView::packed(&[1; 1024]), TransferMode::Collective)
    });
    assert_eq!(made, [(0, 2048, 1)]);
}

#[test]
fn a_chunk_is_written_once_and_whole_when_the_ranks_cover_it_together() {
    let mut spec = ArraySpec::new(Datatype::U8, &[12, 10]);
    spec.chunk = Some([4, 4].as_slice().into());
    let made = accesses(watched("twophase(aggregators=3,domains=even,buffer=1)"), "chunks", 4, &spec, |rank, array| {
        let mine = Selection::strided(&[rank, 0], &[4, 1], &[3, 10], &[1, 1])?;
        array.write(&mine, MemoryView::packed(&[1; 30]), TransferMode::Collective)
    });
    let mut sizes: Vec<_> = made.iter().map(|(_, elements, slabs)| (*elements, *slabs)).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [(8, 1), (8, 1), (8, 1), (16, 1), (16, 1), (16, 1), (16, 1), (16, 1), (16, 1)]);
    assert!(made.iter().all(|(rank, ..)| [0, 1, 2].contains(rank)));
}

#[test]
fn nothing_to_write_accesses_nothing_and_independent_transfers_pass() {
    let spec = ArraySpec::new(Datatype::U8, &[16]);
    let made = accesses(watched("twophase"), "nothing", 3, &spec, |rank, array| {
        array.write(&Selection::empty(1), MemoryView::packed(&[]), TransferMode::Collective)?;
        array.read(&Selection::empty(1), MemoryViewMut::packed(&mut []), TransferMode::Collective)?;
        array.write(&Selection::dense(&[rank * 3], &[2])?, MemoryView::packed(&[1; 2]), TransferMode::Independent)
    });
    assert_eq!(made, [(0, 2, 1), (1, 2, 1), (2, 2, 1)]);
}

#[test]
fn stretches_that_nobody_touches_cost_no_rounds() {
    // As many windows as there are bytes would take for ever.
    let spec = ArraySpec::new(Datatype::U8, &[1 << 60]);
    let made = accesses(watched("twophase(aggregators=2,buffer=1KiB)"), "far apart", 3, &spec, |rank, array| {
        let mine = Selection::dense(&[rank << 58], &[4])?;
        array.write(&mine, MemoryView::packed(&[rank as u8; 4]), TransferMode::Collective)?;
        let mut found = [0xEE; 4];
        array.read(&mine, MemoryViewMut::packed(&mut found), TransferMode::Collective)?;
        assert_eq!(found, [rank as u8; 4]);
        Ok(())
    });
    assert_eq!(made.len(), 6);
}

#[test]
fn ranks_may_bring_different_numbers_of_parts() {
    let spec = ArraySpec::new(Datatype::U8, &[8]);
    let (format, seen) = watched("twophase(aggregators=1)");
    accesses((format.clone(), seen), "many", 3, &spec, |rank, array| {
        let selections = (0..rank).map(|i| Selection::dense(&[i * 2 + rank], &[2])).collect::<Result<Vec<_>>>()?;
        let data = [rank as u8; 2];
        let parts: Vec<_> = selections.iter().map(|selection| (selection, MemoryView::packed(&data))).collect();
        array.write_many(&parts, TransferMode::Collective)?;
        let mut all = [0; 8];
        array.read(&Selection::all(&[8])?, MemoryViewMut::packed(&mut all), TransferMode::Collective)?;
        assert_eq!(all, [0, 1, 2, 2, 2, 2, 0, 0]);
        Ok(())
    });
}
