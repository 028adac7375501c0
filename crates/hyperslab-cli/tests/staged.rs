//! Programs that stage their writes, killed at any moment: what was acknowledged is in the file after `hyperslab recover`.
#![allow(clippy::unwrap_used)]

#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use hyperslab_core::{
    ArraySpec, Datatype, Durability, Field, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Selection, Stack,
    TransferMode,
};
use program::{hyperslab, run};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CHILD: &str = "HYPERSLAB_TEST_STAGED";
const ROWS: u64 = 40;
const COLUMNS: u64 = 2000;
/// Layers that keep writes in a log. The storage below is slow, so that much is there; limits are small, so that the log is full
/// at times.
const LAYERS: [&str; 3] = [
    "cache(dir=staged,stage=4MiB)",
    "log(dir=staged,limit=4MiB,buffer=64KiB,drain=100KiB,age=5ms)",
    "log(dir=staged,per=node,limit=4MiB,buffer=64KiB,drain=100KiB,age=5ms)",
];
const BELOW: [&str; 4] = ["posix", "hdf5", "hdf5(layout=chunked)", "zarr"];
/// Formats with filters; the chunks are the array's.
const FILTERED: [&str; 5] = [
    "hdf5(deflate=1)",
    "hdf5(deflate=1,shuffle=yes,plane=on)",
    "hdf5(deflate=4,libver=latest)",
    "hdf5(fletcher32=yes,deflate=2)",
    "zarr(codec=gzip)",
];

fn row(number: u64) -> Selection {
    Selection::dense(&[number % ROWS, 0], &[1, COLUMNS]).unwrap()
}

/// Some rows are harder to compress than others, so that chunks change their size.
fn values(number: u64) -> Vec<u8> {
    let noise = |column: u64| (number * 10_000 + column).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let value = |column: u64| if column % 8 < number % 9 { noise(column) } else { number * 10_000 + column };
    (0..COLUMNS).flat_map(|column| value(column).to_ne_bytes()).collect()
}

/// Writes rows for ever, over and over, and says one byte for each that was acknowledged.
#[test]
fn child() {
    let Ok(stack) = std::env::var(CHILD) else { return };
    let (stack, path) = stack.split_once(' ').unwrap();
    let format = hyperslab_run::open_stack(&stack.parse::<Stack>().unwrap()).unwrap();
    let container = format.open(Path::new(path), OpenMode::Create, &hyperslab_run::single_rank()).unwrap();
    let chunk = format.caps().data.chunks.then(|| [7, 300].as_slice().into());
    let array =
        container.create("rows", &ArraySpec { chunk, ..ArraySpec::new(Datatype::I64, &[ROWS, COLUMNS]) }).unwrap();
    let mut out = std::io::stderr();
    for number in 0.. {
        array.write(&row(number), MemoryView::packed(&values(number)), TransferMode::Independent).unwrap();
        out.write_all(b".").unwrap();
        if number % 25 == 24 {
            container.flush(Durability::Visible).unwrap();
        }
    }
}

