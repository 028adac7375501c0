//! `train --python`: what the calls of h5py, netCDF4 and zarr-python take beside the storage below them.

use anyhow::{Context, Result, bail};
use hyperslab_model::{PythonCosts, PythonLibrary};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

const SCRIPT: &str = include_str!("python_calls.py");

/// Runs a Python that measures its own libraries, in a directory.
pub fn measured(python: &Path, directory: &Path) -> Result<BTreeMap<PythonLibrary, PythonCosts>> {
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(directory)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("--python: cannot run {}", python.display()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last = hyperslab_report::terminal::plain(text.lines().last().unwrap_or("it says nothing"));
        bail!(
            "--python: {} could not measure its libraries: {last}\n  try: a Python with numpy and h5py",
            python.display()
        );
    }
    let found: BTreeMap<PythonLibrary, PythonCosts> =
        serde_json::from_slice(&output.stdout).context("--python: what it printed is no measurement")?;
    let sane = |each: &f64| each.is_finite() && *each >= 0.0;
    if !found.values().all(|c| [c.read_call, c.write_call, c.read_chunk, c.write_chunk].iter().all(sane)) {
        bail!("--python: what was measured makes no sense");
    }
    Ok(found)
}
