//! Every datatype survives, in every byte order, alone and in compounds.

use super::*;
use hyperslab_core::{ArraySpec, Datatype, ErrorKind, Field};

fn nested() -> Datatype {
    let inner = Datatype::packed_compound([("x", Datatype::F64), ("on", Datatype::Bool)]).unwrap();
    Datatype::compound(
        40,
        vec![
            Field { name: "id".into(), offset: 0, dtype: Datatype::I32 },
            Field { name: "inner".into(), offset: 8, dtype: inner },
            Field { name: "name".into(), offset: 20, dtype: Datatype::FixedString(7) },
            Field { name: "raw".into(), offset: 30, dtype: Datatype::Opaque(3) },
        ],
    )
    .unwrap()
}

#[test]
fn every_type_round_trips() {
    let bench = Bench::new("hdf5");
    let mut types: Vec<Datatype> =
        ["|i1", "|u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8"]
            .iter()
            .chain(&["<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "|b1", "|S1", "|S16", "|V1", "|V9"])
            .map(|t| t.parse().unwrap())
            .collect();
    types.push(nested());
    let file = bench.open(OpenMode::Create);
    let value = |dtype: &Datatype| match dtype {
        Datatype::Bool => vec![0, 1, 1, 0, 1],
        _ => pattern(5 * dtype.size() as usize),
    };
    for (i, dtype) in types.iter().enumerate() {
        let mut spec = ArraySpec::new(dtype.clone(), &[5]);
        spec.fill_value = Some(value(dtype)[..dtype.size() as usize].to_vec());
        let array = file.create(&format!("t{i:02}"), &spec).unwrap();
        assert_eq!(array.spec().unwrap(), spec);
        put(&*array, &all(&*array), &value(dtype));
    }
    file.close().unwrap();
    let file = bench.open(OpenMode::Read);
    assert_eq!(file.arrays().unwrap().len(), types.len());
    for (i, dtype) in types.iter().enumerate() {
        let array = file.array(&format!("t{i:02}")).unwrap();
        assert_eq!(&array.spec().unwrap().dtype, dtype);
        assert_eq!(get(&*array, &all(&*array)), value(dtype), "{dtype}");
    }
}

#[test]
fn scalars_and_empty_arrays_work() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    let scalar = file.create("scalar", &ArraySpec::new(Datatype::F64, &[])).unwrap();
    put(&*scalar, &all(&*scalar), &2.5f64.to_ne_bytes());
    assert_eq!(get(&*scalar, &all(&*scalar)), 2.5f64.to_ne_bytes());
    let empty = file.create("empty", &ArraySpec::new(Datatype::F64, &[0, 4])).unwrap();
    put(&*empty, &all(&*empty), &[]);
    assert!(get(&*empty, &all(&*empty)).is_empty());
    let plain = file.create("plain", &ArraySpec::new(Datatype::U8, &[3])).unwrap();
    put(&*plain, &Selection::empty(1), &[]);
    assert_eq!(get(&*plain, &all(&*plain)), [0, 0, 0]);
}

#[test]
fn names_that_mean_something_else_are_refused() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    for name in ["", "/a", "a//b", "a/", ".", "a/./b", "nul\0"] {
        let error = file.create(name, &ArraySpec::new(Datatype::U8, &[1])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name:?}: {error}");
    }
    file.create("a/b", &ArraySpec::new(Datatype::U8, &[1])).unwrap();
    let error = file.create("a/b/c", &ArraySpec::new(Datatype::U8, &[1])).unwrap_err();
    assert!(error.to_string().contains("\"a/b\" is not a group"), "{error}");
}
