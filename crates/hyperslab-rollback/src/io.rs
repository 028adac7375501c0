//! Positioned I/O that is repeated until all is done.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Fills the buffer from an offset as far as the file goes; returns the number of bytes.
pub(crate) fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], at + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes the whole buffer at an offset.
pub(crate) fn write_all(file: &File, buffer: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(buffer, at)
}

/// Writes zeros from `from` to `to`.
pub(crate) fn write_zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    const PIECE: u64 = 64 << 10;
    let zeros = vec![0; PIECE.min(to.saturating_sub(from)) as usize];
    let mut at = from;
    while at < to {
        let count = PIECE.min(to - at);
        write_all(file, &zeros[..count as usize], at)?;
        at += count;
    }
    Ok(())
}
