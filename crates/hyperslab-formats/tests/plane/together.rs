//! Several ranks on one array, as threads that share its plane.

use crate::common::{Noise, directory, format, open, read, seed, write};
use crate::python::files;
use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, Durability, Error, ErrorKind, Filter, Open, Result, Selection,
};
use hyperslab_testkit::watchdog;
use libtest_mimic::{Failed, Trial};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);
/// Columns of every array: two chunks.
const COLUMNS: u64 = 40;
const ROUNDS: u64 = 25;

/// What every rank does in its own rows.
type Work = fn(&Rank<'_>) -> Result<()>;

struct Rank<'a> {
    comm: &'a Arc<dyn Communicator>,
    container: &'a Arc<dyn Container>,
    array: &'a Arc<dyn Array>,
    /// The same array by libhdf5.
    beside: Option<&'a Arc<dyn Array>>,
    /// Rows of one chunk.
    rows: u64,
    noise: std::cell::RefCell<Noise>,
}

pub fn trials() -> Vec<Trial> {
    let deflate = || vec![Filter::Shuffle, Filter::Deflate(1)];
    let mut out = Vec::new();
    for ranks in [4, 8] {
        for (variant, stack, filters) in [
            ("plain", "hdf5(plane=on)", vec![]),
            ("deflate", "hdf5(plane=on)", deflate()),
            ("deflate, cache=0", "hdf5(plane=on,cache=0,threads=3)", deflate()),
            ("deflate, small cache", "hdf5(plane=on,cache=4KiB,libver=latest)", deflate()),
            ("checksum, early", "hdf5(plane=on,alloc_time=early)", vec![Filter::Fletcher32]),
        ] {
            for (name, work, shared, beside) in [
                ("whole chunks", whole_chunks as Work, false, false),
                ("shared chunks", shared_chunks, true, false),
                ("readers and writers", readers_and_writers, true, false),
                ("beside libhdf5", readers_and_writers, true, true),
            ] {
                let filters = filters.clone();
                out.push(Trial::test(format!("together::{ranks} ranks, {variant}: {name}"), move || {
                    watchdog::within(LIMIT, move || run(ranks, stack, filters, work, shared, beside))
                }));
            }
        }
    }
    out
}

/// The element of a row in a round.
fn value(row: u64, column: u64, round: u64) -> u32 {
    (row * 1_000_000 + column * 10_000 + round) as u32
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Mismatch, "check", message)
}

fn run(ranks: usize, stack: &str, filters: Vec<Filter>, work: Work, shared: bool, beside: bool) -> Result<(), Failed> {
    let (_files, folder) = (files(), directory()?);
    let path = folder.path().join("a.h5");
    let seed = seed()?;
    // Shared chunks have a row of every rank; the others belong to one rank each.
    let rows = if shared { ranks as u64 } else { 3 };
    let shape = [rows * if shared { 5 } else { ranks as u64 * 2 }, COLUMNS];
    let chunk = Some([rows, COLUMNS.div_ceil(2)].as_slice().into());
    let spec = ArraySpec { chunk, filters, ..ArraySpec::new(Datatype::I32, &shape) };
    let format = format(stack)?;
    let results = Threads::run_each(ranks, |comm: Arc<dyn Communicator>| {
        let container = format.open(&path, Open::Create, &comm)?;
        let array = container.create("array", &spec)?;
        let other = if beside { Some(by_library(&path)?) } else { None };
        let noise = Noise::new(seed.wrapping_mul(64) + comm.rank() as u64).into();
        let beside = other.as_ref().map(|(_, array)| array);
        work(&Rank { comm: &comm, container: &container, array: &array, beside, rows, noise })?;
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
        let container = open(stack, &path, Open::Read)?;
        let found = read(&*container.array("array")?, &Selection::all(&shape)?, 4)?;
        let wanted: Vec<u8> =
            (0..shape[0] * COLUMNS).flat_map(|n| value(n / COLUMNS, n % COLUMNS, ROUNDS - 1).to_ne_bytes()).collect();
        crate::common::same(&found, &wanted, &format!("at the end, {stack}"))?;
        container.close()?;
    }
    Ok(())
}

fn by_library(path: &Path) -> Result<(Arc<dyn Container>, Arc<dyn Array>)> {
    let container = crate::common::format("hdf5")?.open(path, Open::Update, &Solo::shared())?;
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
                None => number == 0 || (base..base + ROUNDS as u32).contains(&number),
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
        let first = self.below(COLUMNS);
        (first, first + 1 + self.below(COLUMNS - first))
    }
}

fn whole_chunks(rank: &Rank<'_>) -> Result<()> {
    let (me, ranks) = (rank.comm.rank() as u64, rank.comm.size() as u64);
    let bands = rank.height()? / rank.rows;
    for round in 0..ROUNDS {
        for band in rank.shuffled((0..bands).filter(|band| band % ranks == me).collect()) {
            let columns = [(0, COLUMNS), (0, COLUMNS / 2), (COLUMNS / 2, COLUMNS)];
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
    for round in 0..ROUNDS {
        for row in rank.shuffled((0..height).filter(|row| row % ranks == me).collect()) {
            let cut = rank.below(COLUMNS + 1);
            for part in [(0, cut), (cut, COLUMNS)] {
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
    for round in 0..ROUNDS {
        for row in rank.shuffled((0..height).filter(|row| row % ranks == me).collect()) {
            rank.write_rows(any(rank.below(3)), row, 1, (0, COLUMNS), round)?;
            rank.check_row(any(rank.below(2)), row, rank.some_columns(), Some(round))?;
            rank.check_row(any(rank.below(3)), rank.below(height), rank.some_columns(), None)?;
        }
        if rank.below(16) == 0 {
            rank.container.settle()?;
        }
    }
    Ok(())
}
