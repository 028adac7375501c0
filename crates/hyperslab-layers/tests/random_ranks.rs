//! Many ranks do random things to one array through a stack; all that is read must be what a simple model says. Sequences
//! are the same at every run, what threads make of them is not.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::Threads;
use hyperslab_core::{
    Array, ArraySpec, Bytes, Communicator, Container, Datatype, Durability, EventSet, Format, MemoryLayout, MemoryView,
    MemoryViewMut, OpenMode, Result, Selection, Stack, TransferMode,
};
use hyperslab_testkit::{Memory, watchdog};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Stacks, the numbers of ranks, and how many sequences each number plays.
const STACKS: &[(&str, &[usize], u64)] = &[
    ("async(threads=3,memory=4KiB)/memory", &[1, 2, 3, 4], 2500),
    ("async/memory", &[1, 2, 5, 8], 100),
    ("async(threads=2)/posix", &[1, 3, 8], 20),
    ("async/hdf5", &[1, 4], 10),
    ("async(threads=2,memory=8KiB)/zarr", &[2], 10),
    ("async/twophase(aggregators=2,buffer=64,unit=16)/memory", &[1, 2, 4], 60),
    ("async/slow(1GB/s,20us)/memory", &[2], 20),
    ("cache(stage=4KiB,threads=2,memory=8KiB,block=64)/memory", &[1, 2, 3], 200),
    ("cache(dir=DIR,stage=64KiB,threads=2)/memory", &[1, 2, 4], 100),
    ("cache(dir=DIR)/posix", &[1, 3], 20),
    ("cache(dir=DIR)/hdf5", &[2], 10),
    ("log(dir=DIR)/memory", &[1, 2, 4], 100),
    ("log(dir=DIR,limit=64KiB,buffer=4KiB,memory=4KiB,age=1ms,drain=1)/memory", &[1, 2, 3], 100),
    ("log(dir=DIR)/posix", &[1, 3, 8], 20),
    ("log(dir=DIR,per=node,durability=none)/memory", &[1, 2, 5], 40),
    ("log(dir=DIR,durability=none,drain=1)/memory", &[1, 2, 4], 60),
    ("log(dir=DIR,durability=2ms)/posix", &[1, 3], 10),
    ("log(dir=DIR)/hdf5", &[2], 10),
    ("loglayout/memory", &[1, 2, 3, 8], 300),
    ("loglayout(room=200)/memory", &[1, 2, 4], 500),
    ("loglayout(room=1000)/posix", &[1, 3], 30),
    ("loglayout/hdf5", &[1, 4], 20),
    ("loglayout(room=300)/zarr", &[2], 20),
    ("loglayout(room=500)/async(threads=2,memory=4KiB)/memory", &[2, 3], 60),
    ("async(threads=2)/loglayout(room=500)/memory", &[1, 3], 60),
    ("loglayout(room=500)/twophase(aggregators=2,buffer=64,unit=16)/memory", &[3], 30),
    ("twophase(aggregators=2,buffer=64,unit=16)/memory", &[3], 60),
];

/// No sequence takes a hundredth of it.
const LIMIT: Duration = Duration::from_secs(300);
const STEPS: u64 = 14;
/// Bytes of a row that belong to one rank.
const EACH: u64 = 6;
const MOST_ROWS: u64 = 12;

/// A number that looks random, of all these.
fn mix(numbers: [u64; 3]) -> u64 {
    numbers.iter().fold(0x9E37_79B9_7F4A_7C15, |hash: u64, number| {
        let mixed = (hash ^ number).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ (mixed >> 29)
    })
}

/// What a rank writes in a step.
struct Piece {
    rank: u64,
    first: u64,
    rows: u64,
    value: u8,
}

