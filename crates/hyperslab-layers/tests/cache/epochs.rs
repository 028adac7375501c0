//! What is read how often.

use super::watched::{Seen, Watched};
use super::{bytes, check, dense, watched, wrap};
use hyperslab_comm::Threads;
use hyperslab_core::{Format, MemoryLayout, MemoryViewMut, OpenMode, Selection, TransferMode};
use hyperslab_testkit::Memory;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The numbers below `limit` in some order.
fn shuffled(limit: u64, seed: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..limit).collect();
    numbers.sort_by_key(|number| (number + 1).wrapping_mul(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1) >> 7);
    numbers
}

#[test]
fn the_second_epoch_reads_nothing_below() {
    let shape = [200, 6, 8];
    for (name, layer, chunk) in [
        ("rows", "cache(memory=1MiB)", None),
        ("parts of samples", "cache(memory=1MiB,block=2x3x8)", None),
        ("small blocks", "cache(memory=1MiB,block=64)", None),
        ("chunks", "cache(memory=1MiB)", Some(&[1, 6, 8][..])),
        ("several in a chunk", "cache(memory=1MiB)", Some(&[7, 6, 8])),
        ("odd chunks", "cache(memory=1MiB)", Some(&[3, 4, 5])),
    ] {
        let (format, seen) = watched(layer);
        let (container, array) = bytes(&*format, name, &shape, chunk, OpenMode::Read);
        for epoch in 0..3 {
            for sample in shuffled(200, epoch + 1) {
                check(&array, &shape, &dense(&[sample, 0, 0], &[1, 6, 8]));
            }
            let reads = seen.take_reads();
            let elements: u64 = reads.iter().map(Selection::len).sum();
            assert!(epoch > 0 || elements <= 2 * 9600, "{name}: {elements} elements read of 9600");
            assert!(epoch == 0 || reads.is_empty(), "{name}: {} reads in epoch {epoch}", reads.len());
        }
        // Of another handle too.
        array.close().unwrap();
        let again = container.array("a").unwrap();
        check(&again, &shape, &Selection::all(&shape).unwrap());
        assert!(seen.take_reads().is_empty(), "{name}");
        let said = container.diagnostics().join("\n");
        assert!(said.contains("cache: ") && said.contains("came from memory"), "{said}");
        container.close().unwrap();
    }
}

#[test]
fn more_than_memory_is_read_once_each_and_displaces_nothing() {
    let shape = [64, 512];
    let (format, seen) = watched("cache(memory=16KiB,block=1x512)");
    let (_container, array) = bytes(&*format, "scan", &shape, None, OpenMode::Read);
    // Used once more, so that it is worth more than what comes.
    for row in [3, 5, 3, 5] {
        check(&array, &shape, &dense(&[row, 0], &[1, 512]));
    }
    seen.take_reads();
    for _scan in 0..3 {
        for row in 0..64 {
            check(&array, &shape, &dense(&[row, 0], &[1, 512]));
        }
        let reads = seen.take_reads();
        assert!(reads.iter().all(|selection| selection.len() == 512), "nothing is read but what is asked for");
        for row in [3, 5] {
            check(&array, &shape, &dense(&[row, 0], &[1, 512]));
        }
        assert!(seen.take_reads().is_empty());
    }
    // All at once: by the call that was made.
    let all = Selection::all(&[64, 511]).unwrap();
    check(&array, &shape, &all);
    check(&array, &shape, &Selection::all(&shape).unwrap());
    assert!(seen.take_reads().len() <= 66);
}

#[test]
fn small_parts_are_read_alone_at_first_and_whole_when_they_come_again() {
    let shape = [32, 1024];
    let (format, seen) = watched("cache(memory=1MiB,block=1x1024)");
    let (_container, array) = bytes(&*format, "parts", &shape, None, OpenMode::Read);
    let asked = dense(&[4, 100], &[1, 10]);
    check(&array, &shape, &asked);
    assert_eq!(seen.take_reads(), [asked]);
    check(&array, &shape, &dense(&[4, 300], &[1, 10]));
    assert_eq!(seen.take_reads(), [dense(&[4, 0], &[1, 1024])]);
    check(&array, &shape, &dense(&[4, 0], &[1, 1000]));
    assert!(seen.take_reads().is_empty());
    check(&array, &shape, &dense(&[9, 0], &[1, 64]));
    assert_eq!(seen.take_reads(), [dense(&[9, 0], &[1, 1024])], "a sixteenth of an array that fits");
}

#[test]
fn small_samples_are_in_memory_after_an_epoch_too() {
    let shape = [3000, 16];
    let (format, seen) = watched("cache(memory=1MiB,block=1024)");
    let (_container, array) = bytes(&*format, "small samples", &shape, None, OpenMode::Read);
    for epoch in 0..2 {
        for sample in shuffled(3000, epoch + 1) {
            check(&array, &shape, &dense(&[sample, 0], &[1, 16]));
        }
        let reads = seen.take_reads();
        assert!(epoch == 0 || reads.is_empty(), "{} reads in epoch {epoch}", reads.len());
        // Each block first in part and then whole.
        assert!(reads.len() <= 2 * 47, "{} reads", reads.len());
    }
}

#[test]
fn missing_neighbours_are_read_together() {
    let shape = [40, 64];
    let (format, seen) = watched("cache(memory=1MiB,block=4x64)");
    let (_container, array) = bytes(&*format, "neighbours", &shape, None, OpenMode::Read);
    check(&array, &shape, &dense(&[8, 0], &[4, 64]));
    seen.take_reads();
    // Blocks 0 to 9, of which 2 is there.
    check(&array, &shape, &Selection::all(&shape).unwrap());
    assert_eq!(seen.take_reads(), [dense(&[0, 0], &[8, 64]), dense(&[12, 0], &[28, 64])]);
    let (_container, array) = bytes(&*format, "parts of neighbours", &shape, None, OpenMode::Read);
    check(&array, &shape, &dense(&[2, 0], &[13, 60]));
    assert_eq!(seen.take_reads(), [dense(&[0, 0], &[16, 64])]);
    check(&array, &shape, &Selection::strided(&[0, 0], &[2, 5], &[8, 10], &[1, 2]).unwrap());
    assert!(seen.take_reads().is_empty(), "with gaps, from the same blocks");
}

