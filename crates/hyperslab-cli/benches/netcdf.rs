//! The NetCDF formats against what they are measured by, taking turns in one run on files in the page cache of DIR (default: a
//! folder of the system for temporary files): `netcdf3` against `posix`, `netcdf4` against `hdf5`, a file of 1,000 variables
//! opened by both, small writes to slow storage with and without the log, and `hyperslab convert` against h5repack and nccopy.
//!
//! `cargo xtask bench netcdf -- [--check] [--small] [DIR]`; with `--check` it fails when an aim is missed, `--small` takes a
//! 64th of the bytes, to see that it works.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use hyperslab_comm::Solo;
use hyperslab_core::{Array, ArraySpec, Container, Datatype, Filter, MemoryView, MemoryViewMut, OpenMode, Selection};
use hyperslab_core::{Format, Stack, TransferMode};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

const PASSES: usize = 11;
const INDEPENDENT: TransferMode = TransferMode::Independent;

/// What was missed.
#[derive(Default)]
struct Aims(Vec<String>);

impl Aims {
    fn check(&mut self, what: &str, ratio: f64, least: f64) {
        println!("  {what}: {ratio:.2} (aim: {least})");
        if ratio < least {
            self.0.push(format!("{what} {ratio:.2} < {least}"));
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let parent = words.iter().find(|word| !word.starts_with("--")).map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::Builder::new().prefix("hyperslab-bench-").tempdir_in(parent).unwrap();
    let part = if has("--small") { 64 } else { 1 };
    let mut aims = Aims::default();
    contiguous(folder.path(), part, &mut aims);
    many_variables(folder.path(), part, &mut aims);
    slow_storage(folder.path(), &mut aims);
    rechunking(folder.path(), part, &mut aims);
    if has("--check") && !aims.0.is_empty() {
        println!("missed: {}", aims.0.join("; "));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn format(stack: &str) -> Arc<dyn Format> {
    hyperslab_run::open_stack(&stack.parse::<Stack>().unwrap()).unwrap()
}

fn open(stack: &str, path: &Path, how: OpenMode) -> Arc<dyn Container> {
    format(stack).open(path, how, &Solo::shared()).unwrap()
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn remove(stack: &str, path: &Path) {
    format(stack).remove(path).unwrap();
}

/// How many times as fast the first is as the second, from the medians of passes that take turns.
fn compare(works: [&mut dyn FnMut() -> f64; 2]) -> f64 {
    let mut times = [Vec::new(), Vec::new()];
    let [first, second] = works;
    for pass in 0..=PASSES {
        let took = [first(), second()];
        if pass > 0 {
            times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
        }
    }
    let [ours, theirs] = times.map(median);
    theirs / ours
}

/// One array in one piece, written and read by one call.
fn contiguous(folder: &Path, part: u64, aims: &mut Aims) {
    let shape = [256 / part.min(64) * 64, 4096]; // 256 MiB
    let bytes = (shape[0] * shape[1] * 4) as usize;
    println!("one array of {} MiB in one piece, rates as parts of those of the second", bytes >> 20);
    let data: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8).collect();
    let all = Selection::all(&shape).unwrap();
    for (ours, theirs) in [("netcdf3", "posix"), ("netcdf4", "hdf5"), ("netcdf4(plane=on)", "hdf5(plane=on)")] {
        let path = folder.join("array");
        let write = |stack: &str| {
            let took = seconds(|| {
                let file = open(stack, &path, OpenMode::Create);
                // Big-endian, as the classic form stores numbers: what is compared is moving them.
                let array = file.create("a", &ArraySpec::new(">f4".parse().unwrap(), &shape)).unwrap();
                array.write(&all, MemoryView::packed(&data), INDEPENDENT).unwrap();
                file.close().unwrap();
            });
            remove(stack, &path);
            took
        };
        aims.check(&format!("write, {ours} / {theirs}"), compare([&mut || write(ours), &mut || write(theirs)]), 0.95);
        let paths = [folder.join("ours"), folder.join("theirs")];
        for (stack, path) in [ours, theirs].iter().zip(&paths) {
            let file = open(stack, path, OpenMode::Create);
            let array = file.create("a", &ArraySpec::new(">f4".parse().unwrap(), &shape)).unwrap();
            array.write(&all, MemoryView::packed(&data), INDEPENDENT).unwrap();
            file.close().unwrap();
        }
        let mut found = vec![0; bytes];
        let mut read = |stack: &str, path: &Path| {
            let took = seconds(|| {
                let file = open(stack, path, OpenMode::Read);
                let array = file.array("a").unwrap();
                array.read(&all, MemoryViewMut::packed(&mut found), INDEPENDENT).unwrap();
                file.close().unwrap();
            });
            assert!(found == data, "{stack}");
            took
        };
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..PASSES {
            times[0].push(read(ours, &paths[0]));
            times[1].push(read(theirs, &paths[1]));
        }
        let [mine, other] = times.map(median);
        aims.check(&format!("read, {ours} / {theirs}"), other / mine, 0.95);
        remove(ours, &paths[0]);
        remove(theirs, &paths[1]);
    }
}

/// A file with many variables that share dimensions: listing and opening all of them.
fn many_variables(folder: &Path, part: u64, aims: &mut Aims) {
    let (path, count) = (folder.join("many.nc"), 1000 / part.min(10));
    let file = open("netcdf4", &path, OpenMode::Create);
    for number in 0..count {
        let dims = Some(vec!["y".into(), "x".into()]);
        let spec = ArraySpec { dims, ..ArraySpec::new(Datatype::F32, &[4, 5]) };
        file.create(&format!("variable_{number}"), &spec).unwrap();
    }
    file.close().unwrap();
    let look = |stack: &str| {
        seconds(|| {
            let file = open(stack, &path, OpenMode::Read);
            let opened: Vec<Arc<dyn Array>> =
                (0..count).map(|number| file.array(&format!("variable_{number}")).unwrap()).collect();
            assert!(opened.iter().all(|array| array.spec().unwrap().shape.len() == 2));
            file.close().unwrap();
        })
    };
    println!("{count} variables opened, time as part of that of hdf5, which is libhdf5 alone");
    aims.check("hdf5 / netcdf4", compare([&mut || look("netcdf4"), &mut || look("hdf5")]), 0.5);
    remove("netcdf4", &path);
}

/// Rows of records, one call each, on storage that takes its time for every request.
fn slow_storage(folder: &Path, aims: &mut Aims) {
    let path = folder.join("records.nc3");
    let journal = folder.join("journal").display().to_string();
    let rows = 200u64;
    let write = |stack: &str| {
        let took = seconds(|| {
            let file = open(stack, &path, OpenMode::Create);
            let mut spec = ArraySpec::new(">f4".parse().unwrap(), &[0, 1024]);
            spec.max_shape = Some(vec![None, Some(1024)]);
            let arrays = ["a", "b"].map(|name| file.create(name, &spec).unwrap());
            for row in 0..rows {
                arrays[0].resize(&[row + 1, 1024]).unwrap();
                for array in &arrays {
                    let one = Selection::dense(&[row, 0], &[1, 1024]).unwrap();
                    array.write(&one, MemoryView::packed(&[7; 4096]), INDEPENDENT).unwrap();
                }
            }
            file.close().unwrap();
        });
        remove(stack, &path);
        took
    };
    println!("{rows} records of two variables, 4 KiB a call, on storage with 2 ms for a request");
    let slow = "slow(latency=2ms,rate=200MB/s)/netcdf3";
    let logged = format!("log(dir=\"{journal}\")/{slow}");
    let (fast, plain) = (write(&logged), write(slow));
    aims.check("log / without", plain / fast, 10.0);
}

/// Time slices become time series.
fn rechunking(folder: &Path, part: u64, aims: &mut Aims) {
    let shape = [250 / part.min(10), 720, 1440];
    let path = folder.join("slices.nc");
    let file = open("netcdf4(plane=on)", &path, OpenMode::Create);
    let spec = ArraySpec {
        chunk: Some([1, 720, 1440][..].into()),
        filters: vec![Filter::Shuffle, Filter::Deflate(1)],
        dims: Some(["time", "y", "x"].map(str::to_owned).to_vec()),
        ..ArraySpec::new(Datatype::F32, &shape)
    };
    let array = file.create("t", &spec).unwrap();
    for time in 0..shape[0] {
        let value = |at: u64| ((at as f32 / 977.0).sin() * 100.0 + time as f32).round() / 8.0;
        let data: Vec<u8> = (0..shape[1] * shape[2]).flat_map(|at| value(at).to_ne_bytes()).collect();
        let slice = Selection::dense(&[time, 0, 0], &[1, shape[1], shape[2]]).unwrap();
        array.write(&slice, MemoryView::packed(&data), INDEPENDENT).unwrap();
    }
    file.close().unwrap();
    let chunk = [shape[0], 8, 8];
    let text = |between: &str| chunk.map(|extent| extent.to_string()).join(between);
    let convert = ["--chunk", &text("x"), "--filter", "shuffle,deflate=1", "--memory", "512MiB"];
    let repack = ["-l", &format!("t:CHUNK={}", text("x")), "-f", "t:SHUF", "-f", "t:GZIP=1"];
    let copy = ["-c", &format!("time/{},y/{},x/{}", chunk[0], chunk[1], chunk[2]), "-d", "1", "-s"];
    println!("({}, 720, 1440) f4 from slices to series, shuffle and deflate 1, 512 MiB of memory", shape[0]);
    let ours = program(env!("CARGO_BIN_EXE_hyperslab"), &["convert"], &convert, folder).unwrap();
    for (name, options) in [("h5repack", &repack[..]), ("nccopy", &copy[..])] {
        match program(name, options, &[], folder) {
            Some(took) => aims.check(&format!("{name} {took:.1} s, hyperslab convert {ours:.1} s"), took / ours, 4.0),
            None => println!("  {name}: it is not here"),
        }
    }
}

/// The seconds of a program that makes `series.nc` of `slices.nc`; `None` if it is not there.
fn program(name: &str, before: &[&str], after: &[&str], folder: &Path) -> Option<f64> {
    let mut command = Command::new(name);
    command.args(before).args(["slices.nc", "series.nc"]).args(after).current_dir(folder).stdout(Stdio::null());
    let begin = Instant::now();
    let output = command.output().ok()?;
    let took = begin.elapsed().as_secs_f64();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_file(folder.join("series.nc")).unwrap();
    Some(took)
}