impl Piece {
    /// Of rank `rank`, in an array of `rows` rows. May be of no rows.
    fn choose(seed: u64, step: u64, rank: u64, rows: u64) -> Self {
        let choice = mix([seed, step, rank]);
        let first = choice % (rows + 1);
        Self { rank, first, rows: (choice >> 8) % (rows - first + 1), value: (choice >> 16) as u8 }
    }

    fn selection(&self, ranks: u64) -> Result<Selection> {
        // The columns of the rank, interleaved with those of the others.
        Selection::strided(&[self.first, self.rank], &[1, ranks], &[self.rows, EACH], &[1, 1])
    }

    fn data(&self) -> Vec<u8> {
        (0..self.rows * EACH).map(|i| self.value.wrapping_add(i as u8)).collect()
    }

    fn apply(&self, model: &mut [u8], ranks: u64) {
        for (i, byte) in self.data().into_iter().enumerate() {
            let (row, column) = (self.first + i as u64 / EACH, (i as u64 % EACH) * ranks + self.rank);
            model[(row * EACH * ranks + column) as usize] = byte;
        }
    }
}

/// One rank's view of the sequence.
struct Player<'a> {
    comm: &'a Arc<dyn Communicator>,
    container: Arc<dyn Container>,
    array: Arc<dyn Array>,
    /// The whole array as all ranks have written it.
    model: Vec<u8>,
    requests: EventSet,
    ranks: u64,
}

impl Player<'_> {
    fn rows(&self) -> u64 {
        self.model.len() as u64 / (EACH * self.ranks)
    }

    fn write(&mut self, seed: u64, step: u64, how: u64) -> Result<()> {
        let rows = self.rows();
        for rank in 0..self.ranks {
            Piece::choose(seed, step, rank, rows).apply(&mut self.model, self.ranks);
        }
        let mine = Piece::choose(seed, step, self.comm.rank() as u64, rows);
        let (selection, data) = (mine.selection(self.ranks)?, mine.data());
        match how {
            0 => self.array.write(&selection, MemoryView::packed(&data), TransferMode::Collective),
            1 => {
                let request = self.array.submit_write(
                    &selection,
                    Bytes::from(data),
                    &MemoryLayout::packed(),
                    TransferMode::Independent,
                )?;
                self.requests.insert(request);
                Ok(())
            }
            2 => {
                // In structures of three bytes, the second of which counts.
                let wide = data.iter().flat_map(|byte| [0, *byte, 0]).collect::<Vec<u8>>();
                let layout = MemoryLayout::member(3, 1);
                self.array.write(&selection, MemoryView { data: &wide, layout: &layout }, TransferMode::Independent)
            }
            _ => self.array.write(&selection, MemoryView::packed(&data), TransferMode::Independent),
        }
    }

    /// Reads this rank's own columns, or everything.
    fn check(&self, all: bool, transfer: TransferMode) -> Result<()> {
        let (rows, columns) = (self.rows(), EACH * self.ranks);
        let selection = match all {
            true => Selection::dense(&[0, 0], &[rows, columns])?,
            false => Piece { rank: self.comm.rank() as u64, first: 0, rows, value: 0 }.selection(self.ranks)?,
        };
        let mut found = vec![0xEE; selection.len() as usize];
        self.array.read(&selection, MemoryViewMut::packed(&mut found), transfer)?;
        let runs = selection.runs(&[rows, columns], 1)?;
        let expected: Vec<u8> =
            runs.flat_map(|run| self.model[run.offset as usize..run.end() as usize].to_vec()).collect();
        assert_eq!(found, expected, "rank {} of {}", self.comm.rank(), self.ranks);
        Ok(())
    }

    /// Whatever was written is visible to all then.
    fn flush(&mut self) -> Result<()> {
        self.container.flush(Durability::Visible)?;
        self.comm.barrier()?;
        self.check(true, TransferMode::Independent)?;
        self.comm.barrier()
    }

    fn resize(&mut self, rows: u64) -> Result<()> {
        self.container.flush(Durability::Visible)?;
        self.array.resize(&[rows, EACH * self.ranks])?;
        self.model.resize((rows * EACH * self.ranks) as usize, 0);
        Ok(())
    }
}

