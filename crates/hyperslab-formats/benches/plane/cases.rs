//! The cases.

use crate::data::{counted, places, smooth};
use crate::stage::{Stage, array, compare, format, median, timed};
use crate::{Line, Settings};
use hyperslab_comm::Threads;
use hyperslab_core::{
    Array, ArraySpec, Compound, Datatype, Dims, Field, Filter, MemoryLayout, MemoryView, MemoryViewMut, OpenMode,
    Selection, Slab, TransferMode,
};
use std::sync::Arc;
use std::time::Instant;

const MIB: u64 = 1 << 20;
const PLAIN: &str = "hdf5";
const PLANE: &str = "hdf5(plane=on)";
const ONE_THREAD: &str = "hdf5(plane=on,threads=1)";

type Case = fn(&Stage, Settings) -> Vec<Line>;

pub const CASES: &[(&str, Case)] = &[
    ("deflate", |stage, settings| {
        coded(stage, settings, "deflate-4 + shuffle", &[Filter::Shuffle, Filter::Deflate(4)], true)
    }),
    ("zstd", |stage, settings| coded(stage, settings, "zstd-3", &[Filter::Zstd(3)], false)),
    ("blosc2", |stage, settings| coded(stage, settings, "blosc2-zstd-5", &[Filter::Blosc2(5)], false)),
    ("structures", structures),
    ("chunks", chunks),
    ("contiguous", contiguous),
    ("pieces", pieces),
];

fn write(array: &Arc<dyn Array>, selection: &Selection, data: &[u8]) {
    array.write(selection, MemoryView::packed(data), TransferMode::Independent).unwrap();
}

fn read(array: &Arc<dyn Array>, selection: &Selection, data: &mut [u8]) {
    array.read(selection, MemoryViewMut::packed(data), TransferMode::Independent).unwrap();
}

/// Compressed chunks of a mebibyte.
fn coded(stage: &Stage, settings: Settings, name: &str, filters: &[Filter], alone: bool) -> Vec<Line> {
    let bytes = 256 * MIB / settings.less;
    let data = smooth((bytes / 4) as usize);
    let mut spec = ArraySpec::new(Datatype::F32, &[bytes / MIB, MIB / 4]);
    spec.chunk = Some(Dims::from_slice(&[1, MIB / 4]));
    spec.filters = filters.to_vec();
    let all = Selection::all(&spec.shape).unwrap();
    let writing = |stack: &'static str, file: &'static str| {
        let (data, spec, all) = (&data, &spec, &all);
        move || {
            let file = stage.create(stack, file);
            let array = array(&file, spec);
            timed(|| {
                write(&array, all, data);
                file.close().unwrap();
            })
        }
    };
    let [plain, plane, one] = compare(
        settings.turns,
        [
            Box::new(writing(PLAIN, "plain.h5")),
            Box::new(writing(PLANE, "plane.h5")),
            Box::new(writing(ONE_THREAD, "one.h5")),
        ],
    );
    let size = stage.size("plane.h5") as f64 / stage.size("plain.h5") as f64;
    let (write_aim, read_aim) = if alone { (3.5, 5.0) } else { (1.7, 1.7) };
    let line = |what: &str, before, after, target| Line {
        what: format!("{name}: {what}"),
        before,
        after,
        target,
        note: String::new(),
    };
    let mut lines = vec![line("write", plain, plane, write_aim)];
    lines[0].note = format!("{size:.3} times the size (at most 1.02), {:.0} MiB/s", bytes as f64 / MIB as f64 / plane);
    if alone {
        lines.push(line("write, one thread", plain, one, 2.0));
    }
    let reading = |stack: &'static str, file: &'static str| {
        let (data, all) = (&data, &all);
        let mut back = vec![1u8; data.len()];
        move || {
            let file = stage.open(stack, file);
            let array = file.array("array").unwrap();
            let time = timed(|| read(&array, all, &mut back));
            assert!(back == *data);
            time
        }
    };
    // Each reads what the other wrote.
    let [plain, plane, one] = compare(
        settings.turns,
        [
            Box::new(reading(PLAIN, "plane.h5")),
            Box::new(reading(PLANE, "plain.h5")),
            Box::new(reading(ONE_THREAD, "plain.h5")),
        ],
    );
    lines.push(line("read", plain, plane, read_aim));
    if alone {
        lines.push(line("read, one thread", plain, one, 2.0));
    }
    for file in ["plain.h5", "plane.h5", "one.h5"] {
        stage.remove(file);
    }
    lines
}

