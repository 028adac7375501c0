//! openPMD, AMReX, MACSio and streams: what the ranks transfer tiles the arrays as declared.
#![allow(clippy::unwrap_used)]

#[path = "common/doing.rs"]
mod doing;

use doing::doing;
use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{Dims, Fill, Filter, Result, Selection, TransferMode};
use hyperslab_kernels::{Amrex, Encoding, Macsio, OpenPmd, ParallelFiles, ReadPattern, Stream};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

fn openpmd() -> impl Strategy<Value = OpenPmd> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (1usize..9, prop::collection::vec((1u64..4, 1u64..4), 1..4), 0u64..3, 1u64..5, 0usize..3, flags).prop_map(
        |(ranks, dimensions, ratio, steps, axis, (balanced, by_file, rank_blocks, together))| {
            let mut grid: Dims = dimensions.iter().map(|pair| pair.1).collect();
            let axis = axis % grid.len().min(2);
            grid[axis] *= ranks as u64;
            OpenPmd {
                ranks,
                file: "o".into(),
                balanced,
                ratio: ratio as f64 / 2.0,
                steps,
                block: dimensions.iter().map(|pair| pair.0).collect(),
                grid,
                encoding: if by_file { Encoding::File } else { Encoding::Group },
                rank_blocks,
                transfer: if together { TransferMode::Collective } else { TransferMode::Independent },
                seed: 1,
            }
        },
    )
}

fn amrex() -> impl Strategy<Value = Amrex> {
    let flags = (any::<bool>(), any::<bool>());
    (1usize..6, 1u64..9, 1u64..5, 1u64..4, prop::collection::vec(2u64..4, 0..2), 0u64..3, 1u64..3, flags).prop_map(
        |(ranks, cells, largest_box, components, ratios, particles_per_cell, files, (together, filtered))| Amrex {
            ranks,
            directory: String::new(),
            cells,
            largest_box,
            components,
            ratios,
            particles_per_cell,
            plot_files: files,
            particle_files: files,
            compute: Duration::from_millis(1),
            filters: if filtered { vec![Filter::Deflate(1)] } else { Vec::new() },
            transfer: if together { TransferMode::Collective } else { TransferMode::Independent },
            seed: 1,
        },
    )
}

