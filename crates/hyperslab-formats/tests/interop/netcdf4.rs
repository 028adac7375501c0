//! NetCDF-4: netCDF4, xarray, h5py and ncdump read and extend what we write, and the other way round.

use super::netcdf::{NO_NETCDF4, Outcome, build, create, growing, run, same, script_with, values, write};
use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Attribute, Container, Datatype, Dims, Filter, MemoryView, MemoryViewMut, OpenMode, Selection,
    TransferMode,
};
use libtest_mimic::{Completion, Failed, Trial};
use std::path::Path;
use std::process::Command;

const STACKS: [&str; 3] = ["netcdf4", "netcdf4(plane=on)", "netcdf4(libver=v110,align=4KiB,fill=netcdf)"];
const NUMBERS: [&str; 10] = ["i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"];

pub fn trials() -> Vec<Trial> {
    let mut out = Vec::new();
    for stack in STACKS {
        let mut add = |what: &str, check: fn(&str) -> Outcome| {
            out.push(Trial::ignorable_test(format!("{stack}::{what}"), move || check(stack)));
        };
        add("we write, netCDF4, xarray and h5py read, netCDF4 appends", we_write);
        add("netCDF4 writes, we read and append", they_write);
        add("ncdump reads it", dumped);
    }
    out.push(Trial::ignorable_test("netcdf4::dimensions of files without any", phony));
    out
}

fn script(what: &str, path: &Path) -> Result<bool, Failed> {
    Ok(script_with("with_netcdf4.py", &[what.as_ref(), path.as_os_str()])?.is_some())
}

fn named(spec: ArraySpec, dims: &[&str]) -> ArraySpec {
    ArraySpec { dims: Some(dims.iter().map(|name| (*name).to_owned()).collect()), ..spec }
}

/// The file that the script checks.
fn make(stack: &str, path: &Path) -> Result<(), Failed> {
    let container = build(stack)?.open(path, OpenMode::Create, &Solo::shared())?;
    for dtype in NUMBERS {
        let name = format!("types/{}", dtype.trim_start_matches('<'));
        create(&*container, &name, &ArraySpec::new(dtype.parse()?, &[5, 7]))?;
    }
    create(&*container, "square", &ArraySpec::new(">i4".parse()?, &[3, 3]))?;
    create(&*container, "scalar", &ArraySpec::new("<f8".parse()?, &[]))?;
    let put = |name: &str, dtype: Datatype, count: u64, data: &[u8]| {
        let array = container.create(name, &ArraySpec::new(dtype, &[count]))?;
        write(&*array, &Selection::all(&[count])?, data)
    };
    put("text", Datatype::FixedString(4), 3, b"abcdefghijkl")?;
    put("flags", Datatype::Bool, 4, &[1, 0, 1, 1])?;
    let pair = Datatype::packed_compound([("a", Datatype::I32), ("b", Datatype::F64)])?;
    let pairs =
        [(3i32, 4.5f64), (10, 11.5)].iter().flat_map(|(a, b)| [&a.to_le_bytes()[..], &b.to_le_bytes()].concat());
    put("pairs", pair, 2, &pairs.collect::<Vec<u8>>())?;
    // A dimension before its coordinate variable, and a variable with the name of a dimension that it does not have.
    create(&*container, "grows", &named(growing("<f4", &[4, 3])?, &["time", "x"]))?;
    container.flush(hyperslab_core::Durability::Visible)?;
    create(&*container, "time", &named(growing("<f8", &[4])?, &["time"]))?;
    create(&*container, "lonely", &growing("<i4", &[2])?)?;
    create(&*container, "x", &ArraySpec::new("<i4".parse()?, &[2]))?;
    create(&*container, "g/h/x", &named(ArraySpec::new("<i2".parse()?, &[3]), &["x"]))?;
    let filled = ArraySpec { fill_value: Some((-1f64).to_le_bytes().to_vec()), ..ArraySpec::new("<f8".parse()?, &[4]) };
    let array = container.create("filled", &filled)?;
    write(&*array, &Selection::dense(&[1], &[2])?, &values(&filled.dtype, 0, 2))?;
    let packed = ArraySpec {
        chunk: Some(Dims::from_slice(&[2, 3])),
        filters: vec![Filter::Shuffle, Filter::Deflate(4)],
        ..ArraySpec::new("<f8".parse()?, &[4, 6])
    };
    create(&*container, "packed", &packed)?;
    container.set_attribute("", "title", &Attribute::text("été"))?;
    container.set_attribute("", "empty", &Attribute::text(""))?;
    container.set_attribute("", "number", &Attribute::integer(7))?;
    let texts = b"one\0\0\0zw\xc3\xb6lf".to_vec();
    let texts = Attribute { dtype: Datatype::FixedString(6), shape: [2].as_slice().into(), data: texts };
    container.set_attribute("", "names", &texts)?;
    container.set_attribute("filled", "units", &Attribute::text("m s-1"))?;
    let list = [1.5f64, -2.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let list = Attribute { dtype: Datatype::F64, shape: [2].as_slice().into(), data: list };
    container.set_attribute("filled", "list", &list)?;
    Ok(container.close()?)
}

fn dims_of(container: &dyn Container, name: &str) -> Result<Vec<String>, Failed> {
    Ok(container.array(name)?.spec()?.dims.unwrap_or_default())
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, expected {expected:?}").into()) }
}

fn we_write(stack: &str) -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("ours.nc");
    make(stack, &path)?;
    if !script("check", &path)? {
        return Ok(Completion::ignored_with(NO_NETCDF4));
    }
    script("append", &path)?;
    let container = build(stack)?.open(&path, OpenMode::Read, &Solo::shared())?;
    same(&*container, "grows", "<f4", &[5, 3])?;
    same(&*container, "theirs", "<i4", &[6])?;
    same(&*container, "x", "<i4", &[2])?;
    same(&*container, "types/f8", "<f8", &[5, 7])?;
    expect("dimensions", dims_of(&*container, "both")?, vec!["theirs".into(), "x".into()])?;
    expect("dimensions", dims_of(&*container, "time")?, vec!["time".into()])?;
    expect("type", container.array("flags")?.spec()?.dtype, Datatype::Bool)?;
    expect("type", container.array("text")?.spec()?.dtype, Datatype::FixedString(4))?;
    expect("attributes", container.attributes("filled")?, vec!["list".into(), "units".into()])?;
    expect("attributes", container.attributes("flags")?, vec![])?;
    expect("attribute", container.attribute("", "history")?.as_text(), Some("appended"))?;
    expect("attribute", container.attribute("", "empty")?, Attribute::text(""))?;
    let listed = container.arrays()?;
    for absent in ["d5", "string4", "_nc4_non_coord_x", "lonely_0"] {
        expect(absent, listed.iter().any(|name| name == absent), false)?;
    }
    container.close()?;
    Ok(Completion::Completed)
}

