//! Counts against numbers worked out by hand, and what they must be at the edges.
#![allow(clippy::unwrap_used)]

#[path = "common/transfers.rs"]
mod transfers;

use hyperslab_core::{Datatype, MemoryLayout, Selection};
use hyperslab_model::{Count, Counting, count};
use transfers::{Transfers, total};

fn all(shape: &[u64]) -> Selection {
    Selection::all(shape).unwrap()
}

#[test]
fn a_chunk_above_the_cache_size_is_read_run_by_run_by_old_libraries() {
    // 64 chunks of 20000 x 64 int32, 5.12 MB each: 20000 runs of 256 bytes in each of them.
    let shape = [20_000, 4096];
    let reads = Transfers::reading(Datatype::I32, &shape).chunk(&[20_000, 64]).read(all(&shape));
    let calls = |stack: &str, old: bool| {
        let configuration = hyperslab::configuration(&stack.parse().unwrap()).unwrap();
        let configuration = if old { configuration.with_hdf5_1() } else { configuration };
        count(&reads.workload(), &configuration).unwrap().total()[Count::ReadCalls]
    };
    assert_eq!(calls("hdf5", true), 1_280_000);
    assert_eq!(calls("hdf5(cache=8MiB)", true), 64);
    assert_eq!(calls("hdf5", false), 64);
    // Since 2.0 the sieve takes 256 runs of 256 bytes at a time: they fill a chunk's rows, one after another.
    assert_eq!(calls("hdf5(cache=1MiB)", false), 64 * 20_000_u64.div_ceil(256));
}

#[test]
fn index_blocks_are_counted_in_a_scan_unless_nested_in_the_seeks() {
    let shape = [8192, 16];
    let scan = Transfers::reading(Datatype::I32, &shape).chunk(&[1, 16]).read(all(&shape));
    let blocks = |counting| total(&scan, "hdf5", counting)[Count::IndexBlocks];
    assert_eq!(blocks(Counting::PublishedAsPrinted), 0);
    assert_eq!(blocks(Counting::Published), 128);
}

#[test]
fn the_last_chunk_is_remembered_across_calls_and_only_for_reads_of_the_file() {
    let shape = [64, 64];
    let row = |r: u64| Selection::dense(&[r, 0], &[1, 64]).unwrap();
    let mut reads = Transfers::reading(Datatype::I32, &shape).chunk(&[1, 64]);
    for r in [0, 1, 1, 2, 9] {
        reads = reads.read(row(r));
    }
    let counts = total(&reads, "hdf5", Counting::Published);
    assert_eq!((counts[Count::ReadCalls], counts[Count::ReadJumps], counts[Count::CacheHits]), (4, 1, 0));
    // Without a library's cache, the second read of row 1 finds it in the system's.
    let counts = total(&reads, "zarr", Counting::Published);
    assert_eq!((counts[Count::ReadCalls], counts[Count::ReadJumps], counts[Count::CacheHits]), (4, 0, 1));
}

#[test]
fn partly_written_chunks_are_read_changed_and_stored_at_the_end() {
    // 4 chunks of 1 KiB, which are there; two of them are changed, one wholly and one in part.
    let shape = [512, 2];
    let part = Selection::dense(&[0, 0], &[192, 2]).unwrap();
    let writes = Transfers::changing(Datatype::F32, &shape).chunk(&[128, 2]).write(part.clone()).write(part);
    let counts = total(&writes, "hdf5", Counting::Real);
    assert_eq!((counts[Count::ReadCalls], counts[Count::ReadBytes]), (1, 1024));
    assert_eq!((counts[Count::WriteCalls], counts[Count::WriteBytes], counts[Count::NewBytes]), (2, 2048, 0));
    assert_eq!((counts[Count::ChunkVisits], counts[Count::CacheHits]), (4, 2));
    // Zarr has no cache: the same twice.
    let counts = total(&writes, "zarr", Counting::Real);
    assert_eq!((counts[Count::ReadCalls], counts[Count::FilesCreated], counts[Count::WriteBytes]), (2, 4, 4096));
}

#[test]
fn shards_are_one_file_and_an_index() {
    let shape = [64, 64];
    let whole =
        Transfers::making(Datatype::F32, &shape).write(all(&shape)).read(Selection::dense(&[0, 0], &[8, 64]).unwrap());
    let counts = total(&whole, "zarr(chunk=8x8,shard=32x32)", Counting::Real);
    assert_eq!((counts[Count::FilesCreated], counts[Count::WriteCalls]), (4, 4 * 17));
    assert_eq!(counts[Count::WriteBytes], 64 * 64 * 4 + 4 * (16 * 16 + 4));
    // Two shards are opened, four chunks of each read.
    assert_eq!((counts[Count::FilesOpened], counts[Count::ReadCalls]), (2, 2 * 5));
}

