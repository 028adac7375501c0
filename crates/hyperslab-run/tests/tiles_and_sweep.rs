//! The tiles and exerciser kernels run for real, on every format that stores, every byte compared.
#![allow(clippy::unwrap_used)]

use hyperslab_core::workload::Workload;
use hyperslab_core::{ErrorKind, Format, StackElement, TransferMode};
use hyperslab_kernels::{DatasetRank, Scaling, SlowestDim, Sweep, Tiles};
use hyperslab_run::{Case, Outcome, Progress, Verified, run_case};
use std::path::Path;
use std::sync::Arc;

/// The formats of this build that store. Tests of the whole workspace have all three.
fn formats() -> Vec<Arc<dyn Format>> {
    let build = |name: &str| match hyperslab_formats::build(&StackElement::plain(name)) {
        Ok(format) => Some(format),
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    };
    ["posix", "hdf5", "zarr"].into_iter().filter_map(build).collect()
}

fn run(workload: &Workload, format: &Arc<dyn Format>, directory: &Path) -> Outcome {
    let progress = Progress::default();
    run_case(&Case { verify: true, overwrite: true, ..Case::new(workload, format.clone(), directory, &progress) })
}

/// Writes and reads, both verified; formats without chunks must say so.
fn write_and_read(format: &Arc<dyn Format>, chunked: bool, write: (Workload, u64), read: (Workload, u64)) {
    let directory = tempfile::tempdir().unwrap();
    let about = format!("{} on {}", write.0.header.about, format.name());
    if chunked && !format.caps().data.chunks {
        let error = run(&write.0, format, directory.path()).failure.unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{about}: {error}");
        return;
    }
    for (workload, bytes) in [write, read] {
        let outcome = run(&workload, format, directory.path());
        assert!(outcome.failure.is_none(), "{about}: {:?}", outcome.failure);
        assert_eq!(outcome.verified, Verified::Yes, "{about}");
        assert_eq!(outcome.repetitions[0].bytes(), bytes, "{about}");
    }
}

#[test]
fn every_kind_of_tiles_is_written_read_and_verified() {
    for format in formats() {
        for (process_rows, process_columns) in [(1, 1), (2, 1), (2, 2)] {
            for dataset_rank in [DatasetRank::Two, DatasetRank::Three, DatasetRank::Four] {
                for slowest in [SlowestDim::Step, SlowestDim::Array] {
                    for chunked in [false, true] {
                        for scaling in [Scaling::Weak, Scaling::Strong] {
                            let collective = scaling == Scaling::Strong;
                            let tiles = Tiles {
                                ranks: (process_rows * process_columns) as usize,
                                process_rows,
                                process_columns,
                                file: format!("t.{}", format.extension()),
                                steps: 3,
                                arrays: 2,
                                rows: 4,
                                columns: 6,
                                scaling,
                                dataset_rank,
                                slowest,
                                chunked,
                                transfer: if collective { TransferMode::Collective } else { TransferMode::Independent },
                                seed: 7,
                            };
                            let bytes = tiles.total_bytes().unwrap();
                            let (write, read) = (tiles.write().unwrap(), tiles.read().unwrap());
                            write_and_read(&format, chunked, (write, bytes), (read, bytes));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn sweeps_with_all_their_options_are_written_read_and_verified() {
    let gaps = |blocks: [u64; 2], strides: [u64; 2]| (blocks, strides);
    for format in formats() {
        for (ranks, grid) in [(1, [1, 1]), (2, [1, 2]), (4, [2, 2]), (4, [4, 1])] {
            for (memory_block, memory_stride) in [(0, 1), (3, 5)] {
                for (blocks, strides) in [gaps([0, 0], [1, 1]), gaps([2, 3], [5, 3]), gaps([1, 1], [2, 4])] {
                    for chunked in [false, true] {
                        let sweep = Sweep {
                            ranks,
                            file: format!("s.{}", format.extension()),
                            extent: [4, 6].as_slice().into(),
                            grid: grid.as_slice().into(),
                            memory_block,
                            memory_stride,
                            file_blocks: blocks.as_slice().into(),
                            file_strides: strides.as_slice().into(),
                            chunked,
                            shift: u64::from(memory_block > 0),
                            attributes: grid == [4, 1] && blocks == [0, 0],
                            derived: grid == [2, 2],
                            transfer: if chunked { TransferMode::Collective } else { TransferMode::Independent },
                            seed: 7,
                        };
                        let write = (sweep.write().unwrap(), sweep.total_bytes().unwrap());
                        let read = (sweep.read().unwrap(), sweep.read_bytes().unwrap());
                        write_and_read(&format, chunked, write, read);
                    }
                }
            }
        }
    }
}

#[test]
fn one_to_four_dimensions_and_every_size_of_a_sweep() {
    for format in formats() {
        for dimensions in 1..=4 {
            let (grid, asked) = Sweep::process_grid(&[], dimensions, 2);
            assert!(!asked);
            for extent in Sweep::sizes(&vec![2; dimensions], &vec![2; dimensions], 2).unwrap() {
                let sweep = Sweep {
                    ranks: 2,
                    file: "s".into(),
                    file_blocks: extent.iter().map(|_| 1).collect(),
                    file_strides: extent.iter().map(|_| 2).collect(),
                    extent,
                    grid: grid.clone(),
                    memory_block: 2,
                    memory_stride: 3,
                    chunked: false,
                    shift: 3,
                    attributes: false,
                    derived: true,
                    transfer: TransferMode::Collective,
                    seed: 1,
                };
                let write = (sweep.write().unwrap(), sweep.total_bytes().unwrap());
                let read = (sweep.read().unwrap(), sweep.read_bytes().unwrap());
                write_and_read(&format, false, write, read);
            }
        }
    }
}