/// Eight fields of four bytes, as particles have them.
fn particle() -> Datatype {
    let field = |i: u64| Field { name: format!("f{i}"), offset: i * 4, dtype: Datatype::F32 };
    Datatype::Compound(Arc::new(Compound { size: 32, fields: (0..8).map(field).collect() }))
}

fn structures(stage: &Stage, settings: Settings) -> Vec<Line> {
    let bytes = 256 * MIB / settings.less;
    let elements = bytes / 32;
    let data = counted(bytes as usize);
    let all = Selection::all(&[elements]).unwrap();
    let separate = |stack: &'static str, reads: bool| {
        let (data, all) = (&data, &all);
        let mut back = vec![0u8; if reads { data.len() } else { 0 }];
        move || {
            let file = stage.create(stack, "separate.h5");
            let arrays: Vec<_> = (0..8)
                .map(|i| file.create(&format!("f{i}"), &ArraySpec::new(Datatype::F32, &[elements])).unwrap())
                .collect();
            let writing = timed(|| {
                for (i, array) in arrays.iter().enumerate() {
                    let layout = MemoryLayout::member(32, i as u64 * 4);
                    array.write(all, MemoryView { data, layout: &layout }, TransferMode::Independent).unwrap();
                }
            });
            if !reads {
                return writing;
            }
            let reading = timed(|| {
                for (i, array) in arrays.iter().enumerate() {
                    let layout = MemoryLayout::member(32, i as u64 * 4);
                    array
                        .read(all, MemoryViewMut { data: &mut back, layout: &layout }, TransferMode::Independent)
                        .unwrap();
                }
            });
            assert!(back == *data);
            reading
        }
    };
    let compound = |stack: &'static str, reads: bool| {
        let (data, all) = (&data, &all);
        let mut back = vec![0u8; if reads { data.len() } else { 0 }];
        let part = data.len() / 8;
        move || {
            let file = stage.create(stack, "compound.h5");
            let array = file.create("array", &ArraySpec::new(particle(), &[elements])).unwrap();
            let writing = timed(|| {
                for i in 0..8 {
                    let layout = MemoryLayout::fields(4, [(format!("f{i}"), 0)]);
                    let from = MemoryView { data: &data[i * part..(i + 1) * part], layout: &layout };
                    array.write(all, from, TransferMode::Independent).unwrap();
                }
            });
            if !reads {
                return writing;
            }
            let reading = timed(|| {
                for i in 0..8 {
                    let layout = MemoryLayout::fields(4, [(format!("f{i}"), 0)]);
                    let to = MemoryViewMut { data: &mut back[i * part..(i + 1) * part], layout: &layout };
                    array.read(all, to, TransferMode::Independent).unwrap();
                }
            });
            assert!(back == *data);
            reading
        }
    };
    let mut lines = Vec::new();
    for (what, reads) in [("write", false), ("read", true)] {
        let [before, after] =
            compare(settings.turns, [Box::new(separate(PLAIN, reads)), Box::new(separate(PLANE, reads))]);
        lines.push(Line {
            what: format!("structures, separate arrays in the file: {what}"),
            before,
            after,
            target: 4.0,
            note: format!("{:.0} MiB/s", bytes as f64 / MIB as f64 / after),
        });
    }
    for (what, reads) in [("write", false), ("read", true)] {
        let [before, after] =
            compare(settings.turns, [Box::new(compound(PLAIN, reads)), Box::new(compound(PLANE, reads))]);
        lines.push(Line {
            what: format!("separate arrays, compound in the file: {what}"),
            before,
            after,
            target: 4.0,
            note: format!("{:.0} MiB/s", bytes as f64 / MIB as f64 / after),
        });
    }
    lines
}

