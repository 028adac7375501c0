//! Several ranks on one array, as threads that share its plane.

use crate::common::{Noise, directory, format, open, read, seed, write};
use crate::python::files;
use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, Durability, Error, ErrorKind, Filter, OpenMode, Result,
    Selection,
};
use hyperslab_testkit::watchdog;
use libtest_mimic::{Failed, Trial};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);
/// Columns and rounds; columns are cut into two chunks, many columns into four, large enough for several threads.
const SMALL: (u64, u64) = (40, 25);
const LARGE: (u64, u64) = (32_768, 4);

/// What every rank does in its own rows.
type Work = fn(&Rank<'_>) -> Result<()>;

struct Setup {
    ranks: usize,
    /// Columns and rounds.
    size: (u64, u64),
    stack: &'static str,
    filters: Vec<Filter>,
    /// Whether chunks have rows of several ranks.
    shared: bool,
    /// Whether libhdf5 takes part.
    beside: bool,
}

struct Rank<'a> {
    comm: &'a Arc<dyn Communicator>,
    container: &'a Arc<dyn Container>,
    array: &'a Arc<dyn Array>,
    /// The same array by libhdf5.
    beside: Option<&'a Arc<dyn Array>>,
    /// Rows of one chunk.
    rows: u64,
    columns: u64,
    rounds: u64,
    noise: std::cell::RefCell<Noise>,
}

pub fn trials() -> Vec<Trial> {
    let deflate = || vec![Filter::Shuffle, Filter::Deflate(1)];
    let mut out = Vec::new();
    for ranks in [4, 8] {
        for (variant, stack, filters, size) in [
            ("plain", "hdf5(plane=on)", vec![], SMALL),
            ("deflate", "hdf5(plane=on)", deflate(), SMALL),
            ("deflate, cache=0", "hdf5(plane=on,cache=0,threads=3)", deflate(), SMALL),
            ("deflate, small cache", "hdf5(plane=on,cache=4KiB,libver=latest)", deflate(), SMALL),
            ("checksum, early", "hdf5(plane=on,alloc_time=early)", vec![Filter::Fletcher32], SMALL),
            ("large", "hdf5(plane=on,threads=4,cache=1MiB)", vec![Filter::Deflate(1)], LARGE),
        ] {
            for (name, work, shared, beside) in [
                ("whole chunks", whole_chunks as Work, false, false),
                ("shared chunks", shared_chunks, true, false),
                ("readers and writers", readers_and_writers, true, false),
                ("beside libhdf5", readers_and_writers, true, true),
            ] {
                let setup = Setup { ranks, size, stack, filters: filters.clone(), shared, beside };
                out.push(Trial::test(format!("concurrent::{ranks} ranks, {variant}: {name}"), move || {
                    watchdog::within(LIMIT, move || run(setup, work))
                }));
            }
        }
    }
    out
}

/// The element of a row in a round.
fn value(row: u64, column: u64, round: u64) -> u32 {
    ((row * 40_000 + column) * 32 + round) as u32 + 32 // never 0
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Mismatch, "check", message)
}

fn run(setup: Setup, work: Work) -> Result<(), Failed> {
    let Setup { ranks, size: (columns, rounds), stack, filters, shared, beside } = setup;
    let (_files, folder) = (files(), directory()?);
    let path = folder.path().join("a.h5");
    let seed = seed()?;
    // Shared chunks have a row of every rank; the others belong to one rank each.
    let rows = if shared { ranks as u64 } else { 3 };
    let shape = [rows * if shared { 5 } else { ranks as u64 * 2 }, columns];
    let chunk = Some([rows, if columns == LARGE.0 { columns / 4 } else { columns / 2 }].as_slice().into());
    let spec = ArraySpec { chunk, filters, ..ArraySpec::new(Datatype::I32, &shape) };
    let format = format(stack)?;
    let results = Threads::run_each(ranks, |comm: Arc<dyn Communicator>| {
        let container = format.open(&path, OpenMode::Create, &comm)?;
        let array = container.create("array", &spec)?;
        let other = if beside { Some(by_library(&path)?) } else { None };
        let noise = Noise::new(seed.wrapping_mul(64) + comm.rank() as u64).into();
        let beside = other.as_ref().map(|(_, array)| array);
        work(&Rank { comm: &comm, container: &container, array: &array, beside, rows, columns, rounds, noise })?;
        if let Some((container, _)) = &other {
            container.close()?;
        }
        container.close()
    });
    let mut errors: Vec<Error> = results.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(|error| error.kind() == ErrorKind::Peer); // the cause before its echoes
    if let Some(error) = errors.into_iter().next() {
        return Err(error.into());
    }
    for stack in ["hdf5", stack] {
        let container = open(stack, &path, OpenMode::Read)?;
        let found = read(&*container.array("array")?, &Selection::all(&shape)?, 4)?;
        let wanted: Vec<u8> =
            (0..shape[0] * columns).flat_map(|n| value(n / columns, n % columns, rounds - 1).to_ne_bytes()).collect();
        crate::common::same(&found, &wanted, &format!("at the end, {stack}"))?;
        container.close()?;
    }
    Ok(())
}

