//! The directory that each benchmark gets beside the data, as h5bench lays it out: `<id>[-<job>]` with the settings,
//! `stdout` and the CSV file.

use super::case_template::CaseReport;
use anyhow::{Context, Result};
use hyperslab_h5bench::{Pattern, exerciser_output, metadata_output, output};
use hyperslab_run::CaseResult;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};

/// Variables that name the job of a batch system; the first that is set counts.
const JOB_VARIABLES: [&str; 4] = ["SLURM_JOB_ID", "COBALT_JOBID", "PBS_JOBID", "LSB_JOBID"];
/// The longest list of environment variables that is read.
const MAX_LIST: u64 = 1 << 20;

/// Makes a new directory in `data`, with a random name and the job's.
pub fn create(data: &Path) -> Result<PathBuf> {
    loop {
        let id = RandomState::new().build_hasher().finish() as u32;
        let path = data.join(format!("{id:08x}{}", job_suffix()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e).with_context(|| format!("create directory {}", path.display())),
        }
    }
}

fn job_suffix() -> String {
    let job = JOB_VARIABLES.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    // It becomes part of a file name.
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-[]".contains(c) { c } else { '_' };
    job.map_or(String::new(), |job| format!("-{}", job.chars().take(64).map(safe).collect::<String>()))
}

/// Writes what `report` asks for, about the last of `results`, into `directory`; returns what h5bench would print.
/// `file_bytes` is the size of the data file.
pub fn write(directory: &Path, report: &CaseReport, results: &[CaseResult], file_bytes: u64) -> Result<Option<String>> {
    let Some(result) = results.last() else { return Ok(None) };
    let printed = match report {
        CaseReport::None => return Ok(None),
        CaseReport::Pattern(pattern) => return write_pattern(directory, pattern, result),
        CaseReport::Metadata(tiles, csv_file) => {
            let [.., write, read] = results else { return Ok(None) };
            let row = metadata_output::row(tiles, write, read, file_bytes)?;
            let csv = format!("{}\n{row}\n", metadata_output::HEADER);
            if let Some(name) = csv_file {
                put(directory, name, &csv)?;
            }
            csv
        }
        CaseReport::Exerciser(sweeps, _) => {
            let Some(first) = results.len().checked_sub(2 * sweeps.len()) else { return Ok(None) };
            let pairs = results[first..].chunks_exact(2);
            let sizes: Vec<_> = sweeps.iter().zip(pairs).map(|(sweep, pair)| (sweep, &pair[0], &pair[1])).collect();
            exerciser_output::table(&sizes)?
        }
    };
    put(directory, "stdout", &printed)?;
    Ok(Some(printed))
}

fn write_pattern(directory: &Path, pattern: &Pattern, result: &CaseResult) -> Result<Option<String>> {
    let Some(block) = output::block(pattern, result) else { return Ok(None) };
    put(directory, "stdout", &block)?;
    if let Some(name) = &pattern.asked.csv_file {
        let environment = match &pattern.asked.environment_file {
            Some(list) => environment(Path::new(list))?,
            None => Vec::new(),
        };
        if let Some(csv) = output::csv(pattern, result, &environment) {
            put(directory, name, &csv)?;
        }
    }
    Ok(Some(block))
}

fn put(directory: &Path, name: &str, text: &str) -> Result<()> {
    let path = directory.join(name);
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}

/// Whether what the report needs can be read, so that this is known before anything runs.
pub fn check(report: &CaseReport) -> Result<()> {
    match report {
        CaseReport::Pattern(pattern) => match &pattern.asked.environment_file {
            Some(list) => environment(Path::new(list)).map(|_| ()),
            None => Ok(()),
        },
        CaseReport::Metadata(..) | CaseReport::Exerciser(..) | CaseReport::None => Ok(()),
    }
}

/// The variables that a file names, one in a line, and their values.
fn environment(list: &Path) -> Result<Vec<(String, String)>> {
    let size = fs::metadata(list).with_context(|| format!("ENV_METADATA_FILE {}", list.display()))?.len();
    anyhow::ensure!(size <= MAX_LIST, "ENV_METADATA_FILE {} is longer than {MAX_LIST} bytes", list.display());
    let text = fs::read_to_string(list).with_context(|| format!("ENV_METADATA_FILE {}", list.display()))?;
    let names = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(names
        .map(|name| {
            // A name that no variable can have would make the look-up panic.
            let legal = !name.contains(['=', '\0']);
            (name.to_owned(), if legal { std::env::var(name).unwrap_or_default() } else { String::new() })
        })
        .collect())
}
