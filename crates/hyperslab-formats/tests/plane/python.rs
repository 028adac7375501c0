//! Scripts beside this file, run by a Python that has h5py.

use hyperslab_core::Datatype;
use libtest_mimic::Failed;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// libhdf5 opens files without close-on-exec. A process started while a trial has a file open would inherit it, and with
/// it the lock that keeps others out; so nobody starts a process while anybody has a file open.
static FILES: RwLock<()> = RwLock::new(());

/// Must be held while files are open.
pub fn files() -> RwLockReadGuard<'static, ()> {
    FILES.read().unwrap_or_else(PoisonError::into_inner)
}

/// Why trials with Python are skipped.
pub const MISSING: &str = "HYPERSLAB_PYTHON is not set: cargo xtask test sets it";

pub fn python() -> Option<PathBuf> {
    std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Runs a script and returns what it printed. Not while this trial has a file open.
pub fn script(name: &str, arguments: &[&Path]) -> Result<String, Failed> {
    let python = python().ok_or(MISSING)?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut command = Command::new(&python);
    command.arg(folder.join("plane").join(name)).args(arguments);
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", folder.join("interop"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = {
        let _alone = FILES.write().unwrap_or_else(PoisonError::into_inner);
        command.spawn().map_err(|error| format!("cannot run {}: {error}", python.display()))?
    };
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// An array of a file and what it should hold, for h5py to compare.
pub fn expectation(
    file: &Path,
    name: &str,
    dtype: &Datatype,
    shape: &[u64],
    bytes: &[u8],
    about: &str,
) -> Result<Value, Failed> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}.expected", name.replace('/', "_")));
    std::fs::write(&beside, bytes)?;
    let beside = beside.to_str().ok_or("the temporary directory has a strange name")?;
    Ok(json!({"file": file, "name": name, "dtype": dtype, "shape": shape, "expected": beside, "about": about}))
}

/// h5py compares all these, in one process.
pub fn compare(folder: &Path, expectations: &[Value]) -> Result<(), Failed> {
    let manifest = folder.join("manifest.json");
    std::fs::write(&manifest, Value::from(expectations).to_string())?;
    script("compare.py", &[&manifest]).map(|_| ())
}
