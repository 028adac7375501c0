//! NetCDF-4 files that processes share: dimensions, growth by different ranks, ranks without elements.

use super::stage::{Check, Stage};
use hyperslab_core::{ArraySpec, Attribute, Datatype, ErrorKind, Filter, OpenMode, Selection, TransferMode};

pub const ALL: &[Check] = &[
    ("NetCDF-4 files for others", for_others),
    ("growth of NetCDF-4 files beyond 32 bits", growth),
    ("strings are refused where libhdf5 writes none", strings),
];

fn named(spec: ArraySpec, dims: &[&str]) -> ArraySpec {
    ArraySpec { dims: Some(dims.iter().map(|name| (*name).to_owned()).collect()), ..spec }
}

fn growing(shape: &[u64], chunk: &[u64], dims: &[&str]) -> ArraySpec {
    let max = std::iter::once(None).chain(shape[1..].iter().copied().map(Some)).collect();
    let spec = ArraySpec { max_shape: Some(max), chunk: Some(chunk.into()), ..ArraySpec::new(Datatype::I64, shape) };
    named(spec, dims)
}

fn for_others(stage: &Stage) {
    let shape = [12, 10];
    let file = stage.open("netcdf4", "netcdf.nc", OpenMode::Create);
    let fixed = file.create("g/fixed", &named(ArraySpec::new(Datatype::I64, &shape), &["y", "x"])).unwrap();
    let time = file.create("time", &growing(&[0], &[8], &["time"])).unwrap();
    let air = file.create("air", &growing(&[0, 10], &[4, 10], &["time", "x"])).unwrap();
    stage.put(&*fixed, &stage.columns(&shape), &shape, TransferMode::Collective);
    let last = stage.rank() + 1 == stage.size();
    // Every rank asks for as many rows as it knows of.
    for rows in [3, 12] {
        let mine = if last { rows } else { rows - 1 };
        air.resize(&[mine, 10]).unwrap();
        time.resize(&[mine]).unwrap();
        assert_eq!(air.spec().unwrap().shape.as_slice(), [rows, 10]);
    }
    // The last rank has all elements, the others none.
    let all = |shape: &[u64]| if last { Selection::all(shape).unwrap() } else { Selection::empty(shape.len()) };
    stage.put(&*air, &all(&shape), &shape, TransferMode::Collective);
    stage.put(&*time, &all(&[12]), &[12], TransferMode::Collective);
    file.set_attribute("air", "units", &Attribute::text("K")).unwrap();
    file.close().unwrap();
    let file = stage.open("netcdf4", "netcdf.nc", OpenMode::Read);
    for name in ["g/fixed", "air"] {
        stage.get(&*file.array(name).unwrap(), &Selection::all(&shape).unwrap(), &shape, TransferMode::Collective);
    }
    let dims = file.array("air").unwrap().spec().unwrap().dims.unwrap();
    assert_eq!(dims, ["time", "x"]);
    file.close().unwrap();
}

fn growth(stage: &Stage) {
    let rows = (1u64 << 32) + 5;
    let file = stage.open("netcdf4", "long.nc", OpenMode::Create);
    // Chunks with filters come into being when they are written.
    let spec = ArraySpec { filters: vec![Filter::Deflate(1)], ..growing(&[0, 2], &[1 << 16, 2], &["time", "x"]) };
    let array = file.create("long", &spec).unwrap();
    // Only one rank knows of the last rows.
    let known = if stage.first() { rows } else { rows - 1 - stage.rank() };
    array.resize(&[known, 2]).unwrap();
    let shape = [rows, 2];
    assert_eq!(array.spec().unwrap().shape.as_slice(), shape);
    let mine = if stage.first() { Selection::dense(&[rows - 3, 0], &[3, 2]).unwrap() } else { Selection::empty(2) };
    stage.put(&*array, &mine, &shape, TransferMode::Collective);
    file.close().unwrap();
    let file = stage.open("netcdf4", "long.nc", OpenMode::Read);
    let array = file.array("long").unwrap();
    assert_eq!(array.spec().unwrap().shape.as_slice(), shape);
    let end = Selection::dense(&[rows - 3, 0], &[3, 2]).unwrap();
    stage.get(&*array, &end, &shape, TransferMode::Collective);
    file.close().unwrap();
    assert!(stage.path("long.nc").metadata().unwrap().len() < 1 << 20, "dimensions and holes take no room");
}

fn strings(stage: &Stage) {
    for (stack, name) in [("netcdf4", "strings.nc"), ("hdf5", "strings.h5")] {
        let file = stage.open(stack, name, OpenMode::Create);
        let made = file.create("names", &ArraySpec::new(Datatype::VariableString, &[3]));
        // A single process has no MPI-IO driver.
        if stage.size() > 1 {
            assert_eq!(made.unwrap_err().kind(), ErrorKind::Unsupported);
        }
        let words = Attribute::strings(&[2], &["a", "été"].iter().collect());
        file.set_attribute("", "words", &words).unwrap();
        file.close().unwrap();
        let file = stage.open(stack, name, OpenMode::Read);
        assert_eq!(file.attribute("", "words").unwrap().texts(), words.texts());
        file.close().unwrap();
    }
}
