//! What must hold whatever the options.

use super::stage::{Check, Stage, format};
use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Attribute, Datatype, Durability, ErrorKind, Filter, MemoryLayout, MemoryView, MemoryViewMut, OpenMode,
    Selection, TransferMode,
};

pub const ALL: &[Check] = &[
    ("independent and collective writes give the same", alike),
    ("ranks without elements", some_empty),
    ("filters", filters),
    ("growth", growth),
    ("metadata", metadata),
    ("failures are everyone's", failures),
    ("structures in memory", structures),
    ("some fields of compounds", fields),
    ("compact arrays", compact),
    ("files for others", for_others),
    ("every process a file of its own", file_per_process),
    ("dropped files", dropped),
];

fn alike(stage: &Stage) {
    for (stack, spec_chunk) in [("hdf5", None), ("hdf5", Some([3, 4])), ("hdf5(layout=chunked)", None)] {
        for shape in [[13, 10], [2, 3], [1, 1], [64, 200]] {
            let cuts: [fn(&Stage, &[u64]) -> Selection; 2] = [Stage::rows, Stage::columns];
            for select in cuts {
                for (name, transfer) in
                    [("alone.h5", TransferMode::Independent), ("together.h5", TransferMode::Collective)]
                {
                    let file = stage.open(stack, name, OpenMode::Truncate);
                    let chunk = spec_chunk.map(|chunk: [u64; 2]| chunk.as_slice().into());
                    let spec = ArraySpec { chunk, ..ArraySpec::new(Datatype::I64, &shape) };
                    let array = file.create("a", &spec).unwrap();
                    let mine = select(stage, &shape);
                    stage.put(&*array, &mine, &shape, transfer);
                    file.flush(Durability::Visible).unwrap();
                    stage.get(&*array, &Selection::all(&shape).unwrap(), &shape, transfer);
                    stage.get(&*array, &mine, &shape, transfer);
                    assert_eq!(file.diagnostics(), Vec::<String>::new());
                    file.close().unwrap();
                    stage.verify_alone(name, "a", &shape);
                }
            }
        }
    }
}

fn some_empty(stage: &Stage) {
    let shape = [9, 4];
    for stack in ["hdf5(chunk=2x3)", "hdf5(chunk=2x3,deflate=1)", "hdf5"] {
        let file = stage.open(stack, "empty.h5", OpenMode::Truncate);
        let array = stage.create(&file, "a", &shape);
        let mine = if stage.rank() + 1 == stage.size() { Selection::all(&shape).unwrap() } else { Selection::empty(2) };
        for _ in 0..2 {
            stage.put(&*array, &mine, &shape, TransferMode::Collective);
            stage.get(&*array, &mine, &shape, TransferMode::Collective);
        }
        // Nobody has anything.
        stage.put(&*array, &Selection::empty(2), &shape, TransferMode::Collective);
        let none = stage.create(&file, "none", &[0, 3]);
        stage.put(&*none, &Selection::empty(2), &[0, 3], TransferMode::Collective);
        file.close().unwrap();
        stage.verify_alone("empty.h5", "a", &shape);
    }
    let file = stage.open("hdf5", "empty.h5", OpenMode::Update);
    let scalar = file.create("scalar", &ArraySpec::new(Datatype::I64, &[])).unwrap();
    let all = if stage.first() { Selection::all(&[]).unwrap() } else { Selection::empty(0) };
    stage.put(&*scalar, &all, &[], TransferMode::Collective);
    file.close().unwrap();
    stage.verify_alone("empty.h5", "scalar", &[]);
}

