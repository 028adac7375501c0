//! `hyperslab convert` as a user meets it.
#![allow(clippy::unwrap_used)]

#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use hyperslab_comm::Threads;
use hyperslab_core::{
    Array, ArraySpec, Attribute, Container, Datatype, Filter, MemoryLayout, MemoryView, MemoryViewMut, OpenMode,
    Selection, Stack, TransferMode,
};
use program::{run, with};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A program that one test starts inherits the files that another has open, and the locks that libhdf5 holds on them: one
/// test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(stack: &str, path: &Path, how: OpenMode) -> std::sync::Arc<dyn Container> {
    let format = hyperslab_run::open_stack(&stack.parse::<Stack>().unwrap()).unwrap();
    format.open(path, how, &hyperslab_run::single_rank()).unwrap()
}

fn read(array: &dyn Array) -> Vec<u8> {
    let spec = array.spec().unwrap();
    let all = Selection::all(&spec.shape).unwrap();
    let mut bytes = vec![0xEE; (all.len() * spec.dtype.size()) as usize];
    array.read(&all, MemoryViewMut::packed(&mut bytes), TransferMode::Independent).unwrap();
    bytes
}

/// Everything in a container: types, shapes, elements, attributes, groups.
#[derive(Debug, PartialEq)]
struct Content {
    arrays: BTreeMap<String, (Datatype, Vec<u64>, Vec<u8>)>,
    groups: Vec<String>,
    attributes: BTreeMap<(String, String), Attribute>,
}

fn content(stack: &str, path: &Path) -> Content {
    let container = open(stack, path, OpenMode::Read);
    let (groups, names) = (container.groups().unwrap(), container.arrays().unwrap());
    let mut attributes = BTreeMap::new();
    for object in groups.iter().chain(&names).chain(&[String::new()]) {
        for name in container.attributes(object).unwrap() {
            let value = container.attribute(object, &name).unwrap();
            attributes.insert((object.clone(), name), value);
        }
    }
    let arrays = names.into_iter().map(|name| {
        let array = container.array(&name).unwrap();
        let spec = array.spec().unwrap();
        (name, (spec.dtype, spec.shape.to_vec(), read(&*array)))
    });
    let content = Content { arrays: arrays.collect(), groups, attributes };
    container.close().unwrap();
    content
}

const SHAPE: [u64; 2] = [60, 40];

/// Three ranks write interleaved rows of several arrays, in several flushes, some of them twice.
fn write_together(stack: &str, path: &Path) {
    let format = hyperslab_run::open_stack(&stack.parse::<Stack>().unwrap()).unwrap();
    let particle = Datatype::packed_compound([("x", Datatype::F64), ("id", Datatype::I32)]).unwrap();
    Threads::run(3, |comm| {
        let rank = comm.rank() as u64;
        let container = format.open(path, OpenMode::Create, &comm)?;
        container.set_attribute("", "title", &Attribute::text("été"))?;
        container.create_group("empty/group")?;
        container.set_attribute("empty", "level", &Attribute::integer(1))?;
        let chunk = format.caps().data.chunks.then(|| [16, 16][..].into());
        let filters = if format.caps().has(&Filter::Deflate(4)) { vec![Filter::Deflate(4)] } else { Vec::new() };
        let chunked = ArraySpec { chunk, filters, ..ArraySpec::new(Datatype::F32, &SHAPE) };
        let plain = container.create("plain", &ArraySpec::new(Datatype::I32, &SHAPE))?;
        let chunked = container.create("g/chunked", &chunked)?;
        let particles = container.create("g/particles", &ArraySpec::new(particle.clone(), &[30]))?;
        container.create("scalar", &ArraySpec::new(Datatype::F64, &[]))?;
        container.create("none", &ArraySpec::new(Datatype::F64, &[0, 3]))?;
        container.set_attribute("g/chunked", "units", &Attribute::float(0.5))?;
        for turn in 0..3u64 {
            let rows = Selection::strided(&[rank, turn * 5], &[3, 1], &[20, 1], &[1, 25])?;
            for (array, salt) in [(&plain, 1), (&chunked, 2)] {
                let values =
                    (0..rows.len()).flat_map(|n| ((n + turn * 1000 + rank * 100_000 + salt) as f32).to_ne_bytes());
                array.write(&rows, MemoryView::packed(&values.collect::<Vec<_>>()), TransferMode::Independent)?;
            }
            container.flush(hyperslab_core::Durability::Visible)?;
        }
        // One field by one rank, the other by another.
        let layout = if rank == 0 { MemoryLayout::fields(8, [("x", 0)]) } else { MemoryLayout::fields(4, [("id", 0)]) };
        if rank < 2 {
            let data: Vec<u8> = (0..30 * if rank == 0 { 8 } else { 4 }).map(|n| n as u8 + 1).collect();
            let all = Selection::all(&[30])?;
            particles.write(&all, MemoryView { data: &data, layout: &layout }, TransferMode::Independent)?;
        }
        container.close()
    })
    .unwrap();
}