#[test]
fn hints_are_what_the_read_will_ask_for() {
    let shape = [40, 64];
    for (name, selection) in [
        ("one block", dense(&[4, 0], &[4, 64])),
        ("all", dense(&[0, 0], &[40, 64])),
        ("parts", dense(&[2, 0], &[13, 60])),
        ("little", dense(&[9, 5], &[1, 3])),
        ("gaps", Selection::strided(&[0, 0], &[2, 5], &[8, 10], &[1, 2]).unwrap()),
        ("few", Selection::strided(&[0, 0], &[9, 9], &[4, 4], &[1, 1]).unwrap()),
    ] {
        let (format, seen) = watched("cache(memory=1MiB,block=4x64)");
        let (_container, array) = bytes(&*format, &format!("hint {name}"), &shape, None, OpenMode::Read);
        check(&array, &shape, &dense(&[8, 0], &[4, 64]));
        seen.take_reads();
        array.prefetch(&selection);
        check(&array, &shape, &selection);
        assert_eq!(*seen.hints.lock().unwrap(), seen.take_reads(), "{name}");
        seen.hints.lock().unwrap().clear();
        if name != "little" && name != "few" {
            array.prefetch(&selection);
            assert!(seen.hints.lock().unwrap().is_empty(), "{name}: it is there");
        }
        array.prefetch(&dense(&[0, 0], &[41, 1]));
    }
}

#[test]
fn memory_of_any_layout_is_filled_from_blocks() {
    let shape = [50, 40];
    let (format, seen) = watched("cache(memory=64KiB,block=5x40)");
    let (_container, array) = bytes(&*format, "layouts", &shape, None, OpenMode::Read);
    let selection = dense(&[3, 4], &[40, 30]);
    let layout = MemoryLayout::strided(&[90, 40], Selection::strided(&[1, 2], &[2, 1], &[40, 30], &[1, 1]).unwrap());
    for epoch in 0..2 {
        let mut data = vec![0xEE; 3600];
        let view = MemoryViewMut { data: &mut data, layout: &layout };
        array.read(&selection, view, TransferMode::Independent).unwrap();
        for (at, byte) in data.iter().enumerate() {
            let (row, column) = (at / 40, at % 40);
            let inside = row % 2 == 1 && (1..80).contains(&row) && (2..32).contains(&column);
            let expected = if inside { ((3 + row / 2) * 40 + 4 + column - 2) % 251 } else { 0xEE };
            assert_eq!(usize::from(*byte), expected, "byte {at}");
        }
        assert_eq!(seen.take_reads().is_empty(), epoch > 0);
    }
}

#[test]
fn threads_that_read_together_share_one_cache() {
    let shape = [60, 64];
    let (format, seen) = watched("cache(memory=12KiB,block=1x64)");
    let (container, _) = bytes(&*format, "shared", &shape, None, OpenMode::Read);
    container.close().unwrap();
    Threads::run(3, |comm| {
        let container = format.open(&Path::new("cache").join("shared"), OpenMode::Read, &comm)?;
        let array = container.array("a")?;
        let rank = comm.rank() as u64;
        // One epoch, and then another in which everyone reads what another read before. More than one's own memory.
        for turn in 0..2 {
            let part = (rank + turn) % 3;
            for row in 0..20 {
                check(&array, &shape, &dense(&[part * 20 + row, 0], &[1, 64]));
            }
            comm.barrier()?;
            if turn == 0 && rank == 0 {
                let elements: u64 = seen.take_reads().iter().map(Selection::len).sum();
                assert_eq!(elements, 3840);
            }
            comm.barrier()?;
        }
        container.close()
    })
    .unwrap();
    assert!(seen.take_reads().is_empty(), "others had read it");
}

/// Hints for a block that another read brings first are never followed; others must still be read ahead.
#[test]
fn hints_that_come_to_nothing_do_not_stop_later_ones() {
    let shape = [400, 64];
    let seen = Arc::new(Seen { without_hints: true, ..Seen::default() });
    let inner: Arc<dyn Format> = Arc::new(Watched { inner: Arc::new(Memory) as Arc<dyn Format>, seen: seen.clone() });
    for (name, layers) in
        [("async", vec!["async(ahead=2)"]), ("cache", vec!["async(ahead=2)", "cache(memory=1MiB,block=1x64)"])]
    {
        let format = layers.iter().fold(inner.clone(), |inner, layer| wrap(layer, inner));
        let (container, array) = bytes(&*format, &format!("in vain {name}"), &shape, None, OpenMode::Read);
        array.prefetch(&dense(&[390, 0], &[1, 64]));
        array.prefetch(&dense(&[391, 0], &[1, 64]));
        for row in (0..300).step_by(7).flat_map(|row| [row, 301 - row]) {
            check(&array, &shape, &dense(&[row, 0], &[1, 1]));
        }
        seen.take_reads();
        let wanted = dense(&[395, 0], &[1, 3]);
        array.prefetch(&wanted);
        let ahead = || seen.reads.lock().unwrap().contains(&wanted);
        let begin = Instant::now();
        while !ahead() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        assert!(ahead(), "{name}: nothing was read ahead");
        check(&array, &shape, &wanted);
        container.close().unwrap();
    }
}