fn by_library(path: &Path) -> Result<(Arc<dyn Container>, Arc<dyn Array>)> {
    let container = crate::common::format("hdf5")?.open(path, OpenMode::Update, &Solo::shared())?;
    let array = container.array("array")?;
    Ok((container, array))
}

impl Rank<'_> {
    fn below(&self, limit: u64) -> u64 {
        self.noise.borrow_mut().below(limit)
    }

    /// In any order.
    fn shuffled(&self, mut all: Vec<u64>) -> Vec<u64> {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at as u64 + 1) as usize);
        }
        all
    }

    fn height(&self) -> Result<u64> {
        Ok(self.array.spec()?.shape[0])
    }

    fn write_rows(&self, array: &dyn Array, first: u64, count: u64, columns: (u64, u64), round: u64) -> Result<()> {
        let data: Vec<u8> = (first..first + count)
            .flat_map(|row| (columns.0..columns.1).flat_map(move |column| value(row, column, round).to_ne_bytes()))
            .collect();
        let selection = Selection::dense(&[first, columns.0], &[count, columns.1 - columns.0])?;
        if self.below(4) == 0 {
            std::thread::yield_now();
        }
        write(array, &selection, &data)
    }

    /// Reads some columns of a row; its elements must be of the row, and of `round` if that is given.
    fn check_row(&self, array: &dyn Array, row: u64, columns: (u64, u64), round: Option<u64>) -> Result<()> {
        let found = read(array, &Selection::dense(&[row, columns.0], &[1, columns.1 - columns.0])?, 4)?;
        for (column, bytes) in (columns.0..).zip(found.chunks_exact(4)) {
            let number = bytes.iter().rev().fold(0u32, |n, byte| n << 8 | u32::from(*byte));
            let base = value(row, column, 0);
            let right = match round {
                Some(round) => number == value(row, column, round),
                None => number == 0 || (base..base + self.rounds as u32).contains(&number),
            };
            if !right {
                let rank = self.comm.rank();
                let message = format!("rank {rank}: row {row}, column {column} is {number}, expected {round:?}");
                return Err(wrong(message));
            }
        }
        Ok(())
    }

    fn some_columns(&self) -> (u64, u64) {
        let first = self.below(self.columns);
        (first, first + 1 + self.below(self.columns - first))
    }
}

fn whole_chunks(rank: &Rank<'_>) -> Result<()> {
    let (me, ranks) = (rank.comm.rank() as u64, rank.comm.size() as u64);
    let bands = rank.height()? / rank.rows;
    for round in 0..rank.rounds {
        for band in rank.shuffled((0..bands).filter(|band| band % ranks == me).collect()) {
            let columns = [(0, rank.columns), (0, rank.columns / 2), (rank.columns / 2, rank.columns)];
            let parts = if rank.below(2) == 0 { &columns[..1] } else { &columns[1..] };
            for part in parts {
                rank.write_rows(&**rank.array, band * rank.rows, rank.rows, *part, round)?;
            }
            rank.check_row(&**rank.array, band * rank.rows + rank.below(rank.rows), rank.some_columns(), Some(round))?;
        }
    }
    Ok(())
}

fn shared_chunks(rank: &Rank<'_>) -> Result<()> {
    let (me, ranks) = (rank.comm.rank() as u64, rank.comm.size() as u64);
    let height = rank.height()?;
    for round in 0..rank.rounds {
        for row in rank.shuffled((0..height).filter(|row| row % ranks == me).collect()) {
            let cut = rank.below(rank.columns + 1);
            for part in [(0, cut), (cut, rank.columns)] {
                if part.0 < part.1 {
                    rank.write_rows(&**rank.array, row, 1, part, round)?;
                }
            }
        }
        if round % 8 == 3 {
            rank.container.flush(Durability::Visible)?;
        }
    }
    Ok(())
}

/// Everybody writes rows of its own, and reads those and others', all in the same chunks.
fn readers_and_writers(rank: &Rank<'_>) -> Result<()> {
    let (me, ranks) = (rank.comm.rank() as u64, rank.comm.size() as u64);
    let height = rank.height()?;
    let any = |at: u64| match rank.beside {
        Some(beside) if at == 0 => &**beside,
        _ => &**rank.array,
    };
    for round in 0..rank.rounds {
        for row in rank.shuffled((0..height).filter(|row| row % ranks == me).collect()) {
            rank.write_rows(any(rank.below(3)), row, 1, (0, rank.columns), round)?;
            rank.check_row(any(rank.below(2)), row, rank.some_columns(), Some(round))?;
            rank.check_row(any(rank.below(3)), rank.below(height), rank.some_columns(), None)?;
        }
        if rank.below(16) == 0 {
            rank.container.write_back()?;
        }
    }
    Ok(())
}
