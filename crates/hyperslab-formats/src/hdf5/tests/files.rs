//! Opening, creating, truncating, removing, flushing, closing.

use super::*;
use hyperslab_core::{ArraySpec, Attribute, Datatype, Durability, ErrorKind};

fn failure(bench: &Bench, how: OpenMode) -> ErrorKind {
    bench.format.open(&bench.path(), how, &Solo::shared()).unwrap_err().kind()
}

#[test]
fn open_modes_keep_their_contract() {
    let bench = Bench::new("hdf5");
    assert_eq!(failure(&bench, OpenMode::Read), ErrorKind::NotFound);
    assert_eq!(failure(&bench, OpenMode::Update), ErrorKind::NotFound);
    assert!(!bench.format.exists(&bench.path()).unwrap());
    let file = bench.open(OpenMode::Create);
    file.create("a", &ArraySpec::new(Datatype::U8, &[1])).unwrap();
    let error = file.create("a", &ArraySpec::new(Datatype::U8, &[1])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    file.close().unwrap();
    assert!(bench.format.exists(&bench.path()).unwrap());
    assert_eq!(failure(&bench, OpenMode::Create), ErrorKind::AlreadyExists);
    let file = bench.open(OpenMode::Update);
    file.create("b", &ArraySpec::new(Datatype::U8, &[1])).unwrap();
    file.close().unwrap();
    let file = bench.open(OpenMode::Read);
    assert_eq!(file.arrays().unwrap(), ["a", "b"]);
    assert_eq!(file.create_group("g").unwrap_err().kind(), ErrorKind::InvalidInput);
    let array = file.array("a").unwrap();
    assert!(array.write(&all(&*array), MemoryView::packed(&[1]), TransferMode::Independent).is_err());
    assert_eq!(file.array("c").unwrap_err().kind(), ErrorKind::NotFound);
    file.close().unwrap();
    let file = bench.open(OpenMode::Truncate);
    assert!(file.arrays().unwrap().is_empty());
    file.close().unwrap();
    assert_eq!(bench.format.files(&bench.path()).unwrap(), [bench.path()]);
    bench.format.remove(&bench.path()).unwrap();
    assert!(!bench.path().exists());
    assert_eq!(bench.format.remove(&bench.path()).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn strangers_are_left_alone() {
    let bench = Bench::new("hdf5");
    std::fs::write(bench.path(), b"not a container, but dear to someone").unwrap();
    assert_eq!(failure(&bench, OpenMode::Truncate), ErrorKind::AlreadyExists);
    assert_eq!(failure(&bench, OpenMode::Create), ErrorKind::AlreadyExists);
    assert_eq!(failure(&bench, OpenMode::Read), ErrorKind::InvalidInput);
    assert!(bench.format.remove(&bench.path()).is_err());
    assert_eq!(std::fs::read(bench.path()).unwrap(), b"not a container, but dear to someone");
    assert!(bench.format.remove(bench.dir.path()).is_err());
    assert!(bench.format.open(bench.dir.path(), OpenMode::Truncate, &Solo::shared()).is_err());
}

#[test]
fn closing_releases_everything_and_later_use_is_an_error() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    let array = file.create("a", &ArraySpec::new(Datatype::U8, &[4])).unwrap();
    put(&*array, &all(&*array), &[1, 2, 3, 4]);
    file.close().unwrap();
    file.close().unwrap();
    array.close().unwrap();
    let whole = Selection::all(&[4]).unwrap();
    let error = array.write(&whole, MemoryView::packed(&[0; 4]), TransferMode::Independent).unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
    assert!(array.spec().is_err() && array.resize(&[4]).is_err());
    assert!(file.arrays().is_err() && file.flush(Durability::Visible).is_err());
    // Truncation fails as long as libhdf5 holds the file in any way.
    bench.open(OpenMode::Truncate).close().unwrap();
}

#[test]
fn dropping_releases_too() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    let array = file.create("a", &ArraySpec::new(Datatype::U8, &[4])).unwrap();
    put(&*array, &all(&*array), &[1, 2, 3, 4]);
    drop(file);
    drop(array);
    let file = bench.open(OpenMode::Read);
    let array = file.array("a").unwrap();
    assert_eq!(get(&*array, &all(&*array)), [1, 2, 3, 4]);
    drop(array);
    drop(file);
    bench.open(OpenMode::Truncate);
}

#[test]
fn flushed_data_is_in_the_file() {
    let bench = Bench::new("hdf5(locking=no)");
    let file = bench.open(OpenMode::Create);
    let array = file.create("a", &ArraySpec::new(Datatype::U8, &[4096])).unwrap();
    let data = pattern(4096);
    put(&*array, &all(&*array), &data);
    file.set_attribute("a", "unit", &Attribute::text("unmistakable")).unwrap();
    for how in [Durability::Visible, Durability::Durable] {
        file.flush(how).unwrap();
        let bytes = std::fs::read(bench.path()).unwrap();
        assert!(bytes.windows(4096).any(|w| w == data));
        assert!(bytes.windows(12).any(|w| w == b"unmistakable"));
    }
}

#[test]
fn damaged_files_give_errors() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    let array = file.create("g/a", &ArraySpec::new(Datatype::F64, &[100])).unwrap();
    put(&*array, &all(&*array), &pattern(800));
    file.set_attribute("g/a", "unit", &Attribute::text("m")).unwrap();
    file.close().unwrap();
    let good = std::fs::read(bench.path()).unwrap();
    for at in (0..good.len().min(2000)).step_by(3) {
        let mut bad = good.clone();
        bad[at] ^= 0xFF;
        std::fs::write(bench.path(), &bad).unwrap();
        // Any answer will do, as long as there is one.
        if let Ok(file) = bench.format.open(&bench.path(), OpenMode::Read, &Solo::shared()) {
            let _ = file.arrays();
            let _ = file.attribute("g/a", "unit");
            if let Ok(array) = file.array("g/a")
                && let Ok(spec) = array.spec()
                && spec.shape.as_slice() == [100]
                && spec.dtype == Datatype::F64
            {
                let mut data = vec![0; 800];
                let _ = array.read(
                    &Selection::all(&[100]).unwrap(),
                    MemoryViewMut::packed(&mut data),
                    TransferMode::Independent,
                );
            }
        }
    }
    std::fs::write(bench.path(), &good[..good.len() / 2]).unwrap();
    assert_eq!(failure(&bench, OpenMode::Read), ErrorKind::Corrupt);
}
