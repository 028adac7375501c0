//! What a replayed workload expects to find is made before it runs, and removed afterwards.

use super::plan::Work;
use hyperslab_core::workload::{Unchecked, Workload};
use hyperslab_core::{Error, ErrorKind, Format, Result};
use hyperslab_run::{Case, run_case};
use std::path::PathBuf;

/// A workload whose inputs are there.
#[derive(Debug)]
pub struct Prepared {
    /// What to run.
    pub workload: Workload,
    /// Containers that were made for it.
    made: Vec<PathBuf>,
}

/// Makes the containers that `work` reads or changes and that are not there. `own` says which files an earlier case of the same
/// run made. Not measured.
pub fn prepare(work: &Work, case: &Case<'_>, own: impl Fn(&str) -> bool) -> Result<Prepared> {
    let mut header = work.workload.header.clone();
    if work.inputs.is_empty() {
        return Ok(Prepared { workload: work.workload.clone(), made: Vec::new() });
    }
    let (mut missing, mut made) = (Vec::new(), Vec::new());
    let recorded = header.recorded.is_some();
    for (number, file) in header.files.iter_mut().enumerate().filter(|(_, file)| !file.created && !file.per_rank) {
        let path = case.directory.join(&file.name);
        if !case.format.exists(&path)? {
            missing.push(number as u32);
            made.push(path);
            continue;
        }
        if file.update.is_some() && !case.overwrite && !own(&file.name) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                "replay",
                "it is there, and the workload would change it",
            )
            .target(path.display())
            .hint("choose another --directory to have a file made for the replay, or pass --overwrite"));
        }
        // A recording does not know by which rule data that were there before were made.
        if recorded {
            file.unchecked = file.unchecked.max(Some(Unchecked::Reads));
        }
    }
    let prepared = Prepared { workload: work.workload.with_header(header)?, made };
    if !missing.is_empty() {
        let inputs = hyperslab_kernels::inputs(&work.workload.header, &work.inputs, &missing)?;
        let outcome = run_case(&Case {
            workload: &inputs,
            ranks: case.ranks,
            ..Case::new(&inputs, case.format.clone(), case.directory, case.progress)
        });
        if let Some(error) = outcome.failure {
            return Err(error);
        }
    }
    Ok(prepared)
}

impl Prepared {
    /// Removes what was made; returns what could not be.
    pub fn remove(&self, format: &dyn Format) -> Vec<String> {
        let failed = |path: &PathBuf| match format.exists(path) {
            Ok(false) => None,
            _ => format.remove(path).err().map(|error| format!("an input could not be removed: {error}")),
        };
        self.made.iter().filter_map(failed).collect()
    }
}