/// A tall array in chunks that are columns.
fn chunks(stage: &Stage, settings: Settings) -> Vec<Line> {
    let (rows, columns) = ((1u64 << 20) / settings.less, 64u64);
    let mut spec = ArraySpec::new(Datatype::I32, &[rows, columns]);
    spec.chunk = Some(Dims::from_slice(&[1 << 16, 1]));
    let data = counted((rows * columns * 4) as usize);
    let file = stage.create(PLANE, "tall.h5");
    let tall = array(&file, &spec);
    write(&tall, &Selection::all(&spec.shape).unwrap(), &data);
    file.close().unwrap();
    let side = |stack: &'static str, selections: &[Selection]| {
        let selections = selections.to_vec();
        let (data, size) = (&data, selections.iter().map(Selection::len).max().unwrap() as usize * 4);
        let mut back = vec![0u8; size];
        move || {
            let file = stage.open(stack, "tall.h5");
            let array = file.array("array").unwrap();
            let time = timed(|| {
                for selection in &selections {
                    read(&array, selection, &mut back[..selection.len() as usize * 4]);
                }
            });
            let last = selections.last().unwrap();
            let mut at = 0;
            for run in last.runs(&[rows, columns], 4).unwrap() {
                assert!(back[at..at + run.len as usize] == data[run.offset as usize..run.end() as usize]);
                at += run.len as usize;
            }
            time
        }
    };
    let row = |at: u64| Slab::dense(&[at, 0], &[1, columns]).unwrap().unwrap();
    let random_rows: Vec<Selection> =
        places(1000, rows).into_iter().map(|at| Selection::union(2, [row(at)]).unwrap()).collect();
    let together = Selection::union(2, places(1000, rows).into_iter().map(row)).unwrap();
    let boxes: Vec<Selection> = places(1000, rows - 1000)
        .into_iter()
        .map(|at| Selection::dense(&[at, at % (columns - 8)], &[1000, 8]).unwrap())
        .collect();
    let column = vec![Selection::dense(&[0, 17], &[rows, 1]).unwrap()];
    let mut lines = Vec::new();
    for (what, selections, target) in [
        ("1000 random rows, one by one", random_rows, 10.0),
        ("1000 random rows in one call", vec![together], 1.0),
        ("one column", column, 1.0),
        ("1000 boxes of 1000 x 8", boxes, 3.0),
    ] {
        let [before, after] =
            compare(settings.turns, [Box::new(side(PLAIN, &selections)), Box::new(side(PLANE, &selections))]);
        lines.push(Line { what: format!("chunks of 2^16 x 1: {what}"), before, after, target, note: String::new() });
    }
    stage.remove("tall.h5");
    lines
}

/// An array in one piece, by one rank and by two.
fn contiguous(stage: &Stage, settings: Settings) -> Vec<Line> {
    let bytes = 1024 * MIB / settings.less;
    let data = counted(bytes as usize);
    let spec = ArraySpec::new(Datatype::F32, &[bytes / 4]);
    let ranks = |stack: &'static str, ranks: usize, reads: bool| {
        let (data, spec) = (&data, &spec);
        let mut back = vec![1u8; if reads { data.len() } else { 0 }];
        move || {
            let path = stage.path("contiguous.h5");
            let _ = std::fs::remove_file(&path);
            let (format, share) = (format(stack), spec.shape[0] / ranks as u64);
            let parts: Vec<&mut [u8]> = if reads {
                back.chunks_exact_mut(data.len() / ranks).collect()
            } else {
                (0..ranks).map(|_| &mut [][..]).collect()
            };
            let parts = std::sync::Mutex::new(parts.into_iter().map(Some).collect::<Vec<_>>());
            let times = Threads::run(ranks, |comm| {
                let file = format.open(&path, OpenMode::Create, &comm).unwrap();
                let array = file.create("array", spec).unwrap();
                let first = share * comm.rank() as u64;
                let mine = Selection::dense(&[first], &[share]).unwrap();
                let from = &data[first as usize * 4..(first + share) as usize * 4];
                comm.barrier().unwrap();
                let start = Instant::now();
                write(&array, &mine, from);
                comm.barrier().unwrap();
                let writing = start.elapsed().as_secs_f64();
                if !reads {
                    file.close().unwrap();
                    return Ok(writing);
                }
                let part = parts.lock().unwrap()[comm.rank()].take().unwrap();
                comm.barrier().unwrap();
                let start = Instant::now();
                read(&array, &mine, part);
                comm.barrier().unwrap();
                let reading = start.elapsed().as_secs_f64();
                assert!(*part == *from);
                file.close().unwrap();
                Ok(reading)
            })
            .unwrap();
            median(times)
        }
    };
    let mut lines = Vec::new();
    for (what, reads) in [("write", false), ("read", true)] {
        let [plain, plane, two] = compare(
            settings.turns,
            [Box::new(ranks(PLAIN, 1, reads)), Box::new(ranks(PLANE, 1, reads)), Box::new(ranks(PLANE, 2, reads))],
        );
        let size = if settings.less == 1 { "1 GiB" } else { "part" };
        let rate = |time: f64| format!("{:.0} MiB/s", bytes as f64 / MIB as f64 / time);
        lines.push(Line {
            what: format!("contiguous {size}: {what}"),
            before: plain,
            after: plane,
            target: 1.0,
            note: rate(plane),
        });
        lines.push(Line {
            what: format!("contiguous {size}: {what}, one rank by two"),
            before: plane,
            after: two,
            target: 1.5,
            note: rate(two),
        });
    }
    stage.remove("contiguous.h5");
    let [one, two] = compare(
        settings.turns,
        [Box::new(|| pwrite_alone(stage, &data, 1)), Box::new(|| pwrite_alone(stage, &data, 2))],
    );
    lines.push(Line {
        what: "pwrite alone, one thread by two".into(),
        before: one,
        after: two,
        target: 0.0,
        note: "what the kernel allows".into(),
    });
    lines
}

