//! Threads of one rank that read and write the same array at once.

use super::{bytes, dense, read, watched, write};
use hyperslab_core::{OpenMode, Selection};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};

const ROWS: u64 = 12;

/// One thread writes rows with rising values, others read: nobody sees a value older than one that was written before
/// the read began.
#[test]
fn no_thread_reads_what_was_overwritten_before() {
    for layer in ["cache(memory=1MiB)", "cache(memory=4KiB,block=64)", "cache(memory=4KiB,block=3x32)"] {
        let (format, _) = watched(layer);
        let (container, array) = bytes(&*format, "threads", &[ROWS, 64], None, OpenMode::Update);
        write(&array, &Selection::all(&[ROWS, 64]).unwrap(), 0);
        let written: [AtomicU8; ROWS as usize] = Default::default();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for reader in 0..3u64 {
                let (array, written, done) = (&array, &written, &done);
                scope.spawn(move || {
                    let mut turn = reader;
                    while !done.load(SeqCst) {
                        turn = turn.wrapping_mul(5).wrapping_add(1 + reader) % 1009;
                        let (row, rows) = (turn % ROWS, 1 + turn % 3);
                        let rows = rows.min(ROWS - row);
                        let least: Vec<u8> = (row..row + rows).map(|row| written[row as usize].load(SeqCst)).collect();
                        let found = read(array, &dense(&[row, 0], &[rows, 64]));
                        for (line, least) in found.chunks(64).zip(least) {
                            assert!(line.iter().all(|byte| *byte >= least), "{line:?} is older than {least}");
                        }
                    }
                });
            }
            for value in 1..=200 {
                for row in 0..ROWS {
                    write(&array, &dense(&[row, 0], &[1, 64]), value);
                    written[row as usize].store(value, SeqCst);
                }
            }
            done.store(true, SeqCst);
        });
        assert_eq!(read(&array, &Selection::all(&[ROWS, 64]).unwrap()), [200; 64 * ROWS as usize]);
        container.close().unwrap();
    }
}
