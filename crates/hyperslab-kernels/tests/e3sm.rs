//! E3SM's I/O: maps dealt out to any number of ranks, in each layout, tile what holds data; blobs say where they belong.
#![allow(clippy::unwrap_used)]

#[path = "common/doing.rs"]
mod doing;

use doing::doing;
use hyperslab_core::workload::Workload;
use hyperslab_core::{Dims, Fill, Selection, Slab, TransferMode};
use hyperslab_kernels::{Decomposition, E3sm, E3smCase, E3smLayout, History, Requests};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

fn kernel(case: E3smCase, ranks: usize, maps: Vec<Decomposition>) -> E3sm {
    E3sm {
        ranks,
        file: "e".into(),
        case,
        maps: Arc::new(maps),
        layout: E3smLayout::Canonical,
        records: 1,
        flush_every: 1,
        unlimited: true,
        compute: Duration::ZERO,
        transfer: TransferMode::Collective,
        seed: 1,
    }
}

/// A map of any shape whose elements are dealt out at random; the last "rank" of the draw stands for holes.
fn map() -> impl Strategy<Value = Decomposition> {
    (prop::collection::vec(1u64..7, 1..3), 1usize..6).prop_flat_map(|(dims, ranks)| {
        let whole = dims.iter().product::<u64>() as usize;
        prop::collection::vec(0..=ranks, whole).prop_map(move |owners| {
            let mut requests = vec![Requests::default(); ranks];
            for (element, owner) in owners.iter().enumerate() {
                if let Some(mine) = requests.get_mut(*owner) {
                    match mine.data.last_mut() {
                        Some((start, len)) if *start + *len == element as u64 => *len += 1,
                        _ => mine.data.push((element as u64, 1)),
                    }
                }
            }
            Decomposition { dims: dims.clone().into(), requests }
        })
    })
}

fn cases() -> impl Strategy<Value = E3sm> {
    let case = prop_oneof![Just(E3smCase::F), Just(E3smCase::G), Just(E3smCase::I)];
    (case, 1usize..9, 1u64..3, any::<bool>(), any::<bool>(), prop::collection::vec(map(), 6)).prop_map(
        |(case, ranks, records, unlimited, together, mut maps)| {
            maps.truncate(match case {
                E3smCase::F => 3,
                E3smCase::G => 6,
                E3smCase::I => 5,
            });
            let transfer = if together { TransferMode::Collective } else { TransferMode::Independent };
            E3sm { records, unlimited, transfer, ..kernel(case, ranks, maps) }
        },
    )
}

/// The elements of a map that hold data, in all records.
fn data_of(map: &Decomposition, records: u64) -> Selection {
    let slabs = (0..records).flat_map(|record| {
        let runs = map.requests.iter().flat_map(|requests| &requests.data);
        let whole: u64 = map.dims.iter().product();
        runs.flat_map(move |(start, len)| (*start..start + len).map(move |at| record * whole + at)).collect::<Vec<_>>()
    });
    let flat: Vec<u64> = slabs.collect();
    let shape: Vec<u64> = [records].into_iter().chain(map.dims.iter().copied()).collect();
    let slab = |at: &u64| {
        let mut rest = *at;
        let mut start: Dims = shape.clone().into();
        for axis in (0..shape.len()).rev() {
            (start[axis], rest) = (rest % shape[axis], rest / shape[axis]);
        }
        Slab::dense(&start, &vec![1; shape.len()]).unwrap().unwrap()
    };
    Selection::union(shape.len(), flat.iter().map(slab)).unwrap()
}

