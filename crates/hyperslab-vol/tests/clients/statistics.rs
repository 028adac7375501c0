//! The connector does what a mode promises, and does not only pass calls on: what it says of itself at the end.

use std::time::Duration;

use libtest_mimic::{Completion, Trial};
use serde_json::Value;

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, modes, trial};

const LIMIT: Duration = Duration::from_secs(60);
const PROGRAM: &str = "
import h5py, numpy as np, sys
data = np.arange(1 << 20, dtype='<i4').reshape(1024, 1024)
with h5py.File(sys.argv[1] + '/a.h5', 'w') as file:
    plain = file.create_dataset('plain', (1024, 1024), '<i4')
    packed = file.create_dataset('packed', (1024, 1024), '<i4', chunks=(64, 1024), compression='gzip', shuffle=True)
    for at in range(0, 1024, 64):
        plain[at:at + 64] = data[at:at + 64]
        packed[at:at + 64] = data[at:at + 64]
    file.create_dataset('text', data=['one', 'two'])
with h5py.File(sys.argv[1] + '/a.h5', 'r') as file:
    assert (file['plain'][...] == data).all() and (file['packed'][...] == data).all()
    assert (file['packed'][::7, 5:9] == data[::7, 5:9]).all()
    assert file['text'][1] == b'two'
";

pub fn trials() -> Vec<Trial> {
    let each = modes::ALL.iter().map(|mode| trial(format!("statistics, {mode}"), move || statistics(mode)));
    each.chain([trial("settings that make no sense", nonsense)]).collect()
}

fn statistics(mode: &str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let folder = program::folder()?;
    let stats = folder.path().join("stats.json");
    let mut command = program::python_command(&python);
    command.args(["-c", PROGRAM]).arg(folder.path());
    let more = format!(";stats={};memory=8MiB", stats.display());
    let ended = program::run(modes::apply_with(&mut command, mode, folder.path(), &more)?, LIMIT)?;
    ended.expect_success(&format!("a program under {mode}"))?;
    let text = std::fs::read_to_string(&stats).map_err(|error| format!("no statistics: {error}"))?;
    let found: Value = serde_json::from_str(text.trim()).map_err(|error| format!("{error}: {text}"))?;
    let number = |side: &str, key: &str| found[side][key].as_u64().unwrap_or(u64::MAX);
    let wrong = |what: &str| Err(format!("{what} under {mode}: {text}").into());
    // More of the connector's string may follow a mode.
    if found["mode"] != mode.split(';').next().unwrap_or(mode)
        || (mode != "off" && found["files"] != 2)
        || found["errors"] != 0
    {
        return wrong("another mode, other files, or errors");
    }
    let (all, fast) = (number("write", "bytes"), number("write", "accelerated_bytes"));
    let accelerates = !["off", "trace", "safe"].contains(&mode);
    if accelerates && (fast < 8 << 20 || fast > all) {
        return wrong("not all numbers were accelerated");
    }
    if accelerates && number("read", "accelerated_bytes") < 8 << 20 {
        return wrong("not all numbers were read by the connector");
    }
    if !accelerates && fast != 0 {
        return wrong("something was accelerated");
    }
    // The text has no equal type in memory and file.
    let fell_back = found["fell_back"].as_array().map_or(0, Vec::len);
    if accelerates && fell_back == 0 {
        return wrong("nothing fell back");
    }
    if found["peak_memory"].as_u64().unwrap_or(u64::MAX) > 8 << 20 {
        return wrong("more memory than was allowed");
    }
    let chosen = |remark: &Value| remark.as_str().is_some_and(|remark| remark.contains("auto: "));
    if mode.contains("auto") && !found["remarks"].as_array().is_some_and(|remarks| remarks.iter().any(chosen)) {
        return wrong("nothing is said of what auto chose");
    }
    if mode.contains("trace") && !any_trace(folder.path()) {
        return wrong("no trace");
    }
    Ok(Completion::Completed)
}

fn any_trace(folder: &std::path::Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let traces = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("trace"));
    traces.filter_map(|entry| entry.metadata().ok()).any(|data| data.len() > 0)
}

/// Settings that cannot be understood are told, and the program runs as it would without.
fn nonsense() -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    for more in [";mode=fast", ";memory=none", ";threads=0", ";colour=red", ";mode=async+log", ";log_dir"] {
        let folder = program::folder()?;
        let mut command = program::python_command(&python);
        command.args(["-c", PROGRAM]).arg(folder.path());
        let ended = program::run(modes::apply_with(&mut command, "codec", folder.path(), more)?, LIMIT)?;
        if !ended.errors.contains("hyperslab") {
            return Err(format!("nothing was said of {more}: {}", ended.errors).into());
        }
        ended.expect_success(&format!("a program with {more}"))?;
    }
    Ok(Completion::Completed)
}