#[test]
fn the_log_layout_becomes_what_a_plain_run_writes() {
    let _alone = alone();
    for (format, extension) in [("posix", "posix"), ("hdf5", "h5"), ("zarr", "zarr")] {
        for options in ["", "(room=4KiB)"] {
            let folder = tempfile::tempdir().unwrap();
            let file = |name: &str| folder.path().join(name).with_extension(extension);
            write_together(format, &file("plain"));
            write_together(&format!("loglayout{options}/{format}"), &file("log"));
            let names = [file("log"), file("out")].map(|path| path.display().to_string());
            let arguments = ["convert", &names[0], &names[1], "--threads", "3", "--memory", "3MiB"];
            let (code, out, err) = run(folder.path(), &arguments);
            assert_eq!(code, 0, "{out}{err}");
            assert!(out.contains("5 arrays, 3 groups, 3 attributes"), "{out}");
            assert!(err.contains(&format!("loglayout/{format}")), "{err}");
            assert_eq!(content(format, &file("out")), content(format, &file("plain")), "{format}{options}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left");
            // In its place.
            let (code, out, err) = run(folder.path(), &["convert", &names[0], &names[0], "--overwrite"]);
            assert_eq!(code, 0, "{out}{err}");
            assert_eq!(content(format, &file("log")), content(format, &file("plain")), "{format}{options}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left");
        }
    }
}

#[test]
fn files_go_from_one_format_to_another() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_together("loglayout/hdf5", &path("a.h5"));
    let original = content("loglayout/hdf5", &path("a.h5"));
    for (from, to) in [("a.h5", "b.zarr"), ("b.zarr", "c.posix"), ("c.posix", "d.h5"), ("d.h5", "e.posix")] {
        let (code, out, err) = run(folder.path(), &["convert", from, to]);
        assert_eq!(code, 0, "{from} {to}: {out}{err}");
        // Chunks and filters are no data, but nobody should miss them without a word.
        assert_eq!(out.contains("note:"), from == "b.zarr", "{from} {to}: {out}");
    }
    assert_eq!(content("zarr", &path("b.zarr")), original);
    assert_eq!(content("hdf5", &path("d.h5")), original);
    let (code, out, err) = run(folder.path(), &["convert", "d.h5", "f.h5", "--to", "hdf5(chunk=7x7,deflate=1)"]);
    // Arrays of one dimension have no chunks of two.
    assert!(code == 1 && err.contains("g/particles") && !path("f.h5").exists(), "{out}{err}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "nothing is left of what failed");
}

