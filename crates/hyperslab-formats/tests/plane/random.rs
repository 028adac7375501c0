//! Random arrays and random sequences of transfers, each by one of two ways: the plane or libhdf5.

#[path = "random/case.rs"]
mod case;
#[path = "random/world.rs"]
mod world;

use crate::common::{directory, seed};
use crate::python;
use case::Case;
use hyperslab_testkit::watchdog;
use libtest_mimic::{Completion, Failed, Trial};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use world::play;

const LIMIT: Duration = Duration::from_secs(3600);
/// Files that h5py compares in one process.
const BATCH: usize = 250;

pub fn trials() -> Vec<Trial> {
    let run = |cases: u64| move || watchdog::within(LIMIT, move || both_ways(cases));
    vec![
        Trial::ignorable_test("random arrays, 150 cases", run(150)),
        Trial::ignorable_test("random arrays, 5000 cases (minutes)", run(5000)).with_ignored_flag(true),
    ]
}

fn both_ways(cases: u64) -> Result<Completion, Failed> {
    let seed = seed()?;
    let folder = directory()?;
    let (mut left, mut by_plane) = (Vec::new(), 0);
    for number in 0..cases {
        let case = Case::new(seed, number)?;
        let path = folder.path().join(format!("{number}.h5"));
        let played = {
            let _files = python::files();
            play(&case, &path)
        };
        match played {
            Ok(expectation) => {
                by_plane += u64::from(expectation["by_plane"] == true);
                left.push(expectation);
            }
            Err(failure) => return Err(shortest(case, failure.text, folder.path()).into()),
        }
        if left.len() == BATCH {
            compare(folder.path(), &mut left)?;
        }
    }
    compare(folder.path(), &mut left)?;
    if by_plane < cases / 4 {
        return Err(format!("the plane did all of its work in {by_plane} of {cases} cases only").into());
    }
    if python::python().is_none() {
        eprintln!("random arrays: not compared by h5py, {}", python::MISSING);
    }
    Ok(Completion::Completed)
}

fn compare(folder: &Path, left: &mut Vec<Value>) -> Result<(), Failed> {
    let batch = std::mem::take(left);
    if python::python().is_some() {
        python::compare(folder, &batch)?;
    }
    for file in batch.iter().flat_map(|one| [one["file"].as_str(), one["expected"].as_str()]).flatten() {
        std::fs::remove_file(file)?;
    }
    Ok(())
}

/// Leaves out steps as long as the case still fails, and tells the story of what is left.
fn shortest(mut case: Case, mut text: String, folder: &Path) -> String {
    let _files = python::files();
    let mut number = 0;
    let mut try_it = |case: &Case| {
        number += 1;
        play(case, &folder.join(format!("shorter {number}.h5"))).err()
    };
    let mut size = case.steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < case.steps.len() {
            let mut shorter = case.clone();
            shorter.steps.drain(at..(at + size).min(case.steps.len()));
            match try_it(&shorter) {
                Some(failure) => {
                    text = failure.text;
                    case = shorter;
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    format!("with HYPERSLAB_SEED={}, case {}: {text}", case.seed, case.number)
}
