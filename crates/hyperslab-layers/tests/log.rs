//! What the burst-buffer log promises beyond what every stack does.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, Durability, Format, MemoryView, MemoryViewMut, OpenMode,
    Selection, Stack, TransferMode,
};
use hyperslab_testkit::Memory;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROWS: u64 = 64;
const COLUMNS: u64 = 1000;

struct Scene {
    folder: tempfile::TempDir,
    path: PathBuf,
    container: Arc<dyn Container>,
    array: Arc<dyn Array>,
}

fn build(text: &str) -> Arc<dyn Format> {
    let stack: Stack = text.parse().unwrap();
    let bottom: Arc<dyn Format> = match stack.format.name.as_str() {
        "memory" => Arc::new(Memory),
        _ => hyperslab_formats::build(&stack.format).unwrap(),
    };
    hyperslab_layers::build(&stack, bottom).unwrap()
}

/// An array of bytes, all 0, behind a stack in which `DIR` is a directory for the log.
fn scene(stack: &str) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let (logs, path) = (folder.path().join("logs"), folder.path().join("container"));
    std::fs::create_dir(&logs).unwrap();
    let format = build(&stack.replace("DIR", &logs.display().to_string()));
    let container = format.open(&path, OpenMode::Create, &Solo::shared()).unwrap();
    let array = container.create("a", &ArraySpec::new(Datatype::U8, &[ROWS, COLUMNS])).unwrap();
    Scene { folder, path, container, array }
}

impl Scene {
    fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }

    fn write(&self, selection: &Selection, value: u8) {
        let data = vec![value; selection.len() as usize];
        self.array.write(selection, MemoryView::packed(&data), TransferMode::Independent).unwrap();
    }
}

fn row(number: u64) -> Selection {
    Selection::dense(&[number % ROWS, 0], &[1, COLUMNS]).unwrap()
}

fn read(array: &dyn Array, selection: &Selection) -> Vec<u8> {
    let mut found = vec![0xEE; selection.len() as usize];
    array.read(selection, MemoryViewMut::packed(&mut found), TransferMode::Independent).unwrap();
    found
}

/// What is there without the layer.
fn below(format: &dyn Format, path: &Path, name: &str, selection: &Selection) -> Vec<u8> {
    let container = format.open(path, OpenMode::Read, &Solo::shared()).unwrap();
    let found = read(&*container.array(name).unwrap(), selection);
    container.close().unwrap();
    found
}