fn filters(stage: &Stage) {
    let shape = [40, 12];
    let file = stage.open("hdf5", "filters.h5", OpenMode::Truncate);
    let spec = ArraySpec {
        chunk: Some([7, 5].as_slice().into()),
        filters: vec![Filter::Shuffle, Filter::Deflate(4), Filter::Fletcher32],
        ..ArraySpec::new(Datatype::I64, &shape)
    };
    let array = file.create("a", &spec).unwrap();
    let mine = stage.columns(&shape);
    // Ranks meet in every chunk, twice.
    stage.put(&*array, &mine, &shape, TransferMode::Collective);
    stage.put(&*array, &stage.rows(&shape), &shape, TransferMode::Collective);
    let data = vec![0; 8];
    let one = Selection::dense(&[0, 0], &[1, 1]).unwrap();
    let alone = array.write(&one, MemoryView::packed(&data), TransferMode::Independent);
    if stage.size() > 1 {
        let error = alone.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("use collective transfers"), "{error}");
    } else {
        alone.unwrap();
    }
    file.flush(Durability::Durable).unwrap();
    stage.get(&*array, &mine, &shape, TransferMode::Collective);
    assert_eq!(file.diagnostics(), Vec::<String>::new());
    file.close().unwrap();
    stage.verify_alone("filters.h5", "a", &shape);
}

fn growth(stage: &Stage) {
    for filters in [vec![], vec![Filter::Deflate(1)]] {
        let n = stage.size();
        let file = stage.open("hdf5", "growth.h5", OpenMode::Truncate);
        let spec = ArraySpec {
            chunk: Some([3].as_slice().into()),
            max_shape: Some(vec![None]),
            filters,
            ..ArraySpec::new(Datatype::I64, &[0])
        };
        let array = file.create("deep/a", &spec).unwrap();
        for step in 0..5 {
            array.resize(&[(step + 1) * n]).unwrap();
            let mine = Selection::dense(&[step * n + stage.rank()], &[1]).unwrap();
            stage.put(&*array, &mine, &[5 * n], TransferMode::Collective);
        }
        assert_eq!(array.spec().unwrap().shape.as_slice(), [5 * n]);
        assert_eq!(array.resize(&[1, 1]).unwrap_err().kind(), ErrorKind::InvalidInput);
        array.close().unwrap();
        file.close().unwrap();
        stage.verify_alone("growth.h5", "deep/a", &[5 * n]);
        // Appended later.
        let file = stage.open("hdf5", "growth.h5", OpenMode::Update);
        let array = file.array("deep/a").unwrap();
        array.resize(&[6 * n]).unwrap();
        let mine = Selection::dense(&[5 * n + stage.rank()], &[1]).unwrap();
        stage.put(&*array, &mine, &[6 * n], TransferMode::Collective);
        file.close().unwrap();
        stage.verify_alone("growth.h5", "deep/a", &[6 * n]);
    }
}

fn metadata(stage: &Stage) {
    for stack in ["hdf5", "hdf5(collective_metadata=yes)", "hdf5(libver=latest)"] {
        let file = stage.open(stack, "metadata.h5", OpenMode::Truncate);
        file.create_group("g/h").unwrap();
        file.create_group("g").unwrap();
        for n in 0..20 {
            stage.create(&file, &format!("g/a{n:02}"), &[4]);
            file.set_attribute(&format!("g/a{n:02}"), "unit", &Attribute::text("m")).unwrap();
            file.set_attribute(&format!("g/a{n:02}"), "unit", &Attribute::text("km")).unwrap();
        }
        file.set_attribute("", "title", &Attribute::integer(7)).unwrap();
        // Not collective: one rank asks what the others do not.
        if stage.rank() + 1 == stage.size() {
            assert_eq!(file.arrays().unwrap().len(), 20);
            assert_eq!(file.attribute("g/a07", "unit").unwrap(), Attribute::text("km"));
        }
        file.close().unwrap();
        for comm in [stage.comm.clone(), Solo::shared()] {
            let file = format(stack).open(&stage.path("metadata.h5"), OpenMode::Read, &comm).unwrap();
            if stage.first() {
                assert_eq!(file.arrays().unwrap().len(), 20);
                assert_eq!(file.attributes("g/a19").unwrap(), ["unit"]);
                assert_eq!(file.attribute("", "title").unwrap(), Attribute::integer(7));
            }
            let array = file.array("g/a03").unwrap();
            assert_eq!(array.spec().unwrap().shape.as_slice(), [4]);
            assert_eq!(file.create_group("x").unwrap_err().kind(), ErrorKind::InvalidInput);
            file.close().unwrap();
        }
        stage.comm.barrier().unwrap();
    }
}

