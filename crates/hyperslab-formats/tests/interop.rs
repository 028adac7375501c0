//! Files that we write are read by h5py, zarr-python, netCDF4 and h5dump, and the other way round.
//!
//! `HYPERSLAB_PYTHON` names a Python that has h5py, zarr and numpy; without it these trials are skipped.

#[path = "interop/cases.rs"]
mod cases;
#[path = "interop/netcdf.rs"]
mod netcdf;
#[cfg(feature = "hdf5")]
#[path = "interop/netcdf4.rs"]
mod netcdf4;
#[path = "interop/npy.rs"]
mod npy;

use cases::{Case, attributes, common, filtered};
use hyperslab_comm::Solo;
use hyperslab_core::{ArraySpec, Datatype, ErrorKind, Filter, OpenMode, Stack};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

/// libhdf5 opens files without close-on-exec. A process started while another trial has a file open would inherit it,
/// and with it the lock that keeps readers out; so nobody starts a process while anybody has a container open.
static NOBODY_ELSE: Mutex<()> = Mutex::new(());

/// A format with options, and the library on the other side.
#[derive(Clone, Copy)]
struct Side {
    stack: &'static str,
    script: &'static str,
    /// Zarr: version, and the codec that the stack asks for.
    version: u8,
    codec: Option<&'static str>,
    /// Zarr: shards; every array then has two dimensions and this chunk.
    shard: Option<[u64; 2]>,
}

const fn hdf5(stack: &'static str) -> Side {
    Side { stack, script: "with_h5py.py", version: 0, codec: None, shard: None }
}

const fn zarr(stack: &'static str, version: u8, codec: Option<&'static str>) -> Side {
    Side { stack, script: "with_zarr.py", version, codec, shard: None }
}

fn sides() -> Vec<Side> {
    let mut out = Vec::new();
    if cfg!(feature = "hdf5") {
        out.extend([hdf5("hdf5"), hdf5("hdf5(libver=latest)"), hdf5("hdf5(plane=on)")]);
    }
    if cfg!(feature = "zarr") {
        out.extend([
            zarr("zarr", 3, None),
            zarr("zarr(codec=gzip)", 3, Some("gzip")),
            zarr("zarr(codec=zstd)", 3, Some("zstd")),
            zarr("zarr(codec=blosc)", 3, Some("blosc")),
            zarr("zarr(version=2)", 2, None),
            zarr("zarr(version=2,codec=gzip)", 2, Some("gzip")),
            zarr("zarr(version=2,codec=zstd)", 2, Some("zstd")),
            zarr("zarr(version=2,codec=blosc)", 2, Some("blosc")),
            Side { shard: Some([8, 6]), ..zarr("zarr(chunk=4x3,shard=8x6,codec=zstd)", 3, Some("zstd")) },
        ]);
    }
    out
}

/// What passes between the two sides.
fn cases(side: &Side) -> Result<Vec<Case>, Failed> {
    let mut out = common()?;
    if side.script == "with_h5py.py" {
        out.push(filtered("filters/deflate", &[Filter::Deflate(4)]));
        out.push(filtered("filters/shuffle and deflate", &[Filter::Shuffle, Filter::Deflate(9)]));
        out.push(filtered("filters/fletcher32", &[Filter::Fletcher32]));
    } else if side.codec.is_none() {
        out.push(Case { codec: Some("gzip"), ..filtered("filters/gzip", &[Filter::Deflate(5)]) });
        out.push(Case { codec: Some("zstd"), ..filtered("filters/zstd", &[Filter::Zstd(3)]) });
        out.push(Case { codec: Some("blosc"), ..filtered("filters/blosc", &[Filter::Blosc(5)]) });
    }
    if let Some(codec) = side.codec {
        out.iter_mut().for_each(|case| case.codec = Some(codec));
    }
    if side.shard.is_some() {
        // zarr-python 3.1 cannot hash the fill value of raw bytes and structures, and so not read shards of them.
        let hashable = |dtype: &Datatype| !matches!(dtype, Datatype::Opaque(_) | Datatype::Compound(_));
        out.retain(|case| case.spec.shape.len() == 2 && hashable(&case.spec.dtype));
        out.iter_mut().for_each(|case| case.spec.chunk = Some([4, 3].as_slice().into()));
    }
    Ok(out)
}

fn manifest(side: &Side, cases: &[Case]) -> Value {
    let attributes: Vec<Value> = attributes()
        .iter()
        .map(|(object, name, kind, value, _)| json!({"object": object, "name": name, "kind": kind, "value": value}))
        .collect();
    json!({
        "arrays": cases.iter().map(Case::json).collect::<Vec<_>>(),
        "groups": ["empty/inner group"],
        "attributes": attributes,
        "version": side.version,
        "shard": side.shard,
        "libver": if side.stack.contains("latest") { "latest" } else { "earliest" },
    })
}