#[test]
fn filters_are_counted_by_the_bytes_that_they_see() {
    let shape = [1024, 8];
    let spec = Transfers::making(Datatype::F64, &shape).write(all(&shape)).read(all(&shape));
    for stack in ["hdf5(chunk=64x8,deflate=4,shuffle,cache=4KiB)", "hdf5(chunk=64x8,deflate=4,shuffle,plane=on)"] {
        let counts = total(&spec, stack, Counting::Real);
        assert_eq!((counts[Count::DeflateEncoded], counts[Count::DeflateDecoded]), (65536, 65536), "{stack}");
        assert_eq!(counts[Count::Shuffled], 2 * 65536, "{stack}");
    }
    let counts = total(&spec, "zarr(chunk=64x8,codec=zstd,crc32c)", Counting::Real);
    assert_eq!(
        (counts[Count::ZstdEncoded], counts[Count::ZstdDecoded], counts[Count::Checksummed]),
        (65536, 65536, 131_072)
    );
}

#[test]
fn members_of_structures_are_moved_one_by_one() {
    let shape = [1000];
    let layout = MemoryLayout::member(32, 8);
    let writes = Transfers::making(Datatype::F32, &shape).write_from(all(&shape), layout);
    for (stack, calls) in [("posix", 1), ("hdf5", 1), ("zarr", 1)] {
        let counts = total(&writes, stack, Counting::Real);
        assert_eq!(counts[Count::WriteCalls], calls, "{stack}");
        assert!(counts[Count::CopiedBytes] >= 4000, "{stack}");
    }
    assert_eq!(total(&writes, "posix", Counting::Real)[Count::ShortRuns], 1000);
}

#[test]
fn nothing_and_one_element_cost_no_more_than_they_must() {
    let none = Transfers::making(Datatype::F32, &[0, 5]).write(Selection::empty(2)).read(Selection::empty(2));
    let one = Transfers::making(Datatype::F32, &[]).write(all(&[])).read(all(&[]));
    for stack in ["posix", "hdf5", "hdf5(plane=on)", "zarr"] {
        let counts = total(&none, stack, Counting::Real);
        assert_eq!(
            (counts[Count::Requests], counts[Count::ReadCalls], counts[Count::WriteCalls]),
            (2, 0, 0),
            "{stack}"
        );
        let counts = total(&one, stack, Counting::Real);
        assert_eq!(counts[Count::Requests], 2, "{stack}");
        assert!((1..=2).contains(&counts[Count::WriteCalls]) && counts[Count::ReadCalls] <= 2, "{stack} {counts:?}");
    }
}

#[test]
fn layers_are_counted_where_they_copy() {
    let shape = [1024];
    let writes = Transfers::making(Datatype::F32, &shape).write(all(&shape)).read(all(&shape));
    let counts = total(&writes, "async/log/posix", Counting::Real);
    assert_eq!((counts[Count::LayerCalls], counts[Count::LayerBytes]), (4, 2 * 4096));
}

#[test]
fn what_cannot_be_modelled_is_refused() {
    assert!(hyperslab::configuration(&"null".parse().unwrap()).unwrap_err().to_string().contains("no model of null"));
    for stack in ["hdf5(chunk=x)", "zarr(chunk=3x3,shard=4x4)"] {
        assert!(hyperslab::configuration(&stack.parse().unwrap()).is_err(), "{stack}");
    }
    let shape = [8, 8];
    let writes = Transfers::making(Datatype::F32, &shape).write(all(&shape));
    let configuration = hyperslab::configuration(&"zarr(chunk=4)".parse().unwrap()).unwrap();
    assert!(count(&writes.workload(), &configuration).is_err());
}

#[test]
fn ranks_that_share_an_array_share_its_cache() {
    // Two ranks write the two halves of every chunk.
    let shape = [256, 64];
    let mut writes = Transfers::making(Datatype::F32, &shape).chunk(&[64, 64]);
    for c in 0..4 {
        for half in 0..2 {
            writes = writes.write_by(half as usize, Selection::dense(&[c * 64 + half * 32, 0], &[32, 64]).unwrap());
        }
    }
    let counts = total(&writes, "hdf5", Counting::Real);
    assert_eq!((counts[Count::WriteCalls], counts[Count::ReadCalls], counts[Count::CacheHits]), (4, 0, 4));
}
