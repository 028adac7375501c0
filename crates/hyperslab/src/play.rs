//! Running workloads.

use hyperslab_core::Result;
use hyperslab_core::workload::{JsonLines, Workload};
use hyperslab_run::{Case, Progress, Verified, open_stack, run_case};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

/// What a run of a workload took, as [`play`] returns it.
///
/// ```
/// fn words(played: &hyperslab::Played) -> String {
///     let right = if played.verified { "every element was right" } else { "nothing was compared" };
///     format!("{:.3} s, {right}; {}", played.wall.as_secs_f64(), played.notes.join("; "))
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// Wall time of the slowest rank, emulated computing included.
    pub wall: Duration,
    /// Whether every element that was read or written was compared with what it had to be.
    pub verified: bool,
    /// What the user should know of the run.
    pub notes: Vec<String>,
}

/// Reads a workload from a file of JSON lines, such as the layer `trace` records.
pub fn load_workload(path: impl AsRef<Path>) -> Result<Workload> {
    let path = path.as_ref();
    let file = path.to_path_buf();
    JsonLines::workload(Box::new(move || Ok(Box::new(BufReader::new(File::open(&file)?)))))
        .map_err(|error| error.target(path.display()))
}

/// Runs a workload once on a stack, with files in `folder` and thread ranks, and verifies its data where the format keeps them.
/// Existing files are not replaced.
///
/// ```
/// # fn main() -> hyperslab::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let recording = folder.path().join("run.jsonl");
/// let stack = format!("trace(file={})/posix", recording.display());
/// let file = hyperslab::File::create(folder.path().join("run.posix"), &stack)?;
/// file.create_array::<f32>("x", &[1000])?.write(.., &[1.0_f32; 1000])?;
/// file.close()?;
///
/// let workload = hyperslab::load_workload(&recording)?;
/// std::fs::create_dir(folder.path().join("again")).unwrap();
/// let played = hyperslab::play(&workload, "async/posix", folder.path().join("again"))?;
/// assert!(played.verified);
/// # Ok(())
/// # }
/// ```
pub fn play(workload: &Workload, stack: &str, folder: impl AsRef<Path>) -> Result<Played> {
    let progress = Progress::default();
    let mut case = Case::new(workload, open_stack(&stack.parse()?)?, folder.as_ref(), &progress);
    case.verify = true;
    let outcome = run_case(&case);
    if let Some(failure) = outcome.failure {
        return Err(failure);
    }
    let wall =
        outcome.repetitions.first().map(|repetition| Duration::from_secs_f64(repetition.slowest(|rank| rank.wall)));
    Ok(Played { wall: wall.unwrap_or_default(), verified: outcome.verified == Verified::Yes, notes: outcome.warnings })
}