#[test]
fn arrays_go_through_classic_netcdf() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let container = open("posix", &path("a.posix"), OpenMode::Create);
    for (name, dtype, shape) in [("g/x", "<f8", &[4u64, 3][..]), ("g/h/flags", "|b1", &[12]), ("name", "|S5", &[2])] {
        let grows = name == "g/x";
        let mut spec = ArraySpec::new(dtype.parse().unwrap(), shape);
        spec.max_shape = grows.then(|| vec![None, Some(3)]);
        let array = container.create(name, &spec).unwrap();
        let count = shape.iter().product::<u64>() * spec.dtype.size();
        let data: Vec<u8> =
            (0..count).map(|at| if dtype == "|b1" { at as u8 % 2 } else { b'a' + at as u8 % 26 }).collect();
        array.write(&Selection::all(shape).unwrap(), MemoryView::packed(&data), TransferMode::Independent).unwrap();
    }
    container.set_attribute("g/x", "units", &Attribute::text("m")).unwrap();
    container.set_attribute("", "runs", &Attribute::integer(3)).unwrap();
    container.close().unwrap();
    for (from, to) in [("a.posix", "b.nc3"), ("b.nc3", "c.posix")] {
        let (code, out, err) = run(folder.path(), &["convert", from, to, "--threads", "2"]);
        assert_eq!(code, 0, "{from} {to}: {out}{err}");
        assert_eq!(out.contains("groups become parts of names"), to == "b.nc3", "{out}");
    }
    assert_eq!(content("posix", &path("c.posix")), content("posix", &path("a.posix")));
    let (code, out, err) = run(folder.path(), &["show", "b.nc3"]);
    assert!(
        code == 0 && out.contains("opened as netcdf3") && out.contains("hyperslab_name") | out.contains("flags"),
        "{out}{err}"
    );
    let container = open("posix", &path("a.posix"), OpenMode::Update);
    container.set_attribute("g", "level", &Attribute::integer(1)).unwrap();
    container.close().unwrap();
    let (code, _, err) = run(folder.path(), &["convert", "a.posix", "d.nc3"]);
    assert!(code == 1 && err.contains("\"level\"") && !path("d.nc3").exists(), "{code} {err}");
}