fn check(kernel: &E3sm, workload: &Workload) {
    let doing = doing(workload);
    for ((_, name), touched) in &doing.touched {
        let map = name.strip_prefix('D').map(|rest| rest[..1].parse::<usize>().unwrap() - 1);
        match (map, kernel.layout) {
            _ if name.contains('.') => assert!(touched.is_tiled(), "{name}"),
            (Some(map), E3smLayout::Canonical) => {
                let expected = data_of(&kernel.maps[map], kernel.records);
                assert!(touched.once().same_elements(&expected).unwrap(), "{name}");
            }
            (Some(_), E3smLayout::Blob) | (None, _) => assert!(touched.is_tiled(), "{name}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_element_with_data_is_transferred_once(kernel in cases()) {
        for history in kernel.case.histories() {
            for layout in [E3smLayout::Canonical, E3smLayout::Blob] {
                let kernel = E3sm { layout, ..kernel.clone() };
                check(&kernel, &kernel.write(*history).unwrap());
                check(&kernel, &kernel.read(*history).unwrap());
            }
        }
    }

    #[test]
    fn blobs_say_where_their_elements_belong(map in map(), ranks in 1usize..8) {
        let maps = vec![map.clone(), map.clone(), map];
        let canonical = kernel(E3smCase::F, ranks, maps);
        let blob = E3sm { layout: E3smLayout::Blob, ..canonical.clone() };
        let header = blob.write(History::H1).unwrap().header;
        // After the three maps and the variables of none come five tables for each map.
        let table = |number: usize| -> Vec<u64> {
            let Fill::Literal(bytes) = &header.arrays[4 + number].fill else { panic!("a table is literal") };
            bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
        };
        let (counts, starts, sizes, offsets, lengths) = (table(0), table(1), table(2), table(3), table(4));
        let width = offsets.len() / ranks;
        let canonical = doing(&canonical.write(History::H1).unwrap());
        let touched = &canonical.touched[&("e_h1.h5".to_owned(), "D1_001".to_owned())];
        let mut end = 0;
        for rank in 0..ranks {
            let row = rank * width..rank * width + counts[rank] as usize;
            let mut elements: Vec<u64> =
                row.flat_map(|at| offsets[at]..offsets[at] + lengths[at]).collect();
            assert_eq!((starts[rank], sizes[rank]), (end, elements.len() as u64));
            end += sizes[rank];
            elements.sort_unstable();
            let part = &touched.parts.iter().find(|(owner, _)| *owner == rank).unwrap().1;
            let found: Vec<u64> =
                part.runs(&touched.shape, 1).unwrap().flat_map(|run| run.offset..run.offset + run.len).collect();
            assert_eq!(elements, found, "the conversion of rank {rank}'s blob");
        }
    }
}

#[test]
fn the_published_shapes_have_the_published_sizes() {
    for (case, history, variables, arrays, bytes) in [
        (E3smCase::F, History::H0, 414, 4, (866 + 323 * 866 + 63 * 62_352) * 4 + 27 * 8),
        (E3smCase::F, History::H1, 51, 4, (866 + 22 * 866 + 62_352) * 4 + 27 * 8),
        (
            E3smCase::G,
            History::H0,
            52,
            7,
            (6 * 285 + 2 * 879 + 25 * 28_500 + 2 * 87_900 + 2 * 59_300 + 4 * 28_785) * 8 + 11 * 8,
        ),
        (E3smCase::I, History::H0, 560, 6, (465 + 75 * 15 + 4 * 10 + 9 + 17) * 5663 * 4 + 14 * 8),
        (E3smCase::I, History::H1, 552, 6, (465 + 69 * 15 + 2 * 10 + 9 + 17) * 5663 * 4 + 14 * 8),
    ] {
        let kernel = kernel(case, 2, case.maps(16).unwrap());
        let workload = kernel.write(history).unwrap();
        assert_eq!(workload.header.arrays.len(), arrays);
        let summary = workload.validate().unwrap();
        assert_eq!(summary.bytes_written, bytes, "{case:?} {history:?}");
        let doing = doing(&workload);
        assert_eq!(doing.touched.len(), variables);
        // A step for each variable, not for each of the thousands of requests.
        assert!(doing.steps < 4 * variables + 20, "{} steps", doing.steps);
        assert_eq!(kernel.read(history).unwrap().validate().unwrap().bytes_read, bytes);
    }
}

#[test]
fn idle_ranks_join_and_bad_maps_are_refused() {
    let maps = E3smCase::F.maps(2).unwrap();
    let workload = kernel(E3smCase::F, 5, maps.clone()).write(History::H1).unwrap();
    let doing = doing(&workload);
    let touched = &doing.touched[&("e_h1.h5".to_owned(), "D3_001".to_owned())];
    let busy: Vec<bool> = touched.parts.iter().map(|(_, part)| !part.is_empty()).collect();
    assert_eq!(busy, [true, true, false, false, false]);

    let mut twice = maps.clone();
    twice[0].requests[0].data.push((0, 1));
    let mut outside = maps.clone();
    outside[2].requests[1].data.push((u64::MAX, 2));
    for (maps, words) in [(maps[..2].to_vec(), "2 maps"), (twice, "twice"), (outside, "do not lie")] {
        let error = kernel(E3smCase::F, 2, maps).write(History::H0).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    assert!(E3sm { records: 0, ..kernel(E3smCase::F, 2, maps) }.write(History::H0).is_err());
}
