//! Large transfers by io_uring, with many operations in flight.
//!
//! A transfer returns only when none of its operations is in flight, also after an error: only then may its memory be
//! reused.

use io_uring::{IoUring, Probe, opcode, squeue, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Operations in flight.
const DEPTH: usize = 16;
/// Bytes per operation: a multiple of any device's block size.
const PIECE: usize = 1 << 20;

/// An io_uring instance, used by one transfer at a time.
pub(crate) struct Ring {
    ring: Mutex<Option<IoUring>>,
    /// Process that created it: a forked child must not consume its completions.
    process: u32,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ring")
    }
}

/// Direction and memory of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Write,
    Read,
}

/// One operation of a transfer.
struct Piece {
    memory: *mut u8,
    len: usize,
    offset: u64,
    /// Bytes transferred so far.
    done: usize,
    ended: bool,
}

impl Ring {
    /// Fails if the kernel does not support io_uring, or forbids it to this process.
    pub fn new() -> io::Result<Self> {
        let ring = IoUring::new(DEPTH as u32)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        match probe.is_supported(opcode::Write::CODE) && probe.is_supported(opcode::Read::CODE) {
            true => Ok(Self { ring: Mutex::new(Some(ring)), process: std::process::id() }),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes all bytes. `None`: use a plain call instead, because the transfer is small or the ring is busy.
    pub fn write(&self, file: &File, bytes: &[u8], offset: u64) -> Option<io::Result<()>> {
        let pieces = self.pieces(bytes.as_ptr().cast_mut(), bytes.len(), offset)?;
        Some(self.run(file, pieces, Direction::Write, 1)?.map(drop))
    }

    /// Reads until full or end of file, in units of `unit` bytes; returns the bytes read. `None` as for writes.
    pub fn read(&self, file: &File, bytes: &mut [u8], offset: u64, unit: usize) -> Option<io::Result<usize>> {
        let pieces = self.pieces(bytes.as_mut_ptr(), bytes.len(), offset)?;
        self.run(file, pieces, Direction::Read, unit)
    }

    fn pieces(&self, memory: *mut u8, len: usize, offset: u64) -> Option<Vec<Piece>> {
        if len < 2 * PIECE || std::process::id() != self.process {
            return None;
        }
        let starts = (0..len).step_by(PIECE);
        let piece = |from: usize| Piece {
            memory: memory.wrapping_add(from),
            len: PIECE.min(len - from),
            offset: offset + from as u64,
            done: 0,
            ended: false,
        };
        Some(starts.map(piece).collect())
    }

    fn run(&self, file: &File, mut pieces: Vec<Piece>, direction: Direction, unit: usize) -> Option<io::Result<usize>> {
        let mut guard = match self.ring.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return None,
        };
        let ring = guard.as_mut()?;
        let done = transfer(ring, file, &mut pieces, direction, unit);
        if done.is_err() {
            // Entries still queued must never be submitted.
            *guard = None;
        }
        Some(done.map(|()| {
            // The first short operation marks the end of the file.
            let whole = pieces.iter().take_while(|piece| piece.done == piece.len).count();
            let part = pieces.get(whole).map_or(0, |piece| piece.done);
            pieces[..whole].iter().map(|piece| piece.len).sum::<usize>() + part
        }))
    }
}

/// Executes all operations. Returns when none is in flight, also after an error.
fn transfer(
    ring: &mut IoUring,
    file: &File,
    pieces: &mut [Piece],
    direction: Direction,
    unit: usize,
) -> io::Result<()> {
    let (mut under_way, mut failure) = (0, None);
    let mut waiting: Vec<usize> = (0..pieces.len()).rev().collect();
    loop {
        while failure.is_none() && under_way < DEPTH {
            let Some(number) = waiting.pop() else { break };
            let entry = entry(file, &pieces[number], direction).user_data(number as u64);
            // SAFETY: the memory outlives the operation, since this function ends when nothing is under way.
            let pushed = unsafe { ring.submission().push(&entry) };
            if pushed.is_err() {
                waiting.push(number);
                break;
            }
            under_way += 1;
        }
        if under_way == 0 {
            return failure.map_or(Ok(()), Err);
        }
        match ring.submit_and_wait(1) {
            Err(cause) if !is_passing(&cause) => {
                // Nothing more is submitted; operations in flight complete without further calls.
                under_way -= ring.submission().len();
                failure.get_or_insert(cause);
                while under_way > 0 {
                    under_way -= ring.completion().count();
                    std::thread::yield_now();
                }
                continue;
            }
            _ => {}
        }
        let ended: Vec<(usize, i32)> =
            ring.completion().map(|entry| (entry.user_data() as usize, entry.result())).collect();
        for (number, result) in ended {
            under_way -= 1;
            let piece = &mut pieces[number];
            match piece.take(result, direction, unit) {
                Ok(()) if piece.ended => {}
                Ok(()) => waiting.push(number),
                Err(cause) => drop(failure.get_or_insert(cause)),
            }
        }
    }
}

fn entry(file: &File, piece: &Piece, direction: Direction) -> squeue::Entry {
    let (file, memory) = (types::Fd(file.as_raw_fd()), piece.memory.wrapping_add(piece.done));
    let (len, offset) = ((piece.len - piece.done) as u32, piece.offset + piece.done as u64);
    match direction {
        Direction::Write => opcode::Write::new(file, memory, len).offset(offset).build(),
        Direction::Read => opcode::Read::new(file, memory, len).offset(offset).build(),
    }
}

impl Piece {
    /// Records the completion of an operation.
    fn take(&mut self, result: i32, direction: Direction, unit: usize) -> io::Result<()> {
        if result < 0 {
            let cause = io::Error::from_raw_os_error(-result);
            return if is_passing(&cause) { Ok(()) } else { Err(cause) };
        }
        self.done += result as usize;
        let short = direction == Direction::Read && !self.done.is_multiple_of(unit);
        self.ended = self.done == self.len || short;
        match (result, direction) {
            (0, Direction::Write) => Err(io::ErrorKind::WriteZero.into()),
            (0, Direction::Read) => {
                self.ended = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Whether the error is transient.
fn is_passing(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// `None` where the kernel has no io_uring.
    fn ring() -> Option<Ring> {
        Ring::new().map_err(|cause| eprintln!("skipped: {cause}")).ok()
    }

    #[test]
    fn large_transfers_arrive_and_ends_are_found() {
        let Some(ring) = ring() else { return };
        let file = tempfile::tempfile().unwrap();
        let data: Vec<u8> = (0..40_000_123_u32).map(|i| (i ^ (i >> 11)) as u8).collect();
        ring.write(&file, &data, 77).unwrap().unwrap();
        let mut found = vec![0; data.len()];
        file.read_exact_at(&mut found, 77).unwrap();
        assert!(found == data);
        found.fill(0);
        assert_eq!(ring.read(&file, &mut found, 77, 1).unwrap().unwrap(), data.len());
        assert!(found == data);
        assert_eq!(ring.read(&file, &mut found, 1_000_000, 1).unwrap().unwrap(), data.len() + 77 - 1_000_000);
        assert!(found[..1000] == data[1_000_000 - 77..][..1000]);
        assert_eq!(ring.read(&file, &mut found, 1 << 40, 1).unwrap().unwrap(), 0);
        assert!(ring.write(&file, &data[..1000], 0).is_none(), "small ones are left to plain calls");
    }

    #[test]
    fn errors_are_told_and_nothing_is_left_under_way() {
        let Some(ring) = ring() else { return };
        let named = tempfile::NamedTempFile::new().unwrap();
        named.as_file().set_len(64 << 20).unwrap();
        let read_only = File::open(named.path()).unwrap();
        let mut data = vec![1; 32 << 20];
        assert_eq!(ring.write(&read_only, &data, 0).unwrap().unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert!(ring.write(named.as_file(), &data, 0).is_none(), "it is not used again");
        let Some(ring) = self::ring() else { return };
        let folder = File::open("/").unwrap();
        assert!(ring.read(&folder, &mut data, 0, 1).unwrap().is_err());
    }
}
