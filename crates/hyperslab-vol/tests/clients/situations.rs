//! Programs in situations that connectors get wrong: forks, exits, signals, views of pending writes.

use std::time::Duration;

use libtest_mimic::{Completion, Trial};
use serde_json::Value;

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, in_modes, modes};

const LIMIT: Duration = Duration::from_secs(120);

pub fn trials() -> Vec<Trial> {
    in_modes("situations", all)
}

fn all(mode: &str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let script = program::scripts().join("situations.py");
    let list = program::run(program::python_command(&python).arg(&script).arg("list"), LIMIT)?;
    let list: Value = serde_json::from_str(&list.expect_success("situations.py list")?).map_err(|e| e.to_string())?;
    let names = |key: &str| list[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    let (together, alone) = (names("together"), names("alone"));
    if together.len() < 5 || alone.len() < 3 {
        return Err("the list of situations is too short".into());
    }
    let folder = program::folder()?;
    let session = |what: &str, mode: &str, names: &[&str]| -> Result<(), String> {
        let mut command = program::python_command(&python);
        command.arg(&script).arg(what).arg(folder.path()).args(names);
        let ended = program::run(modes::apply(&mut command, mode, folder.path())?, LIMIT)?;
        let said = ended.output.clone();
        let what = format!("{what} under {mode} ({})", said.lines().next_back().unwrap_or("nothing begun"));
        ended.expect_success(&what).map(|_| ())
    };
    session("run", mode, &together)?;
    for name in &alone {
        session("run", mode, &[name])?;
    }
    session("check", modes::PLAIN, &[together.as_slice(), alone.as_slice()].concat())?;
    Ok(Completion::Completed)
}
