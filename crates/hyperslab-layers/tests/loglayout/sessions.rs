//! A container that is opened again and again, by different numbers of ranks.

use crate::{FORMATS, content, format, place, ranks, read};
use hyperslab_comm::Solo;
use hyperslab_core::{ArraySpec, Datatype, Durability, MemoryView, OpenMode, Selection, TransferMode};

const SHAPE: [u64; 2] = [24, 10];

fn mix(numbers: [u64; 3]) -> u64 {
    numbers.iter().fold(0x9E37_79B9_7F4A_7C15, |hash: u64, number| {
        let mixed = (hash ^ number).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ (mixed >> 29)
    })
}

/// Rows that a rank writes in a turn: those of its number among `size`, so that ranks never meet.
fn rows(seed: u64, turn: u64, rank: u64, size: u64) -> (Selection, Vec<u8>) {
    let choice = mix([seed, turn, rank]);
    let (first, columns) = ((choice >> 8) % 10, 1 + (choice >> 16) % 10);
    let columns = columns.min(10 - first);
    let count = (SHAPE[0] - rank).div_ceil(size);
    let selection = Selection::strided(&[rank, first], &[size, 1], &[count, 1], &[1, columns]).unwrap();
    let data = (0..selection.len() * 2).map(|n| (choice >> 24) as u8 ^ n as u8).collect();
    (selection, data)
}

#[test]
fn sessions_of_different_numbers_of_ranks_see_each_others_writes() {
    for below in FORMATS {
        for options in ["", "(room=150%)", "(room=300)", "(room=60)"] {
            let stack = format!("loglayout{options}/{below}");
            let layered = format(&stack);
            let (_folder, path) = place(&*layered);
            let spec = ArraySpec::new(
                Datatype::Integer { size: 2, signed: true, order: hyperslab_core::ByteOrder::NATIVE },
                &SHAPE,
            );
            let mut model = vec![0; 24 * 10 * 2];
            for (session, size) in [3usize, 1, 4, 2, 3].into_iter().enumerate() {
                let how = if session == 0 { OpenMode::Truncate } else { OpenMode::Update };
                let turns = |session: usize| (session as u64 * 10)..(session as u64 * 10 + 3);
                ranks(&*layered, &path, how, size, |comm, container| {
                    let array = if session == 0 { container.create("a", &spec)? } else { container.array("a")? };
                    for turn in turns(session) {
                        let (selection, data) = rows(7, turn, comm.rank() as u64, size as u64);
                        let transfer = if turn % 2 == 0 { TransferMode::Independent } else { TransferMode::Collective };
                        array.write(&selection, MemoryView::packed(&data), transfer)?;
                        if turn % 3 == 0 {
                            container.flush(Durability::Durable)?;
                        }
                    }
                    array.close()
                });
                for turn in turns(session) {
                    for rank in 0..size as u64 {
                        let (selection, data) = rows(7, turn, rank, size as u64);
                        let mut at = 0;
                        for run in selection.runs(&SHAPE, 2).unwrap() {
                            let (offset, len) = (run.offset as usize, run.len as usize);
                            model[offset..offset + len].copy_from_slice(&data[at..at + len]);
                            at += len;
                        }
                    }
                }
                assert!(content(&*layered, &path, "a").unwrap() == model, "{stack}, session {session}");
            }
        }
    }
}

/// What was flushed is there after a program that ended without closing, and what was not is as if it had not been written.
#[test]
fn a_session_that_was_not_closed_leaves_what_was_flushed() {
    for below in ["posix", "hdf5", "zarr"] {
        let layered = format(&format!("loglayout/{below}"));
        let (_folder, path) = place(&*layered);
        let container = layered.open(&path, OpenMode::Create, &Solo::shared()).unwrap();
        let array = container.create("a", &crate::bytes(10)).unwrap();
        crate::write(&*array, 0, &[1; 10]).unwrap();
        container.flush(Durability::Visible).unwrap();
        crate::write(&*array, 2, &[2; 3]).unwrap();
        assert_eq!(read(&*array).unwrap(), [1, 1, 2, 2, 2, 1, 1, 1, 1, 1]);
        drop((array, container));
        assert_eq!(content(&*layered, &path, "a").unwrap(), [1; 10], "{below}");
        ranks(&*layered, &path, OpenMode::Update, 2, |comm, container| {
            crate::write(&*container.array("a")?, comm.rank() as u64, &[5])
        });
        assert_eq!(content(&*layered, &path, "a").unwrap(), [5, 5, 1, 1, 1, 1, 1, 1, 1, 1], "{below}");
    }
}