fn play(format: &dyn Format, path: &Path, comm: &Arc<dyn Communicator>, seed: u64) -> Result<()> {
    let ranks = comm.size() as u64;
    let resizes = format.caps().data.resize;
    let spec = ArraySpec {
        max_shape: resizes.then(|| vec![None, Some(EACH * ranks)]),
        chunk: (resizes && format.caps().data.chunks).then(|| [3, EACH * ranks].as_slice().into()),
        ..ArraySpec::new(Datatype::U8, &[MOST_ROWS / 2, EACH * ranks])
    };
    let container = format.open(path, OpenMode::Truncate, comm)?;
    let array = container.create("g/a", &spec)?;
    let model = vec![0; (MOST_ROWS / 2 * EACH * ranks) as usize];
    let mut player = Player { comm, container, array, model, requests: EventSet::new(), ranks };
    for step in 0..STEPS {
        let choice = mix([seed, step, u64::MAX]);
        match choice % 16 {
            0..=6 => player.write(seed, step, (choice >> 8) % 5)?,
            7..=9 => player.check(false, TransferMode::Independent)?,
            10 => player.check(false, TransferMode::Collective)?,
            11 => assert!(player.requests.wait_all(None).is_empty()),
            12 => player.requests = EventSet::new(), // dropped, not waited for
            13 => player.flush()?,
            14 if resizes => player.resize(1 + (choice >> 8) % MOST_ROWS)?,
            14 => player.array.prefetch(&Selection::dense(&[0, 0], &[1, EACH * ranks])?),
            _ => {
                player.array.close()?;
                if choice & 0x100 == 0 {
                    player.container.close()?;
                    player.container = format.open(path, OpenMode::Update, comm)?;
                }
                player.array = player.container.array("g/a")?;
            }
        }
    }
    player.flush()?;
    player.array.close()?;
    player.container.close()
}

fn build(text: &str, folder: &Path) -> Arc<dyn Format> {
    let stack: Stack = text.replace("DIR", &folder.display().to_string()).parse().unwrap();
    let bottom: Arc<dyn Format> = match stack.format.name.as_str() {
        "memory" => Arc::new(Memory),
        _ => hyperslab_formats::build(&stack.format).unwrap(),
    };
    hyperslab_layers::build(&stack, bottom).unwrap()
}

/// Plays the sequences of each stack that `chosen` picks of their number.
fn play_all(chosen: impl Fn(u64) -> std::ops::Range<u64>) {
    let folder = tempfile::tempdir().unwrap();
    for (stack, sizes, sequences) in STACKS {
        for &size in *sizes {
            for seed in chosen(*sequences) {
                let (format, path) = (build(stack, folder.path()), folder.path().join(format!("file-{size}")));
                let in_file: PathBuf = path.with_extension(format.extension());
                let what = format!("{stack}, {size} ranks, seed {seed}");
                let done = watchdog::within(LIMIT, move || {
                    Threads::run(size, |comm| play(&*format, &in_file, &comm, seed)).map_err(|e| format!("{e:?}"))?;
                    Ok(())
                });
                done.unwrap_or_else(|failed| panic!("{what}: {}", failed.message().unwrap_or("no message")));
            }
        }
    }
}

/// Of long rows of sequences the first are in the ordinary run.
fn ordinary(sequences: u64) -> u64 {
    sequences.min(10.max(sequences / 5))
}

#[test]
fn what_ranks_read_is_what_they_wrote() {
    play_all(|sequences| 0..ordinary(sequences));
}

#[test]
#[ignore = "takes minutes: cargo xtask test --long"]
fn what_ranks_read_is_what_they_wrote_in_more_sequences() {
    play_all(|sequences| ordinary(sequences)..sequences);
}
