//! Classic NetCDF: netCDF4, scipy, ncdump and ncvalidator read and extend what we write, and the other way round.

use super::{NOBODY_ELSE, python};
use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Attribute, ByteOrder, Container, Datatype, Format, MemoryView, MemoryViewMut, OpenMode,
    Selection, Stack, TransferMode, dims::element_count,
};
use libtest_mimic::{Completion, Failed, Trial};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, PoisonError};

pub type Outcome = Result<Completion, Failed>;

const VERSIONS: [&str; 3] = ["1", "2", "5"];
const OPTIONS: [&str; 3] = ["", ",header_pad=0", ",var_align=4KiB,record_align=512"];

pub fn trials() -> Vec<Trial> {
    let mut out = Vec::new();
    for version in VERSIONS {
        for options in OPTIONS {
            let stack = format!("netcdf3(version={version}{options})");
            let named = |what: &str| format!("{stack}::{what}");
            let with = |check: fn(&str, &str) -> Outcome| {
                let stack = stack.clone();
                move || check(&stack, version)
            };
            out.push(Trial::ignorable_test(named("we write, netCDF4 reads and appends"), with(we_write)));
            out.push(Trial::ignorable_test(named("netCDF4 writes, we read and append"), with(they_write)));
            out.push(Trial::ignorable_test(named("ncvalidator finds no fault"), with(validated)));
            out.push(Trial::ignorable_test(named("ncdump reads it"), with(dumped)));
        }
    }
    out
}

/// The numbers of elements as numbers of the type: (7 i + 3) mod 100.
pub fn values(dtype: &Datatype, first: u64, count: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for i in first..first + count {
        let value = (7 * i + 3) % 100;
        let mut bytes = match dtype {
            Datatype::Float { size: 4, .. } => (value as f32).to_le_bytes().to_vec(),
            Datatype::Float { .. } => (value as f64).to_le_bytes().to_vec(),
            other => value.to_le_bytes()[..other.size() as usize].to_vec(),
        };
        if matches!(
            dtype,
            Datatype::Float { order: ByteOrder::Big, .. } | Datatype::Integer { order: ByteOrder::Big, .. }
        ) {
            bytes.reverse();
        }
        out.extend(bytes);
    }
    out
}

fn types(version: &str) -> Vec<&'static str> {
    let wide: &[&str] = if version == "5" { &["u1", "<u2", "<u4", "<i8", "<u8"] } else { &[] };
    [&["i1", "<i2", "<i4", "<f4", "<f8"], wide].concat()
}

pub fn write(array: &dyn Array, selection: &Selection, data: &[u8]) -> hyperslab_core::Result<()> {
    array.write(selection, MemoryView::packed(data), TransferMode::Independent)
}

pub fn create(container: &dyn Container, name: &str, spec: &ArraySpec) -> Result<(), Failed> {
    let array = container.create(name, spec)?;
    write(&*array, &Selection::all(&spec.shape)?, &values(&spec.dtype, 0, element_count(&spec.shape)?))?;
    Ok(())
}

pub fn growing(dtype: &str, shape: &[u64]) -> Result<ArraySpec, Failed> {
    let max = std::iter::once(None).chain(shape[1..].iter().copied().map(Some)).collect();
    Ok(ArraySpec { max_shape: Some(max), ..ArraySpec::new(dtype.parse()?, shape) })
}

pub fn same(container: &dyn Container, name: &str, dtype: &str, shape: &[u64]) -> Result<(), Failed> {
    let array = container.array(name)?;
    let spec = array.spec()?;
    let dtype: Datatype = dtype.parse()?;
    let expected = values(&dtype, 0, element_count(shape)?);
    let mut found = vec![0; expected.len()];
    if spec.dtype != dtype || spec.shape.as_slice() != shape {
        return Err(format!("{name}: {spec:?}, expected {dtype} of {shape:?}").into());
    }
    array.read(&Selection::all(shape)?, MemoryViewMut::packed(&mut found), TransferMode::Independent)?;
    if found == expected { Ok(()) } else { Err(format!("{name}: {found:?}, expected {expected:?}").into()) }
}

/// The file that the script checks.
fn make(stack: &str, path: &Path, version: &str) -> Result<(), Failed> {
    let container = build(stack)?.open(path, OpenMode::Create, &Solo::shared())?;
    for dtype in types(version) {
        let name = format!("types/{}", dtype.trim_start_matches('<'));
        create(&*container, &name, &ArraySpec::new(dtype.parse()?, &[5, 7]))?;
    }
    create(&*container, "square", &ArraySpec::new(">i4".parse()?, &[3, 3]))?;
    create(&*container, "scalar", &ArraySpec::new("<f8".parse()?, &[]))?;
    let text = container.create("text", &ArraySpec::new("|S4".parse()?, &[3]))?;
    write(&*text, &Selection::all(&[3])?, b"abcdefghijkl")?;
    // Its definition comes after data of the others: records move, since they are cut anew.
    create(&*container, "grows", &growing("<f4", &[4, 3])?)?;
    create(&*container, "bytes", &growing("i1", &[4, 3])?)?;
    create(&*container, "alone", &growing("<i2", &[4])?)?;
    let filled = ArraySpec { fill_value: Some((-1f64).to_le_bytes().to_vec()), ..ArraySpec::new("<f8".parse()?, &[4]) };
    let array = container.create("filled", &filled)?;
    write(&*array, &Selection::dense(&[1], &[2])?, &values(&filled.dtype, 0, 2))?;
    container.set_attribute("", "title", &Attribute::text("été"))?;
    container.set_attribute("filled", "units", &Attribute::text("m s-1"))?;
    let list = [1.5f64, -2.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let list = Attribute { dtype: Datatype::F64, shape: [2].as_slice().into(), data: list };
    container.set_attribute("filled", "list", &list)?;
    Ok(container.close()?)
}

pub fn build(stack: &str) -> Result<Arc<dyn Format>, Failed> {
    Ok(hyperslab_formats::build(&stack.parse::<Stack>()?.format)?)
}

pub fn run(command: &mut Command) -> Result<String, Failed> {
    // Between fork and exec, children of other tests still hold the locks of files that are closed here.
    command.env("HDF5_USE_FILE_LOCKING", "FALSE");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = {
        let _alone = NOBODY_ELSE.lock().unwrap_or_else(PoisonError::into_inner);
        command.spawn()?
    };
    let output = child.wait_with_output()?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(said) } else { Err(format!("{command:?}: {said}").into()) }
}

