//! Nothing grows: memory, threads, descriptors, files in the folder of logs.

use std::time::Duration;

use libtest_mimic::{Completion, Trial};
use serde_json::Value;

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, long_trial, modes, trial};

const LIMIT: Duration = Duration::from_secs(900);
/// What memory may grow by: pieces of the allocator, not something for each cycle.
const MEMORY_KIB: i64 = 3 * 1024;
/// Modes of the ordinary run.
const USUAL: [&str; 3] = ["codec", "codec+async", "log"];

pub fn trials() -> Vec<Trial> {
    let some = USUAL.iter().map(|mode| trial(format!("1,000 cycles, {mode}"), move || cycles(mode, 1_000)));
    let many = modes::ALL.iter().map(|mode| long_trial(format!("10,000 cycles, {mode}"), move || cycles(mode, 10_000)));
    some.chain(many).collect()
}

fn cycles(mode: &str, count: u32) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let folder = program::folder()?;
    let mut command = program::python_command(&python);
    command.arg(program::scripts().join("cycles.py")).arg(folder.path()).arg(count.to_string());
    let ended = program::run(modes::apply(&mut command, mode, folder.path())?, LIMIT)?;
    let said = ended.expect_success(&format!("cycles.py under {mode}"))?;
    let found: Value = serde_json::from_str(&said).map_err(|error| format!("{error}: {said}"))?;
    let grown =
        |key: &str| found["after"][key].as_i64().unwrap_or(i64::MAX) - found["before"][key].as_i64().unwrap_or(0);
    if grown("kib") > MEMORY_KIB || grown("threads") > 0 || grown("descriptors") > 0 {
        return Err(format!("{count} cycles under {mode}: {found}").into());
    }
    let logs = folder.path().join("logs");
    let left = std::fs::read_dir(&logs).map_or(0, |entries| entries.count());
    if left > 1 {
        return Err(format!("{left} entries are left in the folder of logs").into());
    }
    Ok(Completion::Completed)
}