fn macsio() -> impl Strategy<Value = Macsio> {
    (1usize..6, any::<bool>(), 1u64..4, 0u64..3, 1usize..4, 1usize..20, 1u64..3).prop_map(
        |(ranks, shared, each, more, dimensions, variables, dumps)| Macsio {
            ranks,
            file: "m".into(),
            mode: if shared { ParallelFiles::Shared } else { ParallelFiles::Independent { files: ranks } },
            parts: each * ranks as u64 + if shared { 0 } else { more },
            part_bytes: 1600,
            dimensions,
            variables,
            dumps,
            compute: Duration::ZERO,
            seed: 1,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn openpmd_tiles_every_mesh_and_species(kernel in openpmd()) {
        let written = doing(&kernel.write().unwrap());
        let meshes = 2 * kernel.block.len() + 1;
        prop_assert_eq!(written.touched.len() as u64, kernel.steps * (meshes as u64 + 3));
        for (name, touched) in &written.touched {
            prop_assert!(touched.is_tiled(), "{:?} of {:?}", name, kernel);
        }
        let cells: u64 = kernel.mesh().iter().product();
        prop_assert_eq!(written.bytes, kernel.steps * 8 * (cells * meshes as u64 + 3 * kernel.particles()));
        let files: BTreeSet<&String> = written.touched.keys().map(|(file, _)| file).collect();
        prop_assert_eq!(files.len() as u64, if kernel.encoding == Encoding::File { kernel.steps } else { 1 });
        for pattern in ["m", "sx", "fx", "3", "441", "110", "190", "7", "2002003"] {
            let read = doing(&kernel.read(&pattern.parse().unwrap()).unwrap());
            let files = kernel.steps.div_ceil(5);
            let arrays: BTreeSet<_> = read.touched.keys().collect();
            prop_assert!(arrays.len() as u64 >= files && read.created.is_empty(), "{}", pattern);
            if pattern == "2002003" {
                prop_assert!(read.touched.values().all(|touched| touched.is_tiled()), "a full scan");
                prop_assert_eq!(read.bytes, files * 8 * cells);
            }
        }
    }

    #[test]
    fn amrex_tiles_every_level(kernel in amrex()) {
        let plot = doing(&kernel.plot().unwrap());
        let levels = kernel.ratios.len() as u64 + 1;
        prop_assert_eq!(plot.touched.len() as u64, kernel.plot_files * levels * 4);
        prop_assert!(plot.touched.values().all(|touched| touched.is_tiled()));
        let particles = doing(&kernel.particles().unwrap());
        prop_assert!(particles.touched.values().all(|touched| touched.is_tiled()));
        let count = kernel.cells.pow(3) * kernel.particles_per_cell;
        let boxes = kernel.cells.div_ceil(kernel.largest_box).pow(3);
        prop_assert_eq!(particles.bytes, kernel.particle_files * (count * (6 * 4 + 15 * 8) + boxes * (4 + 24)));
        let check = doing(&kernel.restart_check().unwrap());
        prop_assert_eq!(check.touched.len() as u64, levels);
        prop_assert!(check.touched.values().all(|touched| touched.is_tiled()));
    }

    #[test]
    fn macsio_tiles_every_variable(kernel in macsio()) {
        let doing = doing(&kernel.write().unwrap());
        let shared = kernel.mode == ParallelFiles::Shared;
        let arrays = if shared { 1 } else { kernel.parts } * kernel.variables as u64 * kernel.dumps;
        prop_assert_eq!(doing.touched.len() as u64, arrays);
        prop_assert!(doing.touched.values().all(|touched| touched.is_tiled()));
    }

    #[test]
    fn a_stream_grows_by_what_it_writes(ranks in 1usize..4, operations in 1u64..20, batch in 1u64..4) {
        let stream = Stream { ranks, file: "s.h5".into(), operations, batch, chunk: 8, strings: false, seed: 1 };
        let doing = doing(&stream.write().unwrap());
        let touched = doing.touched.values().next().unwrap();
        prop_assert_eq!(touched.shape[0], operations * batch);
        prop_assert!(touched.is_tiled());
        prop_assert_eq!(touched.parts.len() as u64, operations);
    }
}

fn some_openpmd() -> OpenPmd {
    OpenPmd {
        ranks: 8,
        file: "8a_parallel_3Db".into(),
        balanced: true,
        ratio: 1.0,
        steps: 1,
        block: Dims::from_slice(&[2, 3, 4]),
        grid: Dims::from_slice(&[16, 4, 2]),
        encoding: Encoding::Group,
        rank_blocks: true,
        transfer: TransferMode::Independent,
        seed: 1,
    }
}

/// The mesh cells that a rank writes, by the published rules worked out by hand.
#[test]
fn patches_are_the_first_form_that_fits() {
    let part = |kernel: &OpenPmd, rank: usize, step: u64| -> Vec<Selection> {
        let doing = doing(&kernel.write().unwrap());
        let name = format!("data/{step}/fields/rho");
        let (_, touched) = doing.touched.iter().find(|((_, array), _)| *array == name).unwrap();
        touched.parts.iter().filter(|(owner, _)| *owner == rank).map(|(_, part)| part.clone()).collect()
    };
    let block = |start: [u64; 3], count: [u64; 3]| vec![Selection::dense(&start, &count).unwrap()];
    // 16 mini-blocks in x on 8 ranks: two each, whole planes.
    assert_eq!(part(&some_openpmd(), 3, 1), block([12, 0, 0], [4, 12, 8]));
    let grid = |grid: [u64; 3]| OpenPmd { grid: Dims::from_slice(&grid), ..some_openpmd() };
    // Only y is a multiple of 8.
    assert_eq!(part(&grid([3, 16, 2]), 3, 1), block([0, 18, 0], [6, 6, 8]));
    // Neither; m = 4 * 4 * 4 / 8 = 8 divides none; 4 * 4 / 8 = 2 divides x: patches of 2 x 1 x 4.
    assert_eq!(part(&grid([4, 4, 4]), 1, 1), block([0, 3, 0], [4, 3, 16]));
    let unbalanced = OpenPmd { balanced: false, steps: 2, ..some_openpmd() };
    assert_eq!(part(&unbalanced, 4, 1), []);
    assert_eq!(part(&unbalanced, 5, 1), block([16, 0, 0], [8, 12, 8]), "its own and that of rank 4");
    assert_eq!(part(&unbalanced, 5, 2), block([20, 0, 0], [4, 12, 8]), "only every third step differs");
    assert!(grid([3, 5, 7]).write().unwrap_err().to_string().contains("equal boxes"));
}

#[test]
fn readers_codes_are_those_of_the_benchmark() {
    let kernel = OpenPmd { steps: 7, ..some_openpmd() };
    let parts = |pattern: &str| {
        let doing = doing(&kernel.read(&pattern.parse().unwrap()).unwrap());
        let names: Vec<String> = doing.touched.keys().map(|(_, name)| name.clone()).collect();
        (names, doing.touched.into_values().map(|touched| touched.parts).collect::<Vec<_>>())
    };
    let (names, slices) = parts("sx");
    assert_eq!(names, ["data/1/fields/rho", "data/6/fields/rho"], "every fifth iteration");
    assert_eq!(slices[0][3], (3, Selection::dense(&[3, 0, 0], &[1, 12, 8]).unwrap()));
    let (names, slices) = parts("fy");
    assert_eq!(names[..3], ["data/1/fields/B/x", "data/1/fields/B/y", "data/1/fields/B/z"]);
    assert_eq!(slices[0][3], (3, Selection::dense(&[0, 3, 0], &[32, 1, 8]).unwrap()));
    assert_eq!(parts("13").1[0].len(), 1, "rank 0 only");
    let (_, blocks) = parts("440");
    assert_eq!(blocks[0], [(0, Selection::dense(&[12, 4, 3], &[8, 3, 2]).unwrap())]);
    assert_eq!(parts("441").1[0][0].1.bounds().unwrap().0.as_slice(), [0, 0, 0]);
    assert_eq!(parts("442").1[0][0].1.bounds().unwrap().1.as_slice(), [32, 12, 8]);
    let (_, ids) = parts("7");
    assert_eq!(ids[0], [(0, Selection::dense(&[0], &[3072 / 80]).unwrap())]);
    assert!(parts("m").1.iter().all(Vec::is_empty));
    for wrong in ["", "sw", "-1", "99", "35", "1000", "1e9"] {
        assert!(wrong.parse::<ReadPattern>().is_err(), "{wrong}");
    }
    let flat = OpenPmd { block: Dims::from_slice(&[4]), grid: Dims::from_slice(&[8]), ..kernel };
    assert!(flat.read(&"sz".parse().unwrap()).is_err());
}

fn some_amrex() -> Amrex {
    Amrex {
        ranks: 2,
        directory: String::new(),
        cells: 8,
        largest_box: 4,
        components: 3,
        ratios: vec![2],
        particles_per_cell: 2,
        plot_files: 1,
        particle_files: 1,
        compute: Duration::ZERO,
        filters: Vec::new(),
        transfer: TransferMode::Collective,
        seed: 1,
    }
}

/// Boxes and offsets worked out by hand.
#[test]
fn amrex_lists_boxes_by_owner() {
    let kernel = some_amrex();
    let header = kernel.plot().unwrap().header;
    let numbers = |array: usize| -> Vec<i32> {
        let Fill::Literal(bytes) = &header.arrays[array].fill else { panic!("a list is literal") };
        bytes.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect()
    };
    let boxes = numbers(0);
    assert_eq!(boxes.len(), 8 * 6);
    assert_eq!(boxes[..12], [0, 0, 0, 3, 3, 3, 4, 0, 0, 7, 3, 3], "i is fastest");
    let offsets: Vec<i32> = numbers(1).into_iter().step_by(2).collect();
    assert_eq!(offsets, (0..=8).map(|number| number * 64 * 3).collect::<Vec<i32>>());
    // The middle half of 8 cells, twice as fine: 8 cells from 4 to 11.
    assert_eq!(numbers(4)[..6], [4, 4, 4, 7, 7, 7]);
    assert_eq!(numbers(4)[42..], [8, 8, 8, 11, 11, 11]);
    let doing = doing(&kernel.plot().unwrap());
    let data = &doing.touched[&("plt00000.h5".to_owned(), "level_0/data:datatype=0".to_owned())];
    let half = |start| Selection::dense(&[start], &[768]).unwrap();
    assert_eq!(data.parts, [(0, half(0)), (1, half(768))], "one write of each rank");
}

#[test]
fn what_contradicts_itself_is_refused() {
    let kernel = some_amrex();
    let said = |workload: Result<Workload>| workload.unwrap_err().to_string();
    for (kernel, words) in [
        (Amrex { cells: 0, ..kernel.clone() }, "at least 1"),
        (Amrex { ratios: vec![1], ..kernel.clone() }, "at least 2"),
        (Amrex { ratios: vec![1 << 40], ..kernel.clone() }, "2^31"),
        (Amrex { cells: 1 << 30, largest_box: 1, ..kernel.clone() }, "too many"),
        (Amrex { cells: 1 << 10, largest_box: 4, ..kernel.clone() }, "boxes"),
        (Amrex { cells: 1 << 30, largest_box: 1 << 30, ratios: vec![], ..kernel.clone() }, "2^6"),
        (Amrex { plot_files: u64::MAX, ..kernel.clone() }, "at most"),
    ] {
        let error = said(kernel.plot());
        assert!(error.contains(words), "{error}");
    }
    assert!(Amrex { plot_files: 0, particle_files: 0, ..kernel }.phases(true).is_err());

    let kernel = Macsio {
        ranks: 4,
        file: "m".into(),
        mode: ParallelFiles::Shared,
        parts: 4,
        part_bytes: 80_000,
        dimensions: 2,
        variables: 1,
        dumps: 1,
        compute: Duration::ZERO,
        seed: 1,
    };
    for (kernel, words) in [
        (Macsio { parts: 5, ..kernel.clone() }, "whole number"),
        (Macsio { mode: ParallelFiles::Independent { files: 2 }, ..kernel.clone() }, "turns"),
        (Macsio { part_bytes: 16, ..kernel.clone() }, "larger part_size"),
        (Macsio { dimensions: 4, ..kernel.clone() }, "1, 2 or 3"),
        (Macsio { parts: 0, ..kernel.clone() }, "at least 1 part"),
        (Macsio { dumps: 1 << 40, ..kernel }, "dumps"),
    ] {
        let error = kernel.write().unwrap_err();
        assert!(format!("{error:?}{error}").contains(words), "{error}");
    }
    let kernel = some_openpmd();
    for kernel in [
        OpenPmd { steps: 0, ..kernel.clone() },
        OpenPmd { ratio: f64::NAN, ..kernel.clone() },
        OpenPmd { grid: Dims::from_slice(&[u64::MAX, 2, 2]), ..kernel.clone() },
        OpenPmd { grid: Dims::from_slice(&[2, 2]), ..kernel.clone() },
        OpenPmd { block: Dims::from_slice(&[0, 2, 2]), ..kernel },
    ] {
        assert!(kernel.write().is_err(), "{kernel:?}");
    }
    let stream =
        Stream { ranks: 1, file: "s".into(), operations: 1 << 50, batch: 1, chunk: 1, strings: false, seed: 1 };
    assert!(stream.write().is_err() && Stream { chunk: 0, operations: 1, ..stream }.write().is_err());
}

#[test]
fn pauses_lie_before_every_file_but_the_first() {
    let kernel = Amrex { plot_files: 3, compute: Duration::from_secs(2), ..some_amrex() };
    let workload = kernel.plot().unwrap();
    let steps: Vec<Step> = workload.steps(1).unwrap().collect::<Result<_>>().unwrap();
    let pauses: Vec<usize> =
        steps.iter().enumerate().filter(|(_, step)| matches!(step, Step::Compute { .. })).map(|(at, _)| at).collect();
    assert_eq!(pauses.len(), 2);
    assert!(matches!(steps[..pauses[0]].last(), Some(Step::Epoch { number: 1 })));
}