#[test]
fn netcdf_keeps_dimensions_and_what_cannot_be_held_is_listed() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let container = open("netcdf4", &path("a.nc"), OpenMode::Create);
    let dims = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    let put = |name: &str, dtype: &str, shape: &[u64], names: &[&str]| {
        let mut spec = ArraySpec::new(dtype.parse().unwrap(), shape);
        spec.max_shape = (names[0] == "time")
            .then(|| vec![None; 1].into_iter().chain(shape[1..].iter().map(|n| Some(*n))).collect());
        spec.dims = dims(names);
        let array = container.create(name, &spec).unwrap();
        let count = shape.iter().product::<u64>() * spec.dtype.size();
        let data: Vec<u8> = (0..count).map(|at| at as u8 % 100).collect();
        array.write(&Selection::all(shape).unwrap(), MemoryView::packed(&data), TransferMode::Independent).unwrap();
    };
    put("air", "<f4", &[4, 3], &["time", "x"]);
    put("time", "<f8", &[4], &["time"]);
    container.set_attribute("air", "units", &Attribute::text("K")).unwrap();
    container.close().unwrap();
    let names = |stack: &str, file: &str, array: &str| {
        let container = open(stack, &path(file), OpenMode::Read);
        let spec = container.array(array).unwrap().spec().unwrap();
        container.close().unwrap();
        (spec.dims, spec.max_shape.map(|max| max[0]))
    };
    for (from, to) in [("a.nc", "b.nc3"), ("b.nc3", "c.nc"), ("c.nc", "d.zarr"), ("d.zarr", "e.posix")] {
        let (code, out, err) = run(folder.path(), &["convert", from, to, "--threads", "2"]);
        assert_eq!(code, 0, "{from} {to}: {out}{err}");
        assert_eq!(out.contains("names of dimensions are left out"), to == "e.posix", "{out}");
    }
    for (stack, file) in [("netcdf4", "a.nc"), ("netcdf3", "b.nc3"), ("netcdf4", "c.nc"), ("zarr", "d.zarr")] {
        assert_eq!(names(stack, file, "air"), (dims(&["time", "x"]), Some(None)), "{file}");
        assert_eq!(names(stack, file, "time"), (dims(&["time"]), Some(None)), "{file}");
    }
    assert_eq!(content("netcdf4", &path("c.nc")), content("netcdf4", &path("a.nc")));

    let container = open("netcdf4", &path("a.nc"), OpenMode::Update);
    container
        .create("pairs", &ArraySpec::new(Datatype::packed_compound([("a", Datatype::I32)]).unwrap(), &[2]))
        .unwrap();
    container.close().unwrap();
    let (code, _, err) = run(folder.path(), &["convert", "a.nc", "e.nc3", "--threads", "2"]);
    assert!(code == 1 && err.contains("pairs") && err.contains("--lossy") && !path("e.nc3").exists(), "{code} {err}");
    let (code, out, err) = run(folder.path(), &["convert", "a.nc", "e.nc3", "--lossy", "--threads", "2"]);
    assert!(code == 0 && out.contains("left out: ") && out.contains("pairs"), "{code} {out} {err}");
    assert_eq!(content("netcdf3", &path("e.nc3")).arrays.len(), 2);
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_lost() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_together("hdf5", &path("a.h5"));
    fs::write(path("notes.h5"), "these are notes").unwrap();
    let before = fs::read(path("a.h5")).unwrap();
    for (arguments, said) in [
        (&["a.h5", "a.h5"][..], "exists already"),
        (&["a.h5", "notes.h5"], "exists already"),
        (&["a.h5", "notes.h5", "--overwrite"], "left alone"),
        (&["a.h5", "b.txt"], "--to"),
        (&["a.h5", "b"], "--to"),
        (&["missing.h5", "b.h5"], "missing.h5"),
        (&["notes.h5", "b.h5"], "--from"),
        (&["a.h5", "b.h5", "--memory", "1KiB"], "too little"),
        (&["a.h5", "b.h5", "--from", "nonsense"], "nonsense"),
        (&["a.h5", "b.h5", "--to", "slow/loglayout/hdf5"], "slow"),
    ] {
        let (code, _, err) = run(folder.path(), &[&["convert"], arguments].concat());
        assert!(code == 2 && err.contains(said), "{arguments:?}: {code} {err}");
    }
    assert_eq!(fs::read(path("a.h5")).unwrap(), before);
    assert_eq!(fs::read(path("notes.h5")).unwrap(), b"these are notes");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_damaged_index_is_an_error_and_leaves_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.posix");
    write_together("loglayout/posix", &path);
    let format = hyperslab_run::open_stack(&"posix".parse::<Stack>().unwrap()).unwrap();
    let files = format.files(&path).unwrap();
    let index = files.iter().find(|file| file.ends_with("index/00000002.raw")).unwrap();
    let mut bytes = fs::read(index).unwrap();
    bytes[100] ^= 4;
    fs::write(index, bytes).unwrap();
    let (code, _, err) = run(folder.path(), &["convert", "a.posix", "b.posix"]);
    assert!(code == 1 && err.contains("index/00000002"), "{code} {err}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

const SLICES: [u64; 3] = [200, 60, 100];

/// An array in slices along its first dimension, which also grows, and one of another rank.
fn write_slices(path: &Path) {
    let container = open("hdf5", path, OpenMode::Create);
    let spec = ArraySpec {
        chunk: Some([1, 60, 100][..].into()),
        filters: vec![Filter::Deflate(1)],
        max_shape: Some(vec![None, Some(60), Some(100)]),
        ..ArraySpec::new(Datatype::F32, &SLICES)
    };
    let array = container.create("fields/t", &spec).unwrap();
    let all = Selection::all(&SLICES).unwrap();
    let values: Vec<u8> = (0..all.len()).flat_map(|n| ((n * 7919 % 100_003) as f32).to_ne_bytes()).collect();
    array.write(&all, MemoryView::packed(&values), TransferMode::Independent).unwrap();
    container.set_attribute("fields/t", "units", &Attribute::text("K")).unwrap();
    let line = container.create("line", &ArraySpec::new(Datatype::I32, &[1000])).unwrap();
    let values: Vec<u8> = (0..1000i32).flat_map(i32::to_ne_bytes).collect();
    line.write(&Selection::all(&[1000]).unwrap(), MemoryView::packed(&values), TransferMode::Independent).unwrap();
    container.create("scalar", &ArraySpec::new(Datatype::F64, &[])).unwrap();
    container.close().unwrap();
}

/// Compares elements with the file of slices, and prints chunks and filters.
const RECHUNKED: &str = r#"
import h5py, sys
a, b = h5py.File(sys.argv[1]), h5py.File(sys.argv[2])
for name in ["fields/t", "line", "scalar"]:
    assert a[name][...].tobytes() == b[name][...].tobytes(), name
t = b["fields/t"]
print(t.chunks, t.shuffle, t.compression, t.compression_opts, t.maxshape, t.attrs["units"], b["line"].chunks)
"#;

#[test]
fn slices_become_series_and_come_back() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_slices(&path("a.h5"));
    let original = content("hdf5", &path("a.h5"));
    let little = ["--threads", "2", "--memory", "2MiB"];
    // (from, to, its stack, what is asked for, whether memory is too short to do without a scratch array)
    let steps: [(&str, &str, &str, &[&str], bool); 6] = [
        ("a.h5", "b.h5", "hdf5", &["--chunk", "200x4x4", "--filter", "shuffle,deflate=4"], true),
        ("b.h5", "c.h5", "hdf5", &["--chunk", "fields/t=1x60x100", "--chunk", "7x7x7;64"], true),
        ("c.h5", "d.zarr", "zarr", &["--chunk", "200x7x9", "--filter", "none"], true),
        ("d.zarr", "e.h5", "hdf5", &["--chunk", "3x60x100", "--align", "4KiB"], true),
        ("e.h5", "f.posix", "posix", &[], false),
        ("a.h5", "g.h5", "hdf5", &["--chunk", "5x60x50"], false),
    ];
    for (from, to, stack, asked, scratch) in steps {
        let arguments = [&["convert", from, to], asked, &little].concat();
        let (code, out, err) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{arguments:?}: {out}{err}");
        assert_eq!(out.contains("a scratch array"), scratch, "{arguments:?}: {out}");
        assert_eq!(content(stack, &path(to)), original, "{arguments:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 7, "nothing else is left");
    let spec =
        |name: &str, array: &str| open("hdf5", &path(name), OpenMode::Read).array(array).unwrap().spec().unwrap();
    assert_eq!(spec("b.h5", "fields/t").chunk.unwrap().as_slice(), [200, 4, 4]);
    assert_eq!(spec("b.h5", "fields/t").filters, [Filter::Shuffle, Filter::Deflate(4)]);
    assert_eq!(spec("c.h5", "fields/t").chunk.unwrap().as_slice(), [1, 60, 100]);
    assert_eq!(spec("c.h5", "line").chunk.unwrap().as_slice(), [64]);
    // Memory for everything at once needs no scratch array.
    let (code, out, err) = run(folder.path(), &["convert", "a.h5", "h.h5", "--chunk", "200x4x4"]);
    assert!(code == 0 && !out.contains("scratch"), "{out}{err}");
    let Some(python) = std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()) else { return };
    for (name, said) in [
        ("b.h5", "(200, 4, 4) True gzip 4 (None, 60, 100) b'K'"),
        ("e.h5", "(3, 60, 100) False None None (None, 60, 100) b'K'"),
        ("h.h5", "(200, 4, 4) False gzip 1 (None, 60, 100) b'K' None"),
    ] {
        let mut compare = Command::new(&python);
        compare.current_dir(folder.path()).args(["-c", RECHUNKED, "a.h5", name]);
        let (code, out, err) = program::said(compare.output().unwrap());
        assert!(code == 0 && out.starts_with(said), "{name}: {out}{err}");
    }
}

#[test]
fn chunks_and_filters_that_cannot_be_are_refused() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    write_slices(&folder.path().join("a.h5"));
    let before = fs::read(folder.path().join("a.h5")).unwrap();
    for (arguments, expected, said) in [
        (&["a.h5", "a.h5", "--chunk", "7x7x7"][..], 2, "exists already"),
        (&["a.h5", "b.h5", "--chunk", "7x0x7"], 2, "--chunk"),
        (&["a.h5", "b.h5", "--chunk", "seven"], 2, "seven"),
        (&["a.h5", "b.h5", "--filter", "defalte"], 2, "deflate"),
        (&["a.h5", "b.h5", "--filter", "deflate=11"], 2, "0 to 9"),
        (&["a.h5", "b.posix", "--chunk", "7x7x7"], 2, "no chunks"),
        (&["a.h5", "b.posix", "--filter", "lzf"], 2, "no filter"),
        (&["a.h5", "b.zarr", "--align", "4KiB"], 2, "aligns nothing"),
        (&["a.h5", "b.h5", "--align", "1TiB"], 2, "1GiB"),
        (&["a.h5", "b.h5", "--align", "4KiB", "--to", "hdf5(align=1MiB)"], 2, "already"),
        (&["a.h5", "b.h5", "--chunk", "7x7"], 1, "7x7 do not suit any array"),
        (&["a.h5", "b.h5", "--chunk", "line=7x7"], 1, "the array line"),
    ] {
        let (code, out, err) = run(folder.path(), &[&["convert"], arguments].concat());
        assert!(code == expected && err.contains(said), "{arguments:?}: {code} {out}{err}");
    }
    assert_eq!(fs::read(folder.path().join("a.h5")).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left");
}

/// Ctrl-C while slow storage is written.
#[test]
fn a_conversion_that_is_stopped_leaves_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    write_together("posix", &folder.path().join("a.posix"));
    write_together("posix", &folder.path().join("b.posix"));
    let arguments =
        ["convert", "a.posix", "b.posix", "--overwrite", "--threads", "1", "--to", "slow(20KiB/s,1ms)/posix"];
    let mut child = program::hyperslab(folder.path()).args(arguments).stderr(Stdio::piped()).spawn().unwrap();
    // It has begun, and listens.
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    said.read_to_string(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{line}");
    assert_eq!(content("posix", &folder.path().join("b.posix")), content("posix", &folder.path().join("a.posix")));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "{line}");
}