fn they_write(stack: &str) -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("theirs.nc");
    if !script("write", &path)? {
        return Ok(Completion::ignored_with(NO_NETCDF4));
    }
    let container = build(stack)?.open(&path, OpenMode::Update, &Solo::shared())?;
    let arrays = ["explicit", "g/v", "g/y", "letters", "own", "packed", "records"];
    expect("arrays", container.arrays()?, arrays.map(str::to_owned).to_vec())?;
    same(&*container, "records", "<f4", &[2, 3])?;
    expect("dimensions", dims_of(&*container, "g/v")?, vec!["g/y".into(), "x".into()])?;
    expect("attributes", container.attributes("records")?, vec!["units".into()])?;
    expect("attributes", container.attributes("explicit")?, vec!["_FillValue".into()])?;
    expect("attributes", container.attributes("own")?, vec![])?;
    expect("fill", container.array("own")?.spec()?.fill_value, Some((-5i32).to_le_bytes().to_vec()))?;
    expect("attribute", container.attribute("", "numbers")?.shape.as_slice(), &[3])?;
    expect("attribute", container.attribute("", "one")?.shape.as_slice(), &[])?;
    let mut letters = [0; 3];
    let array = container.array("letters")?;
    array.read(&Selection::all(&[3])?, MemoryViewMut::packed(&mut letters), TransferMode::Independent)?;
    expect("letters", &letters, b"abc")?;
    let records = container.array("records")?;
    records.resize(&[6, 3])?;
    write(&*records, &Selection::dense(&[2, 0], &[4, 3])?, &values(&Datatype::F32, 6, 12))?;
    create(&*container, "ours", &named(growing("<i4", &[6, 3])?, &["time", "x"]))?;
    create(&*container, "later", &ArraySpec::new("<f8".parse()?, &[3]))?;
    // The coordinate variable of a dimension that other variables use.
    let x = container.create("x", &named(ArraySpec::new("<f8".parse()?, &[3]), &["x"]))?;
    let numbers: Vec<u8> = [0.5f64, 1.5, 2.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    x.write(&Selection::all(&[3])?, MemoryView::packed(&numbers), TransferMode::Independent)?;
    container.set_attribute("", "title", &Attribute::text("theirs and ours"))?;
    container.close()?;
    script("appended", &path)?;
    Ok(Completion::Completed)
}

fn dumped(stack: &str) -> Outcome {
    if Command::new("ncdump").output().is_err() {
        return Ok(Completion::ignored_with("ncdump is not on the path (apt: netcdf-bin)"));
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("ours.nc");
    make(stack, &path)?;
    let said = run(Command::new("ncdump").arg("-s").arg(&path))?;
    for wanted in [
        "float grows(time, x) ;",
        "time = UNLIMITED ; // (4 currently)",
        "double time(time) ;",
        " time = 3, 10, 17, 24 ;",
        "filled:_FillValue = -1. ;",
        "filled:units = \"m s-1\" ;",
        "packed:_ChunkSizes = 2, 3 ;",
        "group: h {",
        "hyperslab=",
    ] {
        if !said.contains(wanted) {
            return Err(format!("{wanted:?} is missing in:\n{said}").into());
        }
    }
    Ok(Completion::Completed)
}

fn phony() -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("plain.h5");
    if !script("phony", &path)? {
        return Ok(Completion::ignored_with(NO_NETCDF4));
    }
    let container = build("netcdf4")?.open(&path, OpenMode::Read, &Solo::shared())?;
    for (name, dims) in [("a", [0, 1]), ("b", [0, 2]), ("c", [1, 3])] {
        expect(name, dims_of(&*container, name)?, dims.map(|n| format!("phony_dim_{n}")).to_vec())?;
    }
    container.close()?;
    Ok(Completion::Completed)
}