/// Runs a script; `None` where its Python has no netCDF4.
pub fn script_with(script: &str, arguments: &[&OsStr]) -> Result<Option<String>, Failed> {
    let Some(python) = python() else { return Ok(None) };
    if run(Command::new(&python).args(["-c", "import netCDF4"])).is_err() {
        return Ok(None);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(script);
    let said = run(Command::new(&python).arg(script).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    said.lines().filter(|line| line.starts_with("skip")).for_each(|line| eprintln!("{line}"));
    Ok(Some(said))
}

fn script(what: &str, path: &Path, version: &str) -> Result<Option<String>, Failed> {
    script_with("with_netcdf.py", &[what.as_ref(), path.as_os_str(), version.as_ref()])
}

pub const NO_NETCDF4: &str = "the Python of HYPERSLAB_PYTHON has no netCDF4: cargo xtask setup --tests";

fn we_write(stack: &str, version: &str) -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("ours.nc");
    make(stack, &path, version)?;
    if script("check", &path, version)?.is_none() {
        return Ok(Completion::ignored_with(NO_NETCDF4));
    }
    script("append", &path, version)?;
    let container = build(stack)?.open(&path, OpenMode::Read, &Solo::shared())?;
    same(&*container, "grows", "<f4", &[5, 3])?;
    same(&*container, "theirs", "<i4", &[6])?;
    same(&*container, "types/f8", "<f8", &[5, 7])?;
    if container.attribute("", "history")?.as_text() != Some("appended") {
        return Err("their attribute is not there".into());
    }
    container.close()?;
    Ok(Completion::Completed)
}

fn they_write(stack: &str, version: &str) -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("theirs.nc");
    if script("write", &path, version)?.is_none() {
        return Ok(Completion::ignored_with(NO_NETCDF4));
    }
    let container = build(stack)?.open(&path, OpenMode::Update, &Solo::shared())?;
    for dtype in types(version) {
        same(&*container, &format!("fixed_{}", dtype.trim_start_matches('<')), dtype, &[3, 4])?;
    }
    for (name, dtype) in [("r1", "i1"), ("r2", "<f8"), ("r3", "<i2")] {
        same(&*container, name, dtype, &[5, 3])?;
        let listed = container.attributes(name)?;
        if listed != ["units"] || container.array(name)?.spec()?.fill_value.is_none() {
            return Err(format!("{name} has the attributes {listed:?}").into());
        }
    }
    let numbers = container.attribute("", "numbers")?;
    let expected: Vec<u8> = [1i32, 2, 3].iter().flat_map(|n| n.to_le_bytes()).collect();
    if (numbers.shape.as_slice(), &numbers.data) != ([3].as_slice(), &expected) {
        return Err(format!("their attribute is {numbers:?}").into());
    }
    let text = container.array("text")?;
    let mut letters = [0; 12];
    text.read(&Selection::all(&[3, 4])?, MemoryViewMut::packed(&mut letters), TransferMode::Independent)?;
    if &letters != b"abcdefghijkl" {
        return Err(format!("their text is {letters:?}").into());
    }
    let grows = container.array("r2")?;
    grows.resize(&[7, 3])?;
    write(&*grows, &Selection::dense(&[5, 0], &[2, 3])?, &values(&Datatype::F64, 15, 6))?;
    create(&*container, "g/ours", &ArraySpec::new("<i4".parse()?, &[2, 2]))?;
    create(&*container, "more", &growing("<i4", &[7])?)?;
    container.set_attribute("", "title", &Attribute::text("theirs and ours"))?;
    container.close()?;
    script("appended", &path, version)?;
    Ok(Completion::Completed)
}

fn validated(stack: &str, version: &str) -> Outcome {
    if Command::new("ncvalidator").arg("-h").output().is_err() {
        return Ok(Completion::ignored_with("ncvalidator is not on the path (apt: pnetcdf-bin)"));
    }
    let directory = tempfile::tempdir()?;
    for (name, full) in [("empty.nc", false), ("full.nc", true)] {
        let path = directory.path().join(name);
        match full {
            true => make(stack, &path, version)?,
            false => build(stack)?.open(&path, OpenMode::Create, &Solo::shared())?.close()?,
        }
        run(Command::new("ncvalidator").arg("-q").arg(&path))?;
    }
    Ok(Completion::Completed)
}

fn dumped(stack: &str, version: &str) -> Outcome {
    if Command::new("ncdump").output().is_err() {
        return Ok(Completion::ignored_with("ncdump is not on the path (apt: netcdf-bin)"));
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("ours.nc");
    make(stack, &path, version)?;
    let said = run(Command::new("ncdump").arg(&path))?;
    for wanted in
        ["short alone(grows_0)", "alone = 3, 10, 17, 24 ;", "filled:units = \"m s-1\"", "UNLIMITED ; // (4 currently)"]
    {
        if !said.contains(wanted) {
            return Err(format!("{wanted:?} is missing in:\n{said}").into());
        }
    }
    Ok(Completion::Completed)
}