/// Seconds that threads need to write a new file, each its share, with nothing in between.
fn pwrite_alone(stage: &Stage, data: &[u8], threads: usize) -> f64 {
    let file = std::fs::File::create(stage.path("raw")).unwrap();
    let share = data.len() / threads;
    let time = timed(|| {
        std::thread::scope(|scope| {
            for (number, part) in data.chunks(share).enumerate() {
                let at = (number * share) as u64;
                let file = &file;
                scope.spawn(move || std::os::unix::fs::FileExt::write_all_at(file, part, at).unwrap());
            }
        });
    });
    stage.remove("raw");
    time
}

/// Small pieces in random places.
fn pieces(stage: &Stage, settings: Settings) -> Vec<Line> {
    let bytes = 256 * MIB / settings.less;
    let data = counted(bytes as usize);
    let spec = ArraySpec::new(Datatype::F32, &[bytes / 4]);
    for (stack, name) in [(PLAIN, "plain.h5"), (PLANE, "plane.h5")] {
        let file = stage.create(stack, name);
        let array = array(&file, &spec);
        write(&array, &Selection::all(&spec.shape).unwrap(), &data);
        file.close().unwrap();
    }
    let calls = 20_000;
    let starts = places(calls, bytes / 4096);
    let side = |stack: &'static str, name: &'static str, size: u64, writes: bool| {
        let selections: Vec<Selection> =
            starts.iter().map(|at| Selection::dense(&[at * 1024], &[size / 4]).unwrap()).collect();
        let (starts, data) = (&starts, &data);
        let mut back = vec![0u8; size as usize];
        move || {
            let file =
                format(stack).open(&stage.path(name), OpenMode::Update, &hyperslab_comm::Solo::shared()).unwrap();
            let array = file.array("array").unwrap();
            let time = timed(|| {
                for (selection, at) in selections.iter().zip(starts) {
                    let place = *at as usize * 4096;
                    match writes {
                        true => write(&array, selection, &data[place..place + size as usize]),
                        false => read(&array, selection, &mut back),
                    }
                }
            });
            file.close().unwrap();
            time / calls as f64
        }
    };
    let mut lines = Vec::new();
    for (what, writes) in [("write", true), ("read", false)] {
        let [plain, plane] = compare(
            settings.turns,
            [Box::new(side(PLAIN, "plain.h5", 4096, writes)), Box::new(side(PLANE, "plane.h5", 4096, writes))],
        );
        lines.push(Line {
            what: format!("4 KiB in random places: {what}"),
            before: plain,
            after: plane,
            target: 3.0,
            note: "per call".into(),
        });
    }
    // What a call costs besides the system call: one element, against a pread of it.
    let raw = || {
        let file = std::fs::File::open(stage.path("plane.h5")).unwrap();
        let mut back = [0u8; 4];
        timed(|| {
            for at in &starts {
                std::os::unix::fs::FileExt::read_exact_at(&file, &mut back, at * 4096).unwrap();
            }
        }) / calls as f64
    };
    let [raw, one] = compare(settings.turns, [Box::new(raw), Box::new(side(PLANE, "plane.h5", 4, false))]);
    lines.push(Line {
        what: "overhead of a call (1.5 us by it)".into(),
        before: 1.5e-6,
        after: one - raw,
        target: 1.0,
        note: format!("a pread alone {:.2} us", raw * 1e6),
    });
    for name in ["plain.h5", "plane.h5"] {
        stage.remove(name);
    }
    lines
}