fn failures(stage: &Stage) {
    let kind = |how| format("hdf5").open(&stage.path("failures.h5"), how, &stage.comm).unwrap_err().kind();
    // Only the first rank looks.
    let expected = |kind| if stage.first() { kind } else { ErrorKind::Peer };
    assert_eq!(kind(OpenMode::Read), expected(ErrorKind::NotFound));
    assert_eq!(kind(OpenMode::Update), expected(ErrorKind::NotFound));
    let file = stage.open("hdf5", "failures.h5", OpenMode::Create);
    let array = stage.create(&file, "a", &[8]);
    let good = ArraySpec::new(Datatype::I64, &[8]);
    assert_eq!(file.create("a", &good).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(file.array("b").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(file.set_attribute("b", "x", &Attribute::integer(1)).unwrap_err().kind(), ErrorKind::NotFound);
    // One rank fails its checks; the others learn of it, and nobody waits.
    let last = stage.rank() + 1 == stage.size();
    let bad = ArraySpec { chunk: Some([0].as_slice().into()), ..good.clone() };
    let error = file.create("c", if last { &bad } else { &good }).unwrap_err();
    assert_eq!(error.kind(), if last { ErrorKind::InvalidInput } else { ErrorKind::Peer });
    let shapes: (&[u64], &[u64]) = (&[8, 8], &[8]);
    assert!(array.resize(if last { shapes.0 } else { shapes.1 }).is_err());
    let mut value = Attribute::integer(1);
    if last {
        value.data.pop();
    }
    assert!(file.set_attribute("a", "x", &value).is_err());
    assert!(file.create_group(if last { "a//b" } else { "a/b" }).is_err());
    // In a transfer the failing rank takes part with nothing.
    let outside = Selection::dense(&[100], &[1]).unwrap();
    for _ in 0..2 {
        if last {
            let error = array.write(&outside, MemoryView::packed(&[0; 8]), TransferMode::Collective).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let mut short = [0; 7];
            let all = Selection::all(&[8]).unwrap();
            array.read(&all, MemoryViewMut::packed(&mut short), TransferMode::Collective).unwrap_err();
        } else {
            stage.put(&*array, &stage.rows(&[8]), &[8], TransferMode::Collective);
            stage.get(&*array, &stage.rows(&[8]), &[8], TransferMode::Collective);
        }
    }
    stage.write_rows(&*array, &[8]);
    file.close().unwrap();
    stage.verify_alone("failures.h5", "a", &[8]);
    assert_eq!(kind(OpenMode::Create), expected(ErrorKind::AlreadyExists));
    if stage.first() {
        std::fs::write(stage.path("failures.h5"), b"dear to someone").unwrap();
    }
    stage.comm.barrier().unwrap();
    assert_eq!(kind(OpenMode::Truncate), expected(ErrorKind::AlreadyExists));
    assert_eq!(kind(OpenMode::Read), ErrorKind::InvalidInput);
    assert_eq!(std::fs::read(stage.path("failures.h5")).unwrap(), b"dear to someone");
}

/// Memory layouts that differ from rank to rank, so that libhdf5 is told about them in different ways.
fn structures(stage: &Stage) {
    let shape = [4 * stage.size()];
    for stack in ["hdf5", "hdf5(chunk=3)", "hdf5(chunk=3,deflate=1)"] {
        let file = stage.open(stack, "structures.h5", OpenMode::Truncate);
        let array = stage.create(&file, "a", &shape);
        let mine = stage.rows(&shape);
        let data = super::stage::numbers(&mine, &shape);
        let layout = match stage.rank() % 3 {
            0 => MemoryLayout::member(11, 2), // copied by us
            1 => MemoryLayout::packed(),
            _ => MemoryLayout::member(24, 8),
        };
        let (step, offset) = [(11, 2), (8, 0), (24, 8)][stage.comm.rank() % 3];
        let mut memory = vec![0x55; step * 4];
        for (n, value) in data.chunks(8).enumerate() {
            memory[n * step + offset..][..8].copy_from_slice(value);
        }
        array.write(&mine, MemoryView { data: &memory, layout: &layout }, TransferMode::Collective).unwrap();
        let mut back = vec![0x55; step * 4];
        array.read(&mine, MemoryViewMut { data: &mut back, layout: &layout }, TransferMode::Collective).unwrap();
        assert_eq!(back, memory, "{stack}");
        file.close().unwrap();
        stage.verify_alone("structures.h5", "a", &shape);
    }
}

/// Some ranks write some fields, some all, some nothing, and what is not written stays.
fn fields(stage: &Stage) {
    let particle = Datatype::packed_compound([("x", Datatype::I32), ("y", Datatype::I32)]).unwrap();
    let (rows, shape) = (6u64, [6 * stage.size()]);
    let layouts =
        [MemoryLayout::fields(4, [("y", 0)]), MemoryLayout::packed(), MemoryLayout::fields(16, [("y", 4), ("x", 12)])];
    for stack in ["hdf5", "hdf5(chunk=4)", "hdf5(chunk=4,deflate=1)"] {
        for shift in 0..4 {
            let file = stage.open(stack, "fields.h5", OpenMode::Truncate);
            let array = file.create("a", &ArraySpec::new(particle.clone(), &shape)).unwrap();
            let mine = stage.rows(&shape);
            array.write(&mine, MemoryView::packed(&vec![7; rows as usize * 8]), TransferMode::Collective).unwrap();
            let how = (stage.comm.rank() + shift) % 4;
            let expected: Vec<u8> = match how {
                0 => [7, 7, 7, 7, 1, 1, 1, 1].repeat(rows as usize),
                1 => vec![1; rows as usize * 8],
                2 => vec![1; rows as usize * 8],
                _ => vec![7; rows as usize * 8],
            };
            let memory = vec![1; if how == 3 { 0 } else { rows as usize * [4, 8, 16][how] }];
            let nothing = Selection::empty(1);
            let selection = if how == 3 { &nothing } else { &mine };
            let view = MemoryView { data: &memory, layout: &layouts[how % 3] };
            array.write(selection, view, TransferMode::Collective).unwrap();
            let mut back = vec![0; rows as usize * 8];
            array.read(&mine, MemoryViewMut::packed(&mut back), TransferMode::Collective).unwrap();
            assert_eq!(back, expected, "{stack} {how}");
            // One field, read by some.
            let mut y = vec![0; rows as usize * 4];
            if how == 0 {
                let view = MemoryViewMut { data: &mut y, layout: &layouts[0] };
                array.read(&mine, view, TransferMode::Collective).unwrap();
                assert_eq!(y, [1; 24]);
            } else {
                array.read(&nothing, MemoryViewMut::packed(&mut []), TransferMode::Collective).unwrap();
            }
            file.close().unwrap();
        }
    }
}

/// Compact arrays are read by all and written by nobody, and that they are not read collectively is told.
fn compact(stage: &Stage) {
    if stage.first() {
        let file =
            format("hdf5(layout=compact)").open(&stage.path("compact.h5"), OpenMode::Create, &Solo::shared()).unwrap();
        let array = stage.create(&file, "a", &[8]);
        stage.put(&*array, &Selection::all(&[8]).unwrap(), &[8], TransferMode::Independent);
        file.close().unwrap();
    }
    stage.comm.barrier().unwrap();
    if stage.size() == 1 {
        return;
    }
    let file = stage.open("hdf5(layout=compact)", "compact.h5", OpenMode::Update);
    let array = file.array("a").unwrap();
    for _ in 0..3 {
        stage.get(&*array, &stage.rows(&[8]), &[8], TransferMode::Collective);
    }
    let expected =
        "3 of 3 collective reads of this rank ran independently: the array is neither contiguous nor chunked";
    assert_eq!(file.diagnostics(), [expected]);
    for transfer in [TransferMode::Independent, TransferMode::Collective] {
        let error = array.write(&Selection::all(&[8]).unwrap(), MemoryView::packed(&[0; 64]), transfer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
    let error = file.create("b", &ArraySpec::new(Datatype::I64, &[8])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    file.close().unwrap();
}

fn for_others(stage: &Stage) {
    for (stack, name, alone) in [
        ("hdf5", "for-h5py.h5", TransferMode::Collective),
        ("hdf5(plane=on)", "by-plane.h5", TransferMode::Independent),
    ] {
        one_for_others(stage, stack, name, alone);
    }
}

/// Arrays that have no filters are written in this way.
fn one_for_others(stage: &Stage, stack: &str, name: &str, alone: TransferMode) {
    let shape = [16, 10];
    let file = stage.open(stack, name, OpenMode::Create);
    let spec = ArraySpec::new(Datatype::I64, &shape);
    let chunked = ArraySpec { chunk: Some([3, 4].as_slice().into()), ..spec.clone() };
    let deflated = ArraySpec { filters: vec![Filter::Deflate(3)], ..chunked.clone() };
    for (name, spec) in [("contiguous", &spec), ("g/chunked", &chunked), ("g/deflated", &deflated)] {
        let array = file.create(name, spec).unwrap();
        let transfer = if spec.filters.is_empty() { alone } else { TransferMode::Collective };
        stage.put(&*array, &stage.columns(&shape), &shape, transfer);
        array.close().unwrap();
    }
    file.set_attribute("g", "ranks", &Attribute::integer(stage.size() as i64)).unwrap();
    file.set_attribute("", "title", &Attribute::text("shared")).unwrap();
    file.close().unwrap();
}

fn file_per_process(stage: &Stage) {
    let path = stage.path(&format!("own-{}.h5", stage.rank()));
    let file = format("hdf5").open(&path, OpenMode::Create, &Solo::shared()).unwrap();
    let array = stage.create(&file, "a", &[100]);
    let all = Selection::all(&[100]).unwrap();
    stage.put(&*array, &all, &[100], TransferMode::Collective);
    file.flush(Durability::Durable).unwrap();
    stage.get(&*array, &all, &[100], TransferMode::Independent);
    file.close().unwrap();
}

/// What all ranks drop without closing is closed when they open something again, arrays that live on included.
fn dropped(stage: &Stage) {
    let file = stage.open("hdf5", "dropped.h5", OpenMode::Create);
    let array = stage.create(&file, "a", &[16]);
    stage.write_rows(&*array, &[16]);
    drop(file);
    if stage.first() {
        drop(array);
        stage.open("hdf5", "other.h5", OpenMode::Create).close().unwrap();
    } else {
        stage.open("hdf5", "other.h5", OpenMode::Create).close().unwrap();
        let error = array.spec().err();
        assert!(stage.size() == 1 || error.is_some_and(|error| error.to_string().contains("closed")));
    }
    stage.verify_alone("dropped.h5", "a", &[16]);
    let file = stage.open("hdf5", "dropped.h5", OpenMode::Truncate);
    assert!(file.arrays().unwrap().is_empty());
    file.close().unwrap();
}

/// More than 2 GiB in one transfer of one rank.
pub fn large(stage: &Stage) {
    let shape = [(5 << 30) / 8 + 1];
    for transfer in [TransferMode::Independent, TransferMode::Collective] {
        let file = stage.open("hdf5", "large.h5", OpenMode::Truncate);
        let array = stage.create(&file, "a", &shape);
        let mine = stage.rows(&shape);
        let data: Vec<u8> = {
            let (low, high) = mine.bounds().unwrap();
            (low[0]..high[0]).flat_map(|n| (n as i64).to_ne_bytes()).collect()
        };
        array.write(&mine, MemoryView::packed(&data), transfer).unwrap();
        let mut back = vec![0; data.len()];
        array.read(&mine, MemoryViewMut::packed(&mut back), transfer).unwrap();
        assert!(back == data, "{transfer:?}");
        file.close().unwrap();
    }
}

/// Files may not grow beyond a mebibyte: an error on the ranks concerned, and on all when they close.
pub fn no_space(stage: &Stage, stack: &str) {
    // SAFETY: changes limits of this process, whose other threads do not write files.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
    }
    let shape = [8 << 20];
    let file = stage.open(stack, "no-space.h5", OpenMode::Create);
    let array = file.create("a", &ArraySpec::new(Datatype::U8, &shape)).unwrap();
    let mine = stage.rows(&shape);
    // Not collectively: Open MPI's ompio tells nobody of collective writes that failed on one rank.
    array.write(&mine, MemoryView::packed(&vec![1; mine.len() as usize]), TransferMode::Independent).unwrap_err();
    file.close().unwrap_err();
    let full = std::io::Error::from_raw_os_error(libc::ENOSPC);
    stage.comm.abort(&hyperslab_core::Error::io("write", full));
}