fn python() -> Option<PathBuf> {
    std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Runs a script beside this file; returns the arrays that the library cannot express, with its reason.
fn script(side: &Side, what: &str, manifest: &Value, container: &Path) -> Result<Vec<(String, String)>, Failed> {
    let python = python().ok_or("HYPERSLAB_PYTHON is not set")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
    let file = container.with_extension("manifest.json");
    std::fs::write(&file, manifest.to_string())?;
    let mut command = Command::new(&python);
    command.arg(folder.join(side.script)).arg(what).arg(&file).arg(container).env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = {
        let _alone = NOBODY_ELSE.lock().unwrap_or_else(PoisonError::into_inner);
        command.spawn().map_err(|error| format!("cannot run {}: {error}", python.display()))?
    };
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{} {what}: {}", side.script, String::from_utf8_lossy(&output.stderr)).into());
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let skipped = said.lines().filter_map(|line| {
        let mut parts = line.strip_prefix("skip\t")?.splitn(2, '\t');
        Some((parts.next()?.to_string(), parts.next().unwrap_or_default().to_string()))
    });
    Ok(skipped.collect())
}

fn skipped(names: &[String]) -> Completion {
    if names.is_empty() {
        return Completion::Completed;
    }
    eprintln!("not expressible, and refused: {}", names.join(", "));
    Completion::Completed
}

/// We write; the library reads.
fn ours_to_theirs(side: &Side) -> Result<Completion, Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("container");
    let format = hyperslab_formats::build(&side.stack.parse::<Stack>()?.format)?;
    let alone = NOBODY_ELSE.lock().unwrap_or_else(PoisonError::into_inner);
    let container = format.open(&path, OpenMode::Create, &Solo::shared())?;
    let mut kept = Vec::new();
    let mut refused = Vec::new();
    for case in cases(side)? {
        match case.write(&container) {
            Ok(()) => kept.push(case),
            Err(error) if error.kind() == ErrorKind::Unsupported => refused.push(case.name),
            Err(error) => return Err(format!("{}: {error:?}", case.name).into()),
        }
    }
    if kept.len() < 30.min(kept.len() + refused.len()) {
        return Err(format!("the format refuses too much: {refused:?}").into());
    }
    container.create_group("empty/inner group")?;
    for (object, name, _, _, value) in attributes() {
        container.set_attribute(object, name, &value)?;
    }
    container.close()?;
    drop(alone);
    script(side, "check", &manifest(side, &kept), &path)?;
    Ok(skipped(&refused))
}

/// The library writes; we read.
fn theirs_to_ours(side: &Side) -> Result<Completion, Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("container");
    let mut cases = cases(side)?;
    if side.script == "with_h5py.py" {
        let spec = ArraySpec::new(Datatype::F32, &[6, 4]);
        cases.push(Case { compact: true, ..Case::new("compact", spec) });
    }
    let not_written = script(side, "write", &manifest(side, &cases), &path)?;
    let absent: BTreeSet<&str> = not_written.iter().map(|(name, _)| name.as_str()).collect();
    let format = hyperslab_formats::build(&side.stack.parse::<Stack>()?.format)?;
    let _alone = NOBODY_ELSE.lock().unwrap_or_else(PoisonError::into_inner);
    let container = format.open(&path, OpenMode::Read, &Solo::shared())?;
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| !absent.contains(case.name.as_str())) {
        if let Err(error) = case.check(&container) {
            wrong.push(format!("{}: {error:?}", case.name));
        }
    }
    let listed = container.arrays()?;
    if listed.len() != cases.len() - absent.len() {
        wrong.push(format!("the arrays are {listed:?}"));
    }
    for (object, name, _, _, value) in attributes() {
        match container.attribute(object, name) {
            Ok(found) if found == value || (found.as_text().is_some() && found.as_text() == value.as_text()) => {}
            other => wrong.push(format!("attribute {name:?} of {object:?}: {other:?}, expected {value:?}")),
        }
    }
    container.close()?;
    if !wrong.is_empty() {
        return Err(wrong.join("\n").into());
    }
    Ok(skipped(&not_written.into_iter().map(|(name, reason)| format!("{name} ({reason})")).collect::<Vec<_>>()))
}

/// `h5dump` reads the headers and data of what we write.
fn h5dump() -> Result<Completion, Failed> {
    if Command::new("h5dump").arg("--version").output().is_err() {
        return Ok(Completion::ignored_with("h5dump is not on the path"));
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("container");
    let format = hyperslab_formats::build(&"hdf5".parse::<Stack>()?.format)?;
    let _alone = NOBODY_ELSE.lock().unwrap_or_else(PoisonError::into_inner);
    let container = format.open(&path, OpenMode::Create, &Solo::shared())?;
    let spec = ArraySpec::new(Datatype::I32, &[2, 3]);
    Case::new("numbers", spec).write(&container)?;
    filtered("filters/shuffle and deflate", &[Filter::Shuffle, Filter::Deflate(9)]).write(&container)?;
    container.close()?;
    let output = Command::new("h5dump").arg("-p").arg(&path).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    for wanted in ["(0,0): 3, 10, 17,", "(1,0): 24, 31, 38", "COMPRESSION DEFLATE { LEVEL 9 }"] {
        if !output.status.success() || !said.contains(wanted) {
            return Err(format!("{wanted:?} is missing in:\n{said}{}", String::from_utf8_lossy(&output.stderr)).into());
        }
    }
    Ok(Completion::Completed)
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for side in sides() {
        for (way, run) in [
            ("we write, they read", ours_to_theirs as fn(&Side) -> Result<Completion, Failed>),
            ("they write, we read", theirs_to_ours),
        ] {
            trials.push(Trial::ignorable_test(format!("{}::{way}", side.stack), move || match python() {
                None => Ok(Completion::ignored_with("HYPERSLAB_PYTHON is not set: cargo xtask test sets it")),
                Some(_) => run(&side),
            }));
        }
    }
    if cfg!(feature = "hdf5") {
        trials.push(Trial::ignorable_test("hdf5::h5dump reads it", h5dump));
    }
    trials.extend(netcdf::trials());
    #[cfg(feature = "hdf5")]
    trials.extend(netcdf4::trials());
    trials.extend(npy::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