fn wait_until(what: &str, ready: impl Fn() -> bool) {
    let from = Instant::now();
    while !ready() {
        assert!(from.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn many_small_writes_become_one() {
    let scene = scene("log(dir=DIR,drain=off)/posix");
    for number in 0..ROWS * COLUMNS / 10 {
        let place = number * 7919 % (ROWS * COLUMNS / 10) * 10;
        let piece = Selection::dense(&[place / COLUMNS, place % COLUMNS], &[1, 10]).unwrap();
        scene.write(&piece, (place / COLUMNS) as u8 + 1);
    }
    scene.container.flush(Durability::Visible).unwrap();
    let diagnostics = scene.container.diagnostics().join("\n");
    assert!(
        diagnostics.contains("6400 writes of the program became 1 writes to the file, 0 of them taken apart"),
        "{diagnostics}"
    );
    scene.container.close().unwrap();
    for number in [0, 1, ROWS - 1] {
        let found = below(&*build("posix"), &scene.path, "a", &row(number));
        assert!(found.iter().all(|byte| u64::from(*byte) == number + 1));
    }
    assert_eq!(std::fs::read_dir(scene.logs()).unwrap().count(), 0, "the log is gone");
}

#[test]
fn reads_merge_the_log_with_the_file_and_move_nothing() {
    let scene = scene("log(dir=DIR,drain=off)/memory");
    let all = Selection::all(&[ROWS, COLUMNS]).unwrap();
    scene.write(&all, 1);
    scene.container.flush(Durability::Visible).unwrap();
    let mut model = vec![1; (ROWS * COLUMNS) as usize];
    // Overlapping, strided in both dimensions, some in one piece.
    for step in 0..200u64 {
        let (first, stride) = (step * 37 % 50, 1 + step % 5);
        let piece =
            Selection::strided(&[first % 20, first * 3], &[stride + 1, stride * 4], &[7, 9], &[1 + step % 2, 3])
                .unwrap();
        let value = 2 + (step % 250) as u8;
        scene.write(&piece, value);
        for run in piece.runs(&[ROWS, COLUMNS], 1).unwrap() {
            model[run.offset as usize..run.end() as usize].fill(value);
        }
        let asked = match step % 4 {
            0 => all.clone(),
            1 => piece,
            2 => Selection::strided(&[1, 2], &[3, 7], &[15, 100], &[2, 5]).unwrap(),
            _ => Selection::dense(&[first % 10, 100], &[20, 200]).unwrap(),
        };
        let expected: Vec<u8> = asked
            .runs(&[ROWS, COLUMNS], 1)
            .unwrap()
            .flat_map(|run| model[run.offset as usize..run.end() as usize].to_vec())
            .collect();
        assert!(read(&*scene.array, &asked) == expected, "step {step}");
    }
    assert!(below(&Memory, &scene.path, "a", &all).iter().all(|byte| *byte == 1), "nothing was moved");
    scene.container.close().unwrap();
    assert!(below(&Memory, &scene.path, "a", &all) == model);
}

#[test]
fn the_background_moves_writes_by_age_and_by_size() {
    // The size is that of all rows: of what comes after the background has begun, it may leave what is too little.
    for options in ["age=20ms", "age=3600s,drain=20000"] {
        let scene = scene(&format!("log(dir=DIR,{options})/memory"));
        (0..20).for_each(|number| scene.write(&row(number), 7));
        wait_until(options, || below(&Memory, &scene.path, "a", &row(19)) == vec![7; COLUMNS as usize]);
        wait_until("the log is given back", || {
            let size = |entry: std::fs::DirEntry| entry.metadata().map_or(0, |about| about.len());
            std::fs::read_dir(scene.logs()).unwrap().map(|entry| size(entry.unwrap())).sum::<u64>() < 64 << 10
        });
        assert_eq!(read(&*scene.array, &row(3)), vec![7; COLUMNS as usize]);
        scene.container.close().unwrap();
    }
}

#[test]
fn a_rate_holds_the_background_back_but_nobody_who_waits() {
    let scene = scene("log(dir=DIR,drain=1,rate=20KB/s,buffer=4KiB)/memory");
    (0..ROWS).for_each(|number| scene.write(&row(number), 9));
    std::thread::sleep(Duration::from_millis(300));
    let there = (0..ROWS).filter(|number| below(&Memory, &scene.path, "a", &row(*number))[0] == 9).count();
    assert!(there < 32, "{there} rows within 0.3 s");
    let from = Instant::now();
    scene.container.close().unwrap();
    assert!(from.elapsed() < Duration::from_millis(1500), "{:?}", from.elapsed());
    assert!((0..ROWS).all(|number| below(&Memory, &scene.path, "a", &row(number))[999] == 9));
}

#[test]
fn a_full_log_makes_callers_wait_and_loses_nothing() {
    let scene = scene("log(dir=DIR,limit=64KiB,buffer=8KiB)/slow(20MB/s,100us)/memory");
    for number in 0..8 * ROWS {
        scene.write(&row(number), (number / ROWS) as u8 + 1);
    }
    // Longer than the whole log.
    scene.write(&Selection::dense(&[0, 0], &[40, COLUMNS]).unwrap(), 100);
    assert_eq!(read(&*scene.array, &row(39)), vec![100; COLUMNS as usize]);
    scene.container.close().unwrap();
    for number in 0..ROWS {
        let value = if number < 40 { 100 } else { 8 };
        assert_eq!(below(&Memory, &scene.path, "a", &row(number)), vec![value; COLUMNS as usize]);
    }
}

#[test]
fn a_log_whose_directory_disappears_is_given_up_without_a_loss() {
    let scene = scene("log(dir=DIR,limit=64KiB,drain=off)/memory");
    for number in 0..3 * ROWS {
        if number == 20 {
            std::fs::remove_dir_all(scene.logs()).unwrap();
        }
        scene.write(&row(number), (number / ROWS) as u8 + 1);
    }
    assert_eq!(read(&*scene.array, &row(5)), vec![3; COLUMNS as usize]);
    scene.container.close().unwrap();
    let diagnostics = scene.container.diagnostics().join("\n");
    assert!(diagnostics.contains("went straight to the storage"), "{diagnostics}");
    assert!((0..ROWS).all(|number| below(&Memory, &scene.path, "a", &row(number)) == vec![3; COLUMNS as usize]));
}

/// Many writes larger than the buffer's share of each, every one of which has bytes between those of the others.
#[test]
fn long_writes_that_interleave_are_moved_in_time() {
    let scene = scene("log(dir=DIR,drain=off,buffer=256KiB)/posix");
    let wide = scene.container.create("wide", &ArraySpec::new(Datatype::U8, &[20_000, 320])).unwrap();
    let from = Instant::now();
    for field in 0..40u64 {
        let piece = Selection::strided(&[0, field * 8], &[1, 320], &[20_000, 1], &[1, 8]).unwrap();
        let data: Vec<u8> = (0..160_000u64).map(|n| (n / 8 + field) as u8).collect();
        wide.write(&piece, MemoryView::packed(&data), TransferMode::Independent).unwrap();
    }
    scene.container.close().unwrap();
    assert!(from.elapsed() < Duration::from_secs(10), "{:?}", from.elapsed());
    let found = below(&*build("posix"), &scene.path, "wide", &Selection::all(&[20_000, 320]).unwrap());
    let right = |(place, byte): (usize, &u8)| *byte == (place / 320 + place % 320 / 8) as u8;
    assert!(found.iter().enumerate().all(right));
}

#[test]
fn one_array_can_be_moved_by_itself() {
    let scene = scene("log(dir=DIR,drain=off)/memory");
    let other = scene.container.create("b", &ArraySpec::new(Datatype::U8, &[10])).unwrap();
    let ten = Selection::all(&[10]).unwrap();
    other.write(&ten, MemoryView::packed(&[5; 10]), TransferMode::Independent).unwrap();
    scene.write(&row(0), 6);
    scene.array.write_back().unwrap();
    assert_eq!(below(&Memory, &scene.path, "a", &row(0)), vec![6; COLUMNS as usize]);
    assert_eq!(below(&Memory, &scene.path, "b", &ten), vec![0; 10]);
    scene.container.write_back().unwrap();
    assert_eq!(below(&Memory, &scene.path, "b", &ten), vec![5; 10]);
    scene.container.close().unwrap();
}

#[test]
fn what_is_dropped_is_moved() {
    let Scene { folder: _folder, path, container, array } = scene("log(dir=DIR,drain=off)/memory");
    array.write(&row(1), MemoryView::packed(&[4; COLUMNS as usize]), TransferMode::Independent).unwrap();
    drop((container, array));
    assert_eq!(below(&Memory, &path, "a", &row(1)), vec![4; COLUMNS as usize]);
}

#[test]
fn ranks_with_different_numbers_of_rounds_flush_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("container");
    let format = build(&format!("log(dir={},drain=off,buffer=4KiB)/posix", folder.path().display()));
    let play = |comm: Arc<dyn Communicator>| {
        let container = format.open(&path, OpenMode::Create, &comm)?;
        let names = ["a", "b", "c"];
        let arrays: Vec<_> = names
            .iter()
            .map(|name| container.create(name, &ArraySpec::new(Datatype::U8, &[ROWS, COLUMNS])))
            .collect::<Result<_, _>>()?;
        // Rank 0 writes nothing, 1 a little, 2 much; of array c nobody anything.
        let rank = comm.rank() as u64;
        for (number, array) in arrays.iter().take(2).enumerate() {
            for row in 0..rank * rank * 10 {
                let piece = Selection::strided(&[row, rank], &[1, 4], &[1, COLUMNS / 4], &[1, 1])?;
                let data = vec![(10 * rank) as u8 + number as u8; COLUMNS as usize / 4];
                array.write(&piece, MemoryView::packed(&data), TransferMode::Independent)?;
            }
        }
        container.flush(Durability::Visible)?;
        let mut found = vec![0; (ROWS * COLUMNS) as usize];
        let all = Selection::all(&[ROWS, COLUMNS])?;
        arrays[1].read(&all, MemoryViewMut::packed(&mut found), TransferMode::Independent)?;
        for (place, byte) in found.iter().enumerate() {
            let (row, column) = (place as u64 / COLUMNS, place as u64 % COLUMNS);
            let writer = column % 4;
            let written = (1..3).contains(&writer) && row < writer * writer * 10;
            assert_eq!(*byte, if written { (10 * writer) as u8 + 1 } else { 0 }, "{row} {column}");
        }
        container.close()
    };
    Threads::run(3, play).unwrap();
}

/// Ranks write anything anywhere, over themselves and over each other: of each rank the last write counts, of all ranks the
/// highest.
#[test]
fn overlapping_writes_of_many_ranks_are_moved_as_if_one_after_the_other() {
    const SHAPE: [u64; 3] = [6, 40, 100];
    for (ranks, options) in [(2, "buffer=4KiB"), (5, "buffer=64KiB"), (3, "durability=none"), (4, "per=node")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("container");
        let format = build(&format!("log(dir={},drain=off,{options})/posix", folder.path().display()));
        let writes = |rank: u64, round: u64| {
            let mut state = rank * 1000 + round * 77 + ranks as u64;
            let mut next = move |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut selections = Vec::new();
            for _ in 0..40 {
                let start: Vec<u64> = SHAPE.iter().map(|extent| next(*extent)).collect();
                let stride: Vec<u64> = (0..3).map(|_| 1 + next(3)).collect();
                let most = |d: usize| (SHAPE[d] - start[d] - 1) / stride[d] + 1;
                let count: Vec<u64> = (0..3).map(|d| 1 + next(most(d))).collect();
                selections.push(Selection::strided(&start, &stride, &count, &[1, 1, 1]).unwrap());
            }
            selections
        };
        let value = |rank: u64, round: u64, number: usize| (rank * 100 + round * 50 + number as u64 + 1) as u16;
        let mut expected = vec![0u16; SHAPE.iter().product::<u64>() as usize];
        for (round, rank) in (0..2).flat_map(|round| (0..ranks as u64).map(move |rank| (round, rank))) {
            for (number, selection) in writes(rank, round).iter().enumerate() {
                for run in selection.runs(&SHAPE, 1).unwrap() {
                    expected[run.offset as usize..run.end() as usize].fill(value(rank, round, number));
                }
            }
        }
        let play = |comm: Arc<dyn Communicator>| {
            let container = format.open(&path, OpenMode::Create, &comm)?;
            let array = container.create("a", &ArraySpec::new(Datatype::Opaque(2), &SHAPE))?;
            let rank = comm.rank() as u64;
            for round in 0..2 {
                for (number, selection) in writes(rank, round).iter().enumerate() {
                    let data = value(rank, round, number).to_le_bytes().repeat(selection.len() as usize);
                    array.write(selection, MemoryView::packed(&data), TransferMode::Independent)?;
                }
                container.flush(Durability::Visible)?;
            }
            container.close()?;
            Ok(container.diagnostics())
        };
        let diagnostics = Threads::run(ranks, play).unwrap().concat().concat();
        assert!(diagnostics.contains(&format!("log: {} writes of the program became", ranks * 80)), "{diagnostics}");
        let all = Selection::all(&SHAPE).unwrap();
        let container = build("posix").open(&path, OpenMode::Read, &Solo::shared()).unwrap();
        let mut found = vec![0; expected.len() * 2];
        let array = container.array("a").unwrap();
        array.read(&all, MemoryViewMut::packed(&mut found), TransferMode::Independent).unwrap();
        let found: Vec<u16> = found.chunks(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
        assert!(found == expected, "{ranks} ranks, {options}");
    }
}
