//! Workloads from files, recorded or written by hand, as benchmarks.

use super::case_template::{CaseTemplate, Effect, TemplateWork};
use crate::mpi_job::InsideJob;
use crate::options::{BenchOptions, Compute, Transfers};
use anyhow::{Context, Result, bail, ensure};
use hyperslab_core::TransferMode;
use hyperslab_core::dims::byte_count;
use hyperslab_core::units::display_size;
use hyperslab_core::workload::{Header, JsonLines, Update, Workload, WorkloadSummary};
use hyperslab_h5bench::Workflow;
use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where data files lie unless the user says otherwise.
const DIRECTORY: &str = "hyperslab-replay";
/// The most ranks that are walked through beforehand.
const MAX_RANKS: usize = 1 << 16;

/// A workload file, read and checked.
pub struct Replay {
    /// The file's name, for people.
    label: String,
    workload: Workload,
    summary: WorkloadSummary,
}

impl Replay {
    /// Every file of the command line. They have to agree on the number of ranks.
    pub fn all(options: &BenchOptions, inside: Option<&InsideJob>, notes: &mut Vec<String>) -> Result<Vec<Self>> {
        let mut replays: Vec<Self> = Vec::new();
        for path in &options.workload {
            let workload = read(path, options.dry_run, notes).with_context(|| path.display().to_string())?;
            let ranks = workload.header.ranks;
            let asked = options.ranks.map(|n| n as usize).filter(|n| *n != ranks);
            let refused = match (asked, inside.map(|job| job.comm().size()).filter(|size| *size != ranks)) {
                (Some(n), _) => Some(format!("--ranks {n}")),
                (None, Some(size)) => Some(format!("the MPI job that this program runs in has {size}")),
                (None, None) => None,
            };
            if let Some(said) = refused {
                bail!("{}: its steps are those of {ranks} ranks and no other number; {said}", path.display());
            }
            if let Some(first) = replays.first().filter(|first| first.workload.header.ranks != ranks) {
                bail!(
                    "{} has {ranks} ranks, {} has {}: run them apart",
                    path.display(),
                    first.label,
                    first.workload.header.ranks
                );
            }
            replays.push(Self::of(path, workload, options, notes).with_context(|| path.display().to_string())?);
        }
        Ok(replays)
    }

    fn of(path: &Path, workload: Workload, options: &BenchOptions, notes: &mut Vec<String>) -> Result<Self> {
        // As it is in the file, so that a file that was cut off is noticed.
        let mut summary = match options.transfers {
            None | Some(Transfers::Independent) => workload.validate()?,
            Some(together) => workload
                .with_transfers(TransferMode::Collective)
                .validate()
                .with_context(|| format!("--transfers {}", together.word()))?,
        };
        let workload = match options.compute {
            Some(Compute::None) => {
                summary.compute = Duration::ZERO;
                workload.without_compute()
            }
            Some(Compute::Recorded) | None => workload,
        };
        if workload.header.recorded.as_ref().is_some_and(|recorded| !recorded.complete) {
            notes.push(format!(
                "{}: the recorded run did not come to its end; what it did until then is run",
                path.display()
            ));
        }
        let label = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut header = workload.header.clone();
        header.about = about(&header, &summary);
        for (file, unchecked) in header.files.iter_mut().zip(&summary.unchecked) {
            file.unchecked = *unchecked;
        }
        Ok(Self { label, workload: workload.with_header(header)?, summary })
    }

    /// The workflow that has no benchmarks but these.
    pub fn workflow(replays: &[Self]) -> Workflow {
        Workflow {
            directory: PathBuf::from(DIRECTORY),
            ranks: replays.first().map(|replay| replay.workload.header.ranks),
            launcher: None,
            striping: None,
            notes: Vec::new(),
            benchmarks: Vec::new(),
        }
    }

    /// The case before it meets a stack; `name` gives files their names on it.
    pub fn draft(&self, name: &dyn Fn(&str) -> String) -> Result<CaseTemplate> {
        let mut header = self.workload.header.clone();
        let mut names = HashSet::new();
        for file in &mut header.files {
            let mut new = name(&file.name);
            // Files that differ only in what the format replaces.
            while !names.insert(new.clone()) {
                new = name(&format!("{}-{}", names.len(), file.name));
            }
            file.name = new;
        }
        let any = |wanted: Option<Update>| header.files.iter().any(|file| file.update == wanted);
        let effect = if header.files.iter().any(|file| file.created) {
            Effect::Creates
        } else if any(Some(Update::Extend)) {
            Effect::Extends
        } else if any(Some(Update::Overwrite)) {
            Effect::Overwrites
        } else {
            Effect::Reads
        };
        let file = header.files.first().map(|file| file.name.clone()).unwrap_or_default();
        let mut room = self.summary.created_bytes;
        for input in &self.summary.inputs {
            let spec = &header.arrays[input.array as usize].spec;
            room = room.saturating_add(byte_count(&spec.shape, spec.dtype.size())?);
        }
        let work = TemplateWork {
            workload: self.workload.with_header(header)?,
            bytes: self.summary.bytes_written.saturating_add(self.summary.bytes_read),
            memory: self.summary.buffers,
            room,
            inputs: self.summary.inputs.clone(),
            chunks_are_advice: false,
        };
        Ok(CaseTemplate::plain(format!("replay {}", self.label), file, effect, Ok(work)))
    }
}

/// The workload in a file, or in the parts that a run left which did not come to its end.
fn read(path: &Path, dry_run: bool, notes: &mut Vec<String>) -> Result<Workload> {
    let there = path.exists();
    match hyperslab_layers::trace_parts(path) {
        Some(_) if there => notes.push(format!(
            "{}: beside it lie parts of a later run that did not come to its end; move it away to run those",
            path.display()
        )),
        Some(_) if dry_run => {
            bail!("there are only the parts of a run that did not come to its end; leave --dry-run out")
        }
        Some(parts) => {
            parts.merge()?;
            notes
                .push(format!("{}: put together from the parts of a run that did not come to its end", path.display()));
        }
        None => {}
    }
    // A pipe cannot be read once for every rank.
    ensure!(path.metadata()?.is_file(), "it is no plain file");
    let path = path.to_owned();
    let open = move || -> std::io::Result<Box<dyn std::io::BufRead + Send>> {
        Ok(Box::new(BufReader::with_capacity(1 << 16, File::open(&path)?)))
    };
    let workload = JsonLines::workload(Box::new(open))?;
    let ranks = workload.header.ranks;
    ensure!(ranks <= MAX_RANKS, "{ranks} ranks; at most {MAX_RANKS} are possible");
    ensure!(!workload.header.files.is_empty(), "it uses no files");
    Ok(workload)
}

fn about(header: &Header, summary: &WorkloadSummary) -> String {
    let said = if header.about.is_empty() { &header.name } else { &header.about };
    let bytes = [(summary.bytes_written, "written"), (summary.bytes_read, "read")];
    let bytes: String = bytes
        .iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, what)| format!(", {} {what}", display_size(*bytes)))
        .collect();
    let took =
        summary.took.map_or(String::new(), |took| format!("; when recorded, calls took {:.3} s", took.as_secs_f64()));
    let compute = summary.compute.as_secs_f64();
    let compute = if compute > 0.0 { format!("; computing {compute:.3} s") } else { String::new() };
    format!("{said}: {} steps{bytes}{took}{compute}", summary.steps)
}
