//! What the format promises, against an array in memory.

use super::*;
use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Attribute, Datatype, Durability, ErrorKind, MemoryLayout, MemoryView, MemoryViewMut, Selection,
    Slab, TransferMode,
};
use std::os::unix::fs::symlink;
use tempfile::TempDir;

const WHOLE: TransferMode = TransferMode::Independent;
/// Every way the data moves: small buffers make windows and cuts happen.
const WAYS: [&str; 5] = [
    "posix",
    "posix(buffer=4KiB)",
    "posix(files=per_rank,buffer=4KiB)",
    "posix(direct=yes,buffer=8KiB)",
    "posix(files=per_rank,direct=yes)",
];

fn format(stack: &str) -> Arc<dyn Format> {
    let stack: hyperslab_core::Stack = stack.parse().unwrap();
    crate::build(&stack.format).unwrap()
}

fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x.posix");
    (directory, path)
}

fn create(format: &dyn Format, path: &Path) -> Arc<dyn Container> {
    format.open(path, OpenMode::Create, &Solo::shared()).unwrap()
}

fn read_all(array: &dyn Array) -> Vec<u8> {
    let spec = array.spec().unwrap();
    let mut out = vec![0xee; (spec.shape.iter().product::<u64>() * spec.dtype.size()) as usize];
    array.read(&Selection::all(&spec.shape).unwrap(), MemoryViewMut::packed(&mut out), WHOLE).unwrap();
    out
}

/// A small generator of numbers; the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn selection(&mut self, shape: &[u64]) -> Selection {
        let slabs = (0..1 + self.below(3)).filter_map(|_| {
            let spans: Vec<[u64; 4]> = shape
                .iter()
                .map(|&extent| {
                    let start = self.below(extent);
                    let block = 1 + self.below((extent - start).min(5));
                    let stride = block + self.below(4);
                    [start, stride, 1 + self.below((extent - start - block) / stride + 1), block]
                })
                .collect();
            let part = |i: usize| spans.iter().map(|span| span[i]).collect::<Vec<_>>();
            Slab::strided(&part(0), &part(1), &part(2), &part(3)).unwrap()
        });
        Selection::union(shape.len(), slabs.collect::<Vec<_>>()).unwrap()
    }

    fn bytes(&mut self, n: u64) -> Vec<u8> {
        (0..n).map(|_| self.below(256) as u8).collect()
    }
}

/// Elements of `selection` in an array in memory, as byte offsets, in order.
fn elements(selection: &Selection, shape: &[u64], size: u64) -> Vec<usize> {
    let runs = selection.runs(shape, size).unwrap();
    runs.flat_map(|run| (run.offset..run.end()).step_by(size as usize)).map(|at| at as usize).collect()
}

#[test]
fn any_transfer_equals_an_array_in_memory() {
    for way in WAYS {
        let mut dice = Dice(7);
        for shape in [vec![5000], vec![40, 50], vec![9, 11, 13], vec![]] {
            let (_keep, path) = place();
            let container = create(&*format(way), &path);
            let mut spec = ArraySpec::new(Datatype::Opaque(3), &shape);
            spec.fill_value = Some(vec![1, 2, 3]);
            let array = container.create("a", &spec).unwrap();
            let total = shape.iter().product::<u64>();
            let mut model: Vec<u8> = [1, 2, 3].repeat(total as usize);
            assert_eq!(read_all(&*array), model, "{way}: filled");
            for _ in 0..30 {
                let selection = dice.selection(&shape);
                let places = elements(&selection, &shape, 3);
                let n = selection.len();
                // Packed, a member of a structure, and a selection of a larger buffer.
                let (layout, stride, skip, room) = match dice.below(3) {
                    0 => (MemoryLayout::packed(), 3, 0, n),
                    1 => (MemoryLayout::member(7, 2), 7, 2, n),
                    _ => {
                        let part = Selection::strided(&[1], &[2], &[n], &[1]).unwrap();
                        (MemoryLayout::strided(&[2 * n + 1], part), 6, 3, 2 * n + 1)
                    }
                };
                let size = room * layout.plan(&spec.dtype).unwrap().stride;
                let mut data = dice.bytes(size);
                if dice.below(2) == 0 {
                    array.write(&selection, MemoryView { data: &data, layout: &layout }, WHOLE).unwrap();
                    for (i, at) in places.iter().enumerate() {
                        model[*at..at + 3].copy_from_slice(&data[i * stride + skip..][..3]);
                    }
                } else {
                    let mut expected = data.clone();
                    for (i, at) in places.iter().enumerate() {
                        expected[i * stride + skip..][..3].copy_from_slice(&model[*at..at + 3]);
                    }
                    let memory = MemoryViewMut { data: &mut data, layout: &layout };
                    array.read(&selection, memory, WHOLE).unwrap();
                    assert_eq!(data, expected, "{way}: read");
                }
            }
            assert_eq!(read_all(&*array), model, "{way}: all");
            container.flush(Durability::Durable).unwrap();
            container.close().unwrap();
            let again = format("posix").open(&path, OpenMode::Read, &Solo::shared()).unwrap();
            assert_eq!(read_all(&*again.array("a").unwrap()), model, "{way}: reopened");
        }
    }
}