fn start(stack: &str, path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child", "--nocapture", "--test-threads=1"]);
    child.env(CHILD, format!("{stack} {}", path.display()));
    child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The last write of each row, if these many were made.
fn expected(writes: u64) -> Vec<u8> {
    let last = |row: u64| (0..writes).rev().find(|number| number % ROWS == row);
    let row = |row: u64| last(row).map_or_else(|| vec![0; COLUMNS as usize * 8], values);
    (0..ROWS).flat_map(row).collect()
}

fn content(stack: &str, path: &Path) -> Vec<u8> {
    let format = hyperslab_run::open_stack(&stack.parse::<Stack>().unwrap()).unwrap();
    let container = format.open(path, OpenMode::Read, &hyperslab_run::single_rank()).unwrap();
    let array = container.array("rows").unwrap();
    let mut bytes = vec![0xEE; (ROWS * COLUMNS * 8) as usize];
    array
        .read(&Selection::all(&[ROWS, COLUMNS]).unwrap(), MemoryViewMut::packed(&mut bytes), TransferMode::Independent)
        .unwrap();
    container.close().unwrap();
    bytes
}

/// What h5py reads, where there is one.
fn content_by_h5py(path: &Path) -> Option<Vec<u8>> {
    let python = std::env::var_os("HYPERSLAB_PYTHON")?;
    let program = "import h5py, sys; sys.stdout.buffer.write(h5py.File(sys.argv[1])['rows'][...].tobytes())";
    let output = Command::new(python).args(["-c", program]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    for layer in LAYERS {
        for (round, below) in BELOW.iter().cycle().take(3 * BELOW.len()).enumerate() {
            kill(layer, below, Duration::from_millis(5 + 11 * round as u64), false);
        }
    }
}

#[test]
fn chunks_with_filters_survive_a_kill() {
    for (round, below) in FILTERED.iter().cycle().take(3 * FILTERED.len()).enumerate() {
        kill(LAYERS[1 + round % 2], below, Duration::from_millis(5 + 17 * round as u64), round % 3 == 2);
    }
}

/// The long form, as below.
#[test]
#[ignore = "takes three minutes, 200 kills: cargo xtask test --long"]
fn chunks_with_filters_survive_any_of_many_kills() {
    assert!(std::env::var_os("HYPERSLAB_PYTHON").is_some(), "h5py is needed: cargo xtask test --long");
    for round in 0..200u64 {
        let after = Duration::from_micros(round * 7919 % 300 * 1000 + round * 37);
        kill(LAYERS[1 + (round / 4 % 2) as usize], FILTERED[(round % 4) as usize], after, round % 3 == 2);
    }
}

/// The long form, with HYPERSLAB_PYTHON set: `cargo test -p hyperslab-cli --test staged -- --ignored`, or `cargo xtask test --long`.
#[test]
#[ignore = "takes two minutes, 200 kills: cargo xtask test --long"]
fn what_was_acknowledged_survives_any_of_many_kills() {
    assert!(std::env::var_os("HYPERSLAB_PYTHON").is_some(), "h5py is needed: cargo xtask test --long");
    for round in 0..200u64 {
        let after = Duration::from_micros(round * 7919 % 200 * 1000 + round * 37);
        kill(LAYERS[1], BELOW[1 + (round % 2) as usize], after, false);
    }
}

/// Has a program write to `below` through `layer`, and kills it so long after its first write; perhaps the first recovery, too.
fn kill(layer: &str, below: &str, after: Duration, interrupted: bool) {
    let folder = tempfile::tempdir().unwrap();
    let (staged, path) = (folder.path().join("staged"), folder.path().join("file.h5"));
    std::fs::create_dir(&staged).unwrap();
    let stack = format!("{layer}/slow(20MB/s,1ms)/{below}").replace("staged", &staged.display().to_string());
    let what = format!("{stack} after {after:?}");
    let mut child = start(&stack, &path);
    let mut said = child.stderr.take().unwrap();
    let mut first = [0];
    said.read_exact(&mut first).unwrap();
    assert_eq!(first, *b".");
    std::thread::sleep(after);
    // It runs: hands off.
    let (code, list, _) = run(folder.path(), &["recover", "staged"]);
    assert_eq!(code, 3, "{list}");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut rest = Vec::new();
    said.read_to_end(&mut rest).unwrap();
    assert!(rest.iter().all(|byte| *byte == b'.'), "{what}: {}", String::from_utf8_lossy(&rest));
    let acknowledged = 1 + rest.len() as u64;
    if interrupted {
        // A recovery that is killed is done again.
        let mut recovery = hyperslab(folder.path()).args(["recover", "staged"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after / 4);
        recovery.kill().unwrap();
        recovery.wait().unwrap();
    }
    let (code, said, wrong) = run(folder.path(), &["recover", "staged"]);
    assert_eq!(code, 0, "{what}: {said}{wrong}");
    // The write under way may be there or not.
    let found = content(below, &path);
    let fits = |found: &[u8]| found == expected(acknowledged) || found == expected(acknowledged + 1);
    assert!(fits(&found), "{what}: {acknowledged} writes are not what is there");
    assert!(!below.starts_with("hdf5") || content_by_h5py(&path).is_none_or(|found| fits(&found)), "{what}: h5py");
    assert_eq!(std::fs::read_dir(&staged).unwrap().count(), 0, "the logs are gone");
    let (code, said, _) = run(folder.path(), &["recover", "staged"]);
    assert!(code == 0 && said.contains("no logs"), "{said}");
}

#[test]
fn a_file_with_staged_writes_is_not_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (staged, path) = (folder.path().join("staged"), folder.path().join("file.posix"));
    std::fs::create_dir(&staged).unwrap();
    let stack = format!("cache(dir={})/slow(1MB/s,1ms)/posix", staged.display());
    let mut child = start(&stack, &path);
    child.stderr.take().unwrap().read_exact(&mut [0; 3]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let format = hyperslab_run::open_stack(&stack.parse::<Stack>().unwrap()).unwrap();
    for how in [OpenMode::Update, OpenMode::Create, OpenMode::Truncate] {
        let error = format.open(&path, how, &hyperslab_run::single_rank()).unwrap_err();
        assert!(error.what_to_try().is_some_and(|hint| hint.contains("hyperslab recover")), "{error:?}");
    }
    assert!(format.open(&path, OpenMode::Read, &hyperslab_run::single_rank()).is_ok());
    assert_eq!(run(folder.path(), &["recover", "staged"]).0, 0);
    format.open(&path, OpenMode::Update, &hyperslab_run::single_rank()).unwrap().close().unwrap();
}

#[test]
fn staged_writes_are_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let stack = format!("cache(dir={})/slow(100KB/s,1ms)/posix", folder.path().display());
    let format = hyperslab_run::open_stack(&stack.parse::<Stack>().unwrap()).unwrap();
    let container = format.open(&folder.path().join("a"), OpenMode::Create, &hyperslab_run::single_rank()).unwrap();
    let array = container.create("rows", &ArraySpec::new(Datatype::I64, &[ROWS, COLUMNS])).unwrap();
    let from = Instant::now();
    for number in [3, 4, 3 + ROWS] {
        array.write(&row(number), MemoryView::packed(&values(number)), TransferMode::Independent).unwrap();
    }
    // Columns 100 to 300 of both rows, of which one was written twice.
    let mut found = vec![0; 2 * 200 * 8];
    let part = Selection::dense(&[3, 100], &[2, 200]).unwrap();
    array.read(&part, MemoryViewMut::packed(&mut found), TransferMode::Independent).unwrap();
    // Each row takes 160 ms to reach the storage.
    assert!(from.elapsed() < Duration::from_millis(300), "{:?}", from.elapsed());
    let expected = [values(3 + ROWS), values(4)].map(|row| row[800..2400].to_vec()).concat();
    assert_eq!(found, expected);
    container.close().unwrap();
}

#[test]
fn fields_of_elements_with_filters_are_logged_whole() {
    let folder = tempfile::tempdir().unwrap();
    for options in ["", ",limit=64KiB"] {
        let (path, logs) = (folder.path().join(format!("file{}.h5", options.len())), folder.path().display());
        let stack = format!("log(dir={logs},drain=off{options})/hdf5(deflate=1,chunk=300)");
        let format = hyperslab_run::open_stack(&stack.parse::<Stack>().unwrap()).unwrap();
        let container = format.open(&path, OpenMode::Create, &hyperslab_run::single_rank()).unwrap();
        let field = |name: &str, offset| Field { name: name.into(), offset, dtype: Datatype::I64 };
        let pair = Datatype::compound(16, vec![field("a", 0), field("b", 8)]).unwrap();
        let array = container.create("pairs", &ArraySpec::new(pair, &[1000])).unwrap();
        let (all, bytes) = (Selection::all(&[1000]).unwrap(), |of: u64| of.to_ne_bytes());
        for (field, factor) in [("a", 2), ("b", 3), ("a", 5)] {
            let values: Vec<u8> = (0..1000).flat_map(|number| bytes(number * factor)).collect();
            let layout = MemoryLayout::fields(8, [(field, 0)]);
            array.write(&all, MemoryView { data: &values, layout: &layout }, TransferMode::Independent).unwrap();
        }
        let expected: Vec<u8> = (0..1000).flat_map(|number| [bytes(number * 5), bytes(number * 3)].concat()).collect();
        let mut found = vec![0; 16_000];
        array.read(&all, MemoryViewMut::packed(&mut found), TransferMode::Independent).unwrap();
        assert!(found == expected, "from the log");
        container.close().unwrap();
        let container = format.open(&path, OpenMode::Read, &hyperslab_run::single_rank()).unwrap();
        let array = container.array("pairs").unwrap();
        array.read(&all, MemoryViewMut::packed(&mut found), TransferMode::Independent).unwrap();
        assert!(found == expected, "from the file");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 2, "no logs");
}