const WORKFLOW: &str = r#"{"mpi": {"command": "mpirun", "ranks": "4"}, "vol": {}, "file-system": {}, "directory": "data", "benchmarks": [
    {"benchmark": "write", "file": "test.h5", "configuration": {"MEM_PATTERN": "FROM", "FILE_PATTERN": "TO", "TIMESTEPS": "2",
     "NUM_DIMS": 2, "DIM_1": "64", "DIM_2": "32", "MODE": "SYNC"}}]}"#;

/// Compares two HDF5 files, all objects, elements and attributes.
const COMPARE: &str = r#"
import h5py, sys
def content(path):
    found = {}
    with h5py.File(path) as f:
        def keep(name, node):
            data = (node.dtype, node.shape, node.chunks, node[...].tobytes()) if isinstance(node, h5py.Dataset) else None
            found[name] = (data, {k: bytes(v) if hasattr(v, 'tobytes') else v for k, v in node.attrs.items()})
        f.visititems(keep)
        found[''] = (None, {k: v for k, v in f.attrs.items()})
    return found
a, b = content(sys.argv[1]), content(sys.argv[2])
assert a == b, (a.keys(), b.keys())
print(len(a))
"#;

/// What `bench` writes through the layer, as h5py sees it after a conversion.
#[test]
fn h5py_reads_what_a_plain_benchmark_writes() {
    let _alone = alone();
    let Some(python) = std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()) else { return };
    for (from, to) in
        [("CONTIG", "CONTIG"), ("CONTIG", "INTERLEAVED"), ("INTERLEAVED", "CONTIG"), ("INTERLEAVED", "INTERLEAVED")]
    {
        let directory = with(&WORKFLOW.replace("FROM", from).replace("TO", to));
        for (stack, folder) in [("hdf5", "plain"), ("loglayout/hdf5", "log"), ("loglayout(room=40KiB)/hdf5", "little")]
        {
            let arguments =
                ["bench", "w.json", "--stack", stack, "--directory", folder, "--verify", "--launcher", "threads"];
            let (code, out, err) = run(directory.path(), &arguments);
            assert_eq!(code, 0, "{from} {to} {stack}: {out}{err}");
        }
        for folder in ["log", "little"] {
            let out = format!("{folder}.h5");
            let (code, said, err) =
                run(directory.path(), &["convert", &format!("{folder}/test.h5"), &out, "--threads", "2"]);
            assert_eq!(code, 0, "{said}{err}");
            let mut compare = Command::new(&python);
            compare.current_dir(directory.path()).args(["-c", COMPARE, "plain/test.h5", &out]);
            let (code, said, err) = program::said(compare.output().unwrap());
            assert_eq!(code, 0, "{from} {to} {folder}: {said}{err}");
            assert!(said.trim().parse::<u32>().unwrap() > 2, "{said}");
        }
    }
}
