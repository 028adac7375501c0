//! Random programs with h5py, each with a model of what it has stored; a plain process holds the files against that.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, long_trial, modes, trial};

const LIMIT: Duration = Duration::from_secs(240);
/// How long a failing program is made shorter.
const SHRINKING: Duration = Duration::from_secs(90);
/// Programs for each mode in the ordinary run.
const SOME: u64 = 6;
/// Programs for each mode in the long run, and in one process of it.
const MANY: u64 = 112;
const BATCH: u64 = 28;

pub fn trials() -> Vec<Trial> {
    let first = std::env::var("HYPERSLAB_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_000u64);
    let mut trials = Vec::new();
    for (at, mode) in modes::ALL.into_iter().enumerate() {
        let from = first + at as u64 * 1_000;
        trials.push(trial(format!("random programs, {mode}"), move || batch(mode, from, SOME)));
        for from in (from + SOME..from + SOME + MANY).step_by(BATCH as usize) {
            let name = format!("random programs from {from}, {mode}");
            trials.push(long_trial(name, move || batch(mode, from, BATCH)));
        }
    }
    trials
}

/// Programs in one process, and the check in another.
fn batch(mode: &'static str, from: u64, count: u64) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let mut seed = from;
    while seed < from + count {
        let folder = program::folder()?;
        let seeds: Vec<u64> = (seed..from + count).collect();
        let Err(why) = session(&python, mode, folder.path(), &seeds) else { break };
        let culprit = culprit(&why).unwrap_or(seed);
        // Faults of libhdf5 itself show without the connector too.
        let alone = program::folder()?;
        match session(&python, modes::PLAIN, alone.path(), &[culprit]) {
            Err(known) => println!("seed {culprit} is wrong without the connector too: {known}"),
            Ok(()) => {
                let kept = folder.keep();
                let shorter = shrink(&python, mode, &kept.join(culprit.to_string()).join("operations.json"));
                return Err(format!("mode {mode}: {why}\nfiles: {}\n{shorter}", kept.display()).into());
            }
        }
        seed = culprit + 1;
    }
    Ok(Completion::Completed)
}

/// The program that a message is about.
fn culprit(why: &str) -> Option<u64> {
    let failed = why.lines().find_map(|line| line.strip_prefix("FAILED seed "));
    let died = || {
        let passed = why.lines().filter_map(|line| line.strip_prefix("passed seed ")).next_back()?;
        passed.trim().parse::<u64>().ok().map(|seed| seed + 1)
    };
    failed.and_then(|seed| seed.trim().parse().ok()).or_else(died)
}

/// Limits that are met sooner for every second program.
fn limits(seed: u64) -> &'static str {
    if seed.is_multiple_of(2) { "" } else { ";memory=1MiB;threads=2" }
}

fn session(python: &Path, mode: &str, folder: &Path, seeds: &[u64]) -> Result<(), String> {
    let words: Vec<String> = seeds.iter().map(u64::to_string).collect();
    for (what, mode) in [("run", mode), ("check", modes::PLAIN)] {
        let mut command = program::python_command(python);
        command.args(["-m", "random_program", what]).arg(folder).args(&words);
        let limits = limits(seeds.first().copied().unwrap_or_default());
        let ended = program::run(modes::apply_with(&mut command, mode, folder, limits)?, LIMIT)?;
        ended.expect_success(&format!("random programs, {what} under {mode}"))?;
    }
    Ok(())
}

/// Leaves operations out as long as something is wrong without them.
fn shrink(python: &Path, mode: &str, log: &Path) -> String {
    let Ok(text) = std::fs::read_to_string(log) else { return String::new() };
    let mut lines: Vec<&str> = text.lines().collect();
    let begin = Instant::now();
    if !fails(python, mode, &lines) {
        return "the operations alone do not show it".into();
    }
    let mut step = lines.len() / 2;
    while step > 0 && begin.elapsed() < SHRINKING {
        // The first operation creates the files.
        let mut at = 1;
        while at < lines.len() && begin.elapsed() < SHRINKING {
            let mut fewer = lines.clone();
            fewer.drain(at..(at + step).min(lines.len()));
            if fails(python, mode, &fewer) { lines = fewer } else { at += step }
        }
        step /= 2;
    }
    format!("enough operations to show it:\n{}", lines.join("\n"))
}

fn fails(python: &Path, mode: &str, lines: &[&str]) -> bool {
    let Ok(folder) = program::folder() else { return false };
    let list: PathBuf = folder.path().join("list.json");
    if std::fs::write(&list, lines.join("\n") + "\n").is_err() {
        return false;
    }
    let mut replay = program::python_command(python);
    replay.args(["-m", "random_program", "replay"]).arg(folder.path()).arg(&list);
    let mut verify = program::python_command(python);
    verify.args(["-m", "random_program", "verify"]).arg(folder.path());
    [(replay, mode), (verify, modes::PLAIN)].into_iter().any(|(mut command, mode)| {
        let applied = modes::apply(&mut command, mode, folder.path());
        applied.is_ok_and(|command| !program::run(command, LIMIT).is_ok_and(|ended| ended.status.success()))
    })
}