#[test]
fn ranks_write_parts_of_one_block_and_lose_nothing() {
    for way in WAYS {
        let (_keep, path) = place();
        let shape = [3000, 4];
        Threads::run(4, |comm| {
            let container = format(way).open(&path, OpenMode::Create, &comm)?;
            let array = container.create("g/a", &ArraySpec::new(Datatype::I32, &shape))?;
            for round in 0..3u32 {
                // Columns, then bands of rows that no block boundary respects, then columns of other ranks.
                let rank = comm.rank() as u64;
                let mine = match round {
                    0 => Selection::dense(&[0, rank], &[3000, 1])?,
                    1 => Selection::dense(&[rank * 750, 0], &[750, 4])?,
                    _ => Selection::dense(&[0, (rank + 1) % 4], &[3000, 1])?,
                };
                let data: Vec<u8> =
                    elements(&mine, &shape, 4).iter().flat_map(|at| (*at as u32 ^ round << 20).to_le_bytes()).collect();
                array.write(&mine, MemoryView::packed(&data), WHOLE)?;
                comm.barrier()?;
                let mut all = vec![0; 48000];
                array.read(&Selection::all(&shape)?, MemoryViewMut::packed(&mut all), WHOLE)?;
                for (i, bytes) in all.chunks(4).enumerate() {
                    assert_eq!(
                        bytes,
                        ((i as u32 * 4) ^ (round << 20)).to_le_bytes(),
                        "{way}: round {round}, element {i}"
                    );
                }
                comm.barrier()?;
            }
            container.close()
        })
        .unwrap();
        // Fewer ranks than wrote it.
        let again = format(way).open(&path, OpenMode::Read, &Solo::shared()).unwrap();
        let all = read_all(&*again.array("g/a").unwrap());
        assert!(
            all.chunks(4).enumerate().all(|(i, bytes)| bytes == ((i as u32 * 4) ^ (2 << 20)).to_le_bytes()),
            "{way}"
        );
    }
}

