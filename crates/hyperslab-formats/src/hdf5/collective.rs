//! Transfers that processes make together, and what became of them: libhdf5 falls back to independent ones silently.

use super::dataspace;
use super::library::{self, Id, done};
use super::mpio;
use super::options::Options;
use hdf5_metno_sys::h5s;
use hyperslab_core::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    Write,
    Read,
}

/// What collective transfers of one container need, and how they went on this rank.
#[derive(Debug)]
pub(super) struct Collective {
    list: Id,
    /// A memory of which nothing is selected.
    nothing: Arc<Id>,
    tally: Mutex<Tally>,
    /// Whether the file could not be written once.
    failed: AtomicBool,
}

impl Collective {
    pub(super) fn new(options: &Options) -> Result<Self> {
        library::with(|| {
            let nothing = Arc::new(dataspace::simple(&[1], None)?);
            // SAFETY: the dataspace is live.
            done("open", unsafe { h5s::H5Sselect_none(nothing.raw()) })?;
            Ok(Self {
                list: mpio::collective_transfer(options)?,
                nothing,
                tally: Mutex::default(),
                failed: false.into(),
            })
        })
    }

    /// The transfer list. libhdf5 forgets the last outcome when the next transfer begins.
    pub(super) fn list(&self) -> &Id {
        &self.list
    }

    /// A memory of which nothing is selected.
    pub(super) fn nothing(&self) -> &Arc<Id> {
        &self.nothing
    }

    /// Notes how the transfer that has just succeeded went. Call under the lock.
    pub(super) fn note(&self, direction: Direction) -> Result<()> {
        let (mode, causes) = mpio::outcome(&self.list)?;
        self.tally().count(direction, mode, causes);
        Ok(())
    }

    /// Notes a transfer that libhdf5 was not asked to make collectively, because elements must be converted.
    pub(super) fn note_conversion(&self, direction: Direction) {
        self.tally().count(direction, 0, CONVERSION);
    }

    /// Notes an error that may leave the processes with different ideas of the file.
    pub(super) fn note_error(&self, error: &Error) {
        if matches!(error.kind(), ErrorKind::Io | ErrorKind::NoSpace) {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    /// Refuses to close a file that could not be written: libhdf5 (2.2) then waits for itself forever.
    pub(super) fn refuse_closing(&self) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io, "close", "the file could not be written before, and stays open")
                .hint("end the job and start again; what the file holds is not to be trusted"));
        }
        Ok(())
    }

    /// What people should know.
    pub(super) fn diagnostics(&self) -> Vec<String> {
        self.tally().diagnostics()
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `H5D_MPIO_CHUNK_INDEPENDENT` and `H5D_MPIO_CHUNK_MIXED`: modes of transfers that libhdf5 does not count as broken.
const CHUNK_INDEPENDENT: u32 = 1;
const CHUNK_MIXED: u32 = 3;
/// `H5D_MPIO_DATATYPE_CONVERSION`.
const CONVERSION: u32 = 0x02;
/// `H5D_MPIO_NO_SELECTION_IO`: a detail of other causes.
const NO_SELECTION_IO: u32 = 0x100;

/// Why a transfer was not collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// One bit of libhdf5's causes.
    Bit(u32),
    FewRanksAtChunks,
    SomeChunks,
}

impl Cause {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::SomeChunks => ("partly independently", "too few ranks had elements in some of the chunks"),
            Self::FewRanksAtChunks => ("independently", "too few ranks had elements in each of the chunks"),
            Self::Bit(bit) => ("independently", reason(bit)),
        }
    }
}

fn reason(bit: u32) -> &'static str {
    match bit {
        CONVERSION => "a datatype conversion was needed",
        0x04 => "a data transform was set",
        0x08 => "the environment variable HDF5_MPI_OPT_TYPES forbids it",
        0x10 => "the array or the memory has no simple shape",
        0x20 => "the array is neither contiguous nor chunked",
        0x40 => "this libhdf5 cannot write filtered arrays in parallel",
        0x80 => "libhdf5 could not find out whether it was possible",
        _ => "libhdf5 gave no reason that is known here",
    }
}

/// Transfers and the causes that kept some from being collective.
#[derive(Debug, Default)]
struct Tally {
    total: BTreeMap<Direction, u64>,
    broken: BTreeMap<(Direction, Cause), u64>,
}

impl Tally {
    fn count(&mut self, direction: Direction, mode: u32, causes: u32) {
        *self.total.entry(direction).or_default() += 1;
        let causes = if causes & !NO_SELECTION_IO != 0 { causes & !NO_SELECTION_IO } else { causes };
        let bits = (0..u32::BITS).map(|n| 1 << n).filter(|bit| causes & bit != 0).map(Cause::Bit);
        let chunks = match mode {
            _ if causes != 0 => None,
            CHUNK_INDEPENDENT => Some(Cause::FewRanksAtChunks),
            CHUNK_MIXED => Some(Cause::SomeChunks),
            _ => None,
        };
        for cause in bits.chain(chunks) {
            *self.broken.entry((direction, cause)).or_default() += 1;
        }
    }

    fn diagnostics(&self) -> Vec<String> {
        let line = |(&(direction, cause), number): (&(Direction, Cause), &u64)| {
            let total = self.total.get(&direction).copied().unwrap_or_default();
            let (how, why) = cause.words();
            let what = if direction == Direction::Write { "writes" } else { "reads" };
            format!("{number} of {total} collective {what} of this rank ran {how}: {why}")
        };
        self.broken.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truly_collective_transfers_are_not_worth_a_word() {
        let mut tally = Tally::default();
        tally.count(Direction::Write, 4, 0);
        tally.count(Direction::Read, 2, 0);
        tally.count(Direction::Read, 0, 0); // nothing was selected by any rank
        assert!(tally.diagnostics().is_empty());
    }

    #[test]
    fn every_cause_is_told_once_with_its_number() {
        let mut tally = Tally::default();
        for n in 0..8 {
            tally.count(Direction::Write, 4, if n < 3 { 0x102 } else { 0 });
        }
        tally.count(Direction::Read, 0, 0x28);
        tally.count(Direction::Read, 3, 0);
        assert_eq!(
            tally.diagnostics(),
            [
                "3 of 8 collective writes of this rank ran independently: a datatype conversion was needed",
                "1 of 2 collective reads of this rank ran independently: \
                 the environment variable HDF5_MPI_OPT_TYPES forbids it",
                "1 of 2 collective reads of this rank ran independently: the array is neither contiguous nor chunked",
                "1 of 2 collective reads of this rank ran partly independently: \
                 too few ranks had elements in some of the chunks",
            ]
        );
    }
}
