//! Random selections of any number of ranks: what is written is what direct writes would have left, and is read back.

use crate::build;
use hyperslab_comm::Threads;
use hyperslab_core::{
    ArraySpec, Datatype, Dims, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Selection, Slab, TransferMode, dims,
};
use proptest::prelude::*;

/// Elements as large as no power of two.
const ELEMENT: usize = 3;

#[derive(Debug, Clone)]
struct Case {
    ranks: usize,
    spec: ArraySpec,
    stack: String,
    /// For each element the ranks that write it, as bits; and those that read it.
    written: Vec<u8>,
    read: Vec<u8>,
    /// How each rank's memory lies.
    layouts: Vec<u8>,
}

fn case() -> impl Strategy<Value = Case> {
    let shape = prop::collection::vec((1u64..9, 1u64..6), 1..4);
    let layer = (
        1usize..9,
        prop::sample::select(vec!["even", "aligned", "static-cyclic", "group-cyclic,group=2"]),
        prop::sample::select(vec![1u64, 5, 16, 64, 1 << 20]),
        prop::sample::select(vec![1u64, 7, 64, 300, 1 << 20]),
        prop::sample::select(vec!["posix", "hdf5", "zarr"]),
    );
    (1usize..9, shape, any::<bool>(), layer, any::<bool>())
        .prop_flat_map(|(ranks, shape, chunked, (aggregators, domains, unit, buffer, format), overlap)| {
            let (shape, chunk): (Dims, Dims) = shape.into_iter().unzip();
            let elements = shape.iter().product::<u64>() as usize;
            let mut spec = ArraySpec::new(Datatype::Opaque(ELEMENT as u32), &shape);
            spec.chunk = (chunked && format != "posix").then_some(chunk);
            let stack =
                format!("twophase(aggregators={aggregators},domains={domains},unit={unit},buffer={buffer})/{format}");
            // Mostly runs of one rank, as programs have them.
            let runs = prop::collection::vec((0..=ranks, any::<u8>(), 1usize..12), elements);
            let written = runs.prop_map(move |runs| {
                let owner = |(rank, bits, _): &(usize, u8, usize)| match overlap {
                    true => *bits,
                    false => {
                        if *rank < 8 {
                            1u8 << rank
                        } else {
                            0
                        }
                    }
                };
                runs.iter().flat_map(|run| std::iter::repeat_n(owner(run), run.2)).take(elements).collect::<Vec<_>>()
            });
            let read = prop::collection::vec(any::<u8>(), elements);
            let layouts = prop::collection::vec(0u8..3, ranks);
            (Just((ranks, spec, stack)), written, read, layouts)
        })
        .prop_map(|((ranks, spec, stack), written, read, layouts)| Case { ranks, spec, stack, written, read, layouts })
}

/// The elements whose bits name the rank.
fn selection(bits: &[u8], rank: usize, shape: &[u64]) -> Selection {
    let pitches = dims::pitches(shape);
    let slabs = bits.iter().enumerate().filter(|(_, bits)| **bits >> rank & 1 == 1).map(|(number, _)| {
        let mut rest = number as u64;
        let index: Dims = pitches.iter().map(|pitch| (rest / pitch, rest %= pitch).0).collect();
        Slab::dense(&index, &Dims::from_elem(1, shape.len())).unwrap().unwrap()
    });
    Selection::union(shape.len(), slabs).unwrap()
}

fn value(number: usize, rank: usize) -> [u8; ELEMENT] {
    [number as u8, (number >> 8) as u8 + 1, rank as u8 + 100]
}

/// A layout for so many elements, the bytes it needs, and where its elements begin.
fn layout(kind: u8, elements: usize) -> (MemoryLayout, usize, Vec<usize>) {
    match kind {
        0 => (MemoryLayout::packed(), elements * ELEMENT, (0..elements).map(|i| i * ELEMENT).collect()),
        1 => (MemoryLayout::member(8, 4), elements * 8, (0..elements).map(|i| i * 8 + 4).collect()),
        _ => {
            let every_second = Selection::strided(&[1], &[2], &[elements as u64], &[1]).unwrap();
            let layout = MemoryLayout::strided(&[elements as u64 * 2 + 1], every_second);
            (layout, (elements * 2 + 1) * ELEMENT, (0..elements).map(|i| (i * 2 + 1) * ELEMENT).collect())
        }
    }
}

/// The numbers of the elements that a rank selects, rising.
fn numbers(bits: &[u8], rank: usize) -> Vec<usize> {
    (0..bits.len()).filter(|&number| bits[number] >> rank & 1 == 1).collect()
}

fn play(case: &Case) {
    let format = build(&case.stack);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let Case { spec, written, read, .. } = case;
    // Never written is zero; of several writers the highest rank wins.
    let expected = |number: usize| {
        let highest = (0..case.ranks).rev().find(|&rank| written[number] >> rank & 1 == 1);
        highest.map_or([0; ELEMENT], |rank| value(number, rank))
    };
    Threads::run(case.ranks, |comm| {
        let rank = comm.rank();
        let container = format.open(&path, OpenMode::Create, &comm)?;
        let array = container.create("a", spec)?;
        let mine = numbers(written, rank);
        let (memory, bytes, places) = layout(case.layouts[rank], mine.len());
        let mut data = vec![0xEE; bytes];
        for (&number, place) in mine.iter().zip(places) {
            data[place..place + ELEMENT].copy_from_slice(&value(number, rank));
        }
        let chosen = selection(written, rank, &spec.shape);
        array.write(&chosen, MemoryView { data: &data, layout: &memory }, TransferMode::Collective)?;
        container.flush(hyperslab_core::Durability::Visible)?;
        comm.barrier()?;

        let mine = numbers(read, rank);
        let (memory, bytes, places) = layout(case.layouts[rank], mine.len());
        let (mut data, mut wanted) = (vec![0xEE; bytes], vec![0xEE; bytes]);
        for (&number, place) in mine.iter().zip(places) {
            wanted[place..place + ELEMENT].copy_from_slice(&expected(number));
        }
        let chosen = selection(read, rank, &spec.shape);
        array.read(&chosen, MemoryViewMut { data: &mut data, layout: &memory }, TransferMode::Collective)?;
        assert!(data == wanted, "rank {rank} reads {data:?} instead of {wanted:?}");

        let mut all = vec![0xEE; written.len() * ELEMENT];
        array.read(&Selection::all(&spec.shape)?, MemoryViewMut::packed(&mut all), TransferMode::Independent)?;
        let wanted: Vec<u8> = (0..written.len()).flat_map(expected).collect();
        assert!(all == wanted, "the array holds {all:?} instead of {wanted:?}");
        container.close()
    })
    .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn collective_transfers_equal_direct_ones(case in case()) {
        play(&case);
    }
}

#[test]
fn more_ranks_than_rows_and_rounds_of_one_element() {
    for domains in ["even", "aligned", "static-cyclic", "group-cyclic"] {
        play(&Case {
            ranks: 7,
            spec: ArraySpec::new(Datatype::Opaque(ELEMENT as u32), &[3, 5]),
            stack: format!("twophase(aggregators=7,domains={domains},unit=1,buffer=1)/posix"),
            written: (0..15).map(|number| 1 << (number % 3)).collect(),
            read: vec![0x7F; 15],
            layouts: vec![0; 7],
        });
    }
}