#[test]
fn a_later_program_overwrites_an_earlier_one_in_files_per_rank() {
    let (_keep, path) = place();
    let format = format("posix(files=per_rank)");
    let everything = Selection::all(&[10]).unwrap();
    Threads::run(3, |comm| {
        let container = format.open(&path, OpenMode::Create, &comm)?;
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[10]))?;
        if comm.rank() == 2 {
            array.write(&everything, MemoryView::packed(&[2; 10]), WHOLE)?;
        }
        container.close()
    })
    .unwrap();
    let container = format.open(&path, OpenMode::Update, &Solo::shared()).unwrap();
    let array = container.array("a").unwrap();
    array.write(&Selection::dense(&[3], &[4]).unwrap(), MemoryView::packed(&[9; 4]), WHOLE).unwrap();
    assert_eq!(read_all(&*array), [2, 2, 2, 9, 9, 9, 9, 2, 2, 2]);
    // A line that was never finished counts for nothing, and the next one is whole.
    container.close().unwrap();
    let index = path.join("a.ranks/0.index");
    let mut text = std::fs::read(&index).unwrap();
    text.extend(b"{\"stamp\":9");
    std::fs::write(&index, text).unwrap();
    let container = format.open(&path, OpenMode::Update, &Solo::shared()).unwrap();
    let array = container.array("a").unwrap();
    assert_eq!(read_all(&*array)[3], 9);
    array.write(&Selection::dense(&[0], &[1]).unwrap(), MemoryView::packed(&[7]), WHOLE).unwrap();
    assert_eq!(read_all(&*array), [7, 2, 2, 9, 9, 9, 9, 2, 2, 2]);
    std::fs::write(&index, "nonsense\n").unwrap();
    let container = format.open(&path, OpenMode::Read, &Solo::shared()).unwrap();
    let array = container.array("a").unwrap();
    let mut all = [0; 10];
    let error = array.read(&everything, MemoryViewMut::packed(&mut all), WHOLE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

fn particle() -> Datatype {
    Datatype::packed_compound([("x", Datatype::I32), ("y", Datatype::I32), ("z", Datatype::U8)]).unwrap()
}

#[test]
fn ranks_write_different_fields_of_the_same_elements() {
    for way in ["posix", "posix(buffer=4KiB)", "posix(direct=yes)"] {
        let (_keep, path) = place();
        let all = Threads::run(3, |comm| {
            let container = format(way).open(&path, OpenMode::Create, &comm)?;
            let array = container.create("p", &ArraySpec::new(particle(), &[2000]))?;
            let (field, size) = [("x", 4), ("y", 4), ("z", 1)][comm.rank()];
            let layout = MemoryLayout::fields(size, [(field, 0)]);
            for round in 1..=3u8 {
                // Every second element, then all.
                let which = Selection::strided(&[0], &[u64::from(1 + round % 2)], &[1000], &[1])?;
                let data = vec![round * 10 + comm.rank() as u8; which.len() as usize * size as usize];
                array.write(&which, MemoryView { data: &data, layout: &layout }, WHOLE)?;
            }
            comm.barrier()?;
            Ok(read_all(&*array))
        })
        .unwrap();
        for (i, element) in all[0].chunks(9).enumerate() {
            let round = if i < 1000 {
                if i % 2 == 0 { 30 } else { 20 }
            } else if i % 2 == 0 {
                30
            } else {
                0
            };
            let value = |rank: u8| if round == 0 { 0 } else { round + rank };
            assert_eq!(element[..4], [value(0); 4], "{way} {i}");
            assert_eq!(element[4..8], [value(1); 4], "{way} {i}");
            assert_eq!(element[8], value(2), "{way} {i}");
        }
    }
}

#[test]
fn large_transfers_by_ring_are_those_of_plain_calls() {
    const EACH: u64 = 5 << 20;
    for way in ["posix(io=uring)", "posix(io=uring,direct=yes)", "posix(io=uring,files=per_rank)"] {
        let (_keep, path) = place();
        let written = Threads::run(2, |comm| {
            let container = format(way).open(&path, OpenMode::Create, &comm)?;
            let array = container.create("a", &ArraySpec::new(Datatype::U8, &[2 * EACH + 3]))?;
            let rank = comm.rank() as u64;
            let data: Vec<u8> = (0..EACH).map(|i| (i ^ (i >> 9) ^ rank) as u8).collect();
            // Begins inside a block.
            let mine = Selection::dense(&[1 + rank * EACH], &[EACH])?;
            array.write(&mine, MemoryView::packed(&data), WHOLE)?;
            let mut found = vec![0; EACH as usize];
            array.read(&mine, MemoryViewMut::packed(&mut found), WHOLE)?;
            assert!(found == data, "{way}");
            container.close()?;
            Ok(data)
        });
        let written = match written {
            Err(error) if error.kind() == ErrorKind::Unsupported && way.contains("direct") => continue,
            other => other.unwrap(),
        };
        let plain = format("posix").open(&path, OpenMode::Read, &Solo::shared()).unwrap();
        let found = read_all(&*plain.array("a").unwrap());
        assert!(found[1..=EACH as usize] == written[0] && found[EACH as usize + 1..][..EACH as usize] == written[1]);
        assert_eq!((found[0], found[found.len() - 1]), (0, 0));
    }
}

#[test]
fn fields_are_refused_where_they_could_be_lost() {
    let (_keep, path) = place();
    let format = format("posix(files=per_rank)");
    assert!(!format.caps().data.partial_fields);
    let array = create(&*format, &path).create("p", &ArraySpec::new(particle(), &[2])).unwrap();
    let layout = MemoryLayout::fields(4, [("x", 0)]);
    let memory = MemoryView { data: &[0; 8], layout: &layout };
    let error = array.write(&Selection::all(&[2]).unwrap(), memory, WHOLE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn only_the_slowest_dimension_is_resized_and_regrown_elements_are_fill() {
    for way in WAYS {
        for fill in [None, Some(vec![7])] {
            let (_keep, path) = place();
            Threads::run(2, |comm| {
                let container = format(way).open(&path, OpenMode::Create, &comm)?;
                let mut spec = ArraySpec::new(Datatype::U8, &[4, 3]);
                spec.max_shape = Some(vec![Some(9000), Some(4)]);
                assert_eq!(container.create("b", &spec).unwrap_err().kind(), ErrorKind::Unsupported);
                spec.max_shape = Some(vec![Some(9000), Some(3)]);
                spec.fill_value = fill.clone();
                let array = container.create("a", &spec)?;
                let other = container.array("a")?;
                let mine = Selection::dense(&[2 * comm.rank() as u64, 0], &[2, 3])?;
                array.write(&mine, MemoryView::packed(&[1; 6]), WHOLE)?;
                assert_eq!(array.resize(&[4, 4]).unwrap_err().kind(), ErrorKind::InvalidInput);
                assert_eq!(array.resize(&[4, 2]).unwrap_err().kind(), ErrorKind::Unsupported);
                assert!(array.resize(&[9001, 3]).is_err());
                assert!(array.resize(&[4]).is_err());
                array.resize(&[1, 3])?;
                assert!(array.write(&mine, MemoryView::packed(&[1; 6]), WHOLE).is_err());
                array.resize(&[8000, 3])?;
                assert_eq!(other.spec()?.shape.as_slice(), [8000, 3]);
                let all = read_all(&*other);
                assert_eq!(all[..3], [1; 3], "{way}");
                assert!(all[3..].iter().all(|byte| *byte == fill.as_ref().map_or(0, |fill| fill[0])), "{way}");
                container.close()
            })
            .unwrap();
            let again = format(way).open(&path, OpenMode::Update, &Solo::shared()).unwrap();
            assert_eq!(again.array("a").unwrap().spec().unwrap().shape.as_slice(), [8000, 3]);
        }
    }
    let (_keep, path) = place();
    let array = create(&*format("posix"), &path).create("a", &ArraySpec::new(Datatype::U8, &[4])).unwrap();
    assert_eq!(array.resize(&[5]).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn objects_attributes_and_names() {
    let (_keep, path) = place();
    let container = create(&*format("posix"), &path);
    let spec = ArraySpec::new(Datatype::F64, &[2]);
    container.create("fields/t.1/tempé rature", &spec).unwrap();
    container.create("hyperslab", &spec).unwrap();
    container.create("a.json", &spec).unwrap();
    container.create("a", &spec).unwrap();
    container.create_group("fields").unwrap();
    container.create_group("empty/er").unwrap();
    assert_eq!(container.arrays().unwrap(), ["a", "a.json", "fields/t.1/tempé rature", "hyperslab"]);
    for taken in ["a", "fields"] {
        assert_eq!(container.create(taken, &spec).unwrap_err().kind(), ErrorKind::AlreadyExists);
    }
    assert_eq!(container.create_group("a/b").unwrap_err().kind(), ErrorKind::AlreadyExists);
    for bad in ["../x", "/x", "", "a/../../x"] {
        assert!(container.create(bad, &spec).is_err(), "{bad}");
        assert!(container.array(bad).is_err(), "{bad}");
    }
    let unit = Attribute::text("K");
    for object in ["", "fields", "a", "fields/t.1/tempé rature"] {
        container.set_attribute(object, "unit", &Attribute::integer(3)).unwrap();
        container.set_attribute(object, "unit", &unit).unwrap();
        container.set_attribute(object, "blob", &Attribute::float(0.1)).unwrap();
        assert_eq!(container.attribute(object, "unit").unwrap(), unit);
        assert_eq!(container.attributes(object).unwrap(), ["blob", "unit"]);
    }
    assert_eq!(container.attribute("a", "none").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(container.set_attribute("nothing", "n", &unit).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(container.array("nothing").unwrap_err().kind(), ErrorKind::NotFound);
    container.close().unwrap();
    container.close().unwrap();
    assert!(container.arrays().is_err());

    let reader = format("posix").open(&path, OpenMode::Read, &Solo::shared()).unwrap();
    assert_eq!(reader.attribute("", "blob").unwrap(), Attribute::float(0.1));
    assert_eq!(reader.create("new", &spec).unwrap_err().kind(), ErrorKind::InvalidInput);
    let array = reader.array("a").unwrap();
    assert!(array.write(&Selection::all(&[2]).unwrap(), MemoryView::packed(&[0; 16]), WHOLE).is_err());
    array.close().unwrap();
    assert!(array.spec().is_err());
    assert!(reader.array("hyperslab").is_ok());
}

#[test]
fn chunks_filters_and_senseless_options_are_refused() {
    let (_keep, path) = place();
    let container = create(&*format("posix"), &path);
    let mut spec = ArraySpec::new(Datatype::U8, &[4]);
    spec.chunk = Some([2u64].as_slice().into());
    assert_eq!(container.create("a", &spec).unwrap_err().kind(), ErrorKind::Unsupported);
    let mut spec = ArraySpec::new(Datatype::U8, &[4]);
    spec.filters = vec![hyperslab_core::Filter::Shuffle];
    assert_eq!(container.create("a", &spec).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(container.create("a", &ArraySpec::new(Datatype::Opaque(0), &[4])).is_err());
    assert!(container.arrays().unwrap().is_empty());
    // More than any file system holds: refused, and nothing is left behind.
    let huge = container.create("huge", &ArraySpec::new(Datatype::U8, &[i64::MAX as u64]));
    assert_eq!(huge.unwrap_err().kind(), ErrorKind::NoSpace);
    assert!(container.arrays().unwrap().is_empty());
    for bad in ["posix(files=many)", "posix(buffer=1)", "posix(direct=maybe)", "posix(files=per_rank,preallocate=yes)"]
    {
        let stack: hyperslab_core::Stack = bad.parse().unwrap();
        assert_eq!(crate::build(&stack.format).unwrap_err().kind(), ErrorKind::InvalidInput, "{bad}");
    }
}

#[test]
fn preallocated_arrays_have_their_space() {
    use std::os::unix::fs::MetadataExt;
    let (_keep, path) = place();
    create(&*format("posix(preallocate=yes)"), &path).create("a", &ArraySpec::new(Datatype::U8, &[1 << 20])).unwrap();
    assert!(std::fs::metadata(path.join("a.raw")).unwrap().blocks() * 512 >= 1 << 20);
}

#[test]
fn open_modes_keep_their_word() {
    let (keep, path) = place();
    let format = format("posix");
    let solo = Solo::shared();
    let kind = |how| format.open(&path, how, &solo).unwrap_err().kind();
    assert_eq!((kind(OpenMode::Read), kind(OpenMode::Update)), (ErrorKind::NotFound, ErrorKind::NotFound));
    assert!(!format.exists(&path).unwrap());
    let container = format.open(&path, OpenMode::Truncate, &solo).unwrap();
    container.create("g/a", &ArraySpec::new(Datatype::U8, &[4])).unwrap();
    container.close().unwrap();
    assert_eq!(kind(OpenMode::Create), ErrorKind::AlreadyExists);
    assert_eq!(format.files(&path).unwrap().len(), 4);
    let container = format.open(&path, OpenMode::Truncate, &solo).unwrap();
    assert!(container.arrays().unwrap().is_empty());
    container.close().unwrap();

    // A stranger's file inside, a symbolic link, a stranger's directory, a newer version: all left alone.
    std::fs::write(path.join("notes.txt"), "mine").unwrap();
    assert!(kind(OpenMode::Truncate) == ErrorKind::InvalidInput && format.remove(&path).is_err());
    assert!(path.join("notes.txt").exists() && path.join("hyperslab.json").exists());
    std::fs::remove_file(path.join("notes.txt")).unwrap();
    std::fs::write(path.join("notes.json"), "{}").unwrap();
    assert!(format.remove(&path).is_err());
    std::fs::remove_file(path.join("notes.json")).unwrap();
    let link = keep.path().join("link");
    symlink(&path, &link).unwrap();
    assert!(format.remove(&link).is_err());
    let plain = keep.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    assert!(format.remove(&plain).is_err() && format.open(&plain, OpenMode::Truncate, &solo).is_err());
    std::fs::write(path.join("hyperslab.json"), r#"{"hyperslab":"posix container","version":2}"#).unwrap();
    assert_eq!((kind(OpenMode::Read), kind(OpenMode::Truncate)), (ErrorKind::Unsupported, ErrorKind::Unsupported));
    std::fs::write(path.join("hyperslab.json"), r#"{"hyperslab":"posix container","version":1}"#).unwrap();
    format.remove(&path).unwrap();
    assert!(!path.exists());
}

#[test]
fn hostile_containers_are_refused_without_harm() {
    let (keep, path) = place();
    let format = format("posix");
    let container = create(&*format, &path);
    container.create("a", &ArraySpec::new(Datatype::U8, &[4])).unwrap();
    let description = path.join("a.json");
    let good = std::fs::read_to_string(&description).unwrap();
    let kind_of = |text: &str| {
        std::fs::write(&description, text).unwrap();
        format.open(&path, OpenMode::Update, &Solo::shared()).unwrap().array("a").unwrap_err().kind()
    };
    assert_eq!(kind_of(&good.replace('4', "5")), ErrorKind::Corrupt, "the file is too short");
    assert_eq!(kind_of(&good.replace('4', "18446744073709551615")), ErrorKind::Corrupt);
    assert_eq!(kind_of("{"), ErrorKind::Corrupt);
    assert_eq!(kind_of(""), ErrorKind::Corrupt);
    std::fs::write(&description, &good).unwrap();
    // Links instead of data and groups would lead elsewhere.
    let outside = keep.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("victim"), "1234").unwrap();
    std::fs::remove_file(path.join("a.raw")).unwrap();
    symlink(outside.join("victim"), path.join("a.raw")).unwrap();
    symlink(&outside, path.join("g")).unwrap();
    let container = format.open(&path, OpenMode::Update, &Solo::shared()).unwrap();
    assert!(container.array("a").is_err());
    assert!(container.create("g/x", &ArraySpec::new(Datatype::U8, &[1])).is_err());
    assert!(format.remove(&path).is_err());
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_failure_on_one_rank_is_an_error_on_all() {
    let (_keep, path) = place();
    std::fs::write(&path, "a file").unwrap();
    let results = Threads::run_each(3, |comm| format("posix").open(&path, OpenMode::Truncate, &comm).map(drop));
    for (rank, result) in results.into_iter().enumerate() {
        let expected = if rank == 0 { ErrorKind::InvalidInput } else { ErrorKind::Peer };
        assert_eq!(result.unwrap_err().kind(), expected);
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
}
