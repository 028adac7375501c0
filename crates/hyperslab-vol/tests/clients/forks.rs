//! Children of a program that has used HDF5 are served as any process, and counted however they end.

use std::time::Duration;

use libtest_mimic::{Completion, Trial};
use serde_json::Value;

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, in_modes, modes};

const LIMIT: Duration = Duration::from_secs(120);
const CHILDREN: usize = 3;
/// What a child writes: two datasets of 2^18 numbers of four bytes.
const WRITTEN: u64 = 2 << 20;
const METHODS: [&str; 6] = ["fork", "forkserver", "spawn", "os", "killed", "threads"];
const CHECK: &str = "
import h5py, numpy as np, sys
for at in range(3):
    with h5py.File(f'{sys.argv[1]}/child{at}.h5') as file:
        assert all((file[name][...] == np.arange(1 << 18)).all() for name in ('packed', 'plain')), at
";

pub fn trials() -> Vec<Trial> {
    in_modes("forks", forks)
}

fn forks(mode: &str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    for method in METHODS {
        let folder = program::folder()?;
        let stats = folder.path().join("stats.jsonl");
        let mut command = program::python_command(&python);
        command.arg(program::scripts().join("forks.py")).arg(folder.path()).arg(method);
        let more = format!(";stats={}", stats.display());
        let ended = program::run(modes::apply_with(&mut command, mode, folder.path(), &more)?, LIMIT)?;
        ended.expect_success(&format!("forks.py {method} under {mode}"))?;
        let mut plain = program::python_command(&python);
        plain.args(["-c", CHECK]).arg(folder.path());
        program::run(modes::apply(&mut plain, modes::PLAIN, folder.path())?, LIMIT)?
            .expect_success(&format!("reading what children wrote by {method} under {mode}"))?;
        let text = std::fs::read_to_string(&stats).map_err(|error| format!("no statistics: {error}"))?;
        check(mode, method, &text)?;
    }
    Ok(Completion::Completed)
}

/// The parent and all children have a record, and the children have all that the mode promises.
fn check(mode: &str, method: &str, text: &str) -> Result<(), String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let records: Vec<Value> = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
    let wrong = |what: &str| Err(format!("{what} by {method} under {mode}: {text}"));
    if mode == "off" || mode == "trace" {
        return Ok(());
    }
    let (own, bytes) = (records.iter().map(|record| &record["pid"]), "accelerated_bytes");
    let pids = own.filter_map(Value::as_u64).collect::<std::collections::BTreeSet<_>>();
    if records.len() != CHILDREN + 1 || pids.len() != CHILDREN + 1 {
        return wrong("not one record for each process");
    }
    if records.iter().any(|record| record["write"][bytes].as_u64().unwrap_or(0) < WRITTEN) {
        return wrong("a process was not accelerated");
    }
    if method == "fork" && records.iter().any(|record| record["files"] != 2) {
        return wrong("files of one process are counted for another");
    }
    Ok(())
}
