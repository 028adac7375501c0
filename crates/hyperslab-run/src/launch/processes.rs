//! Ranks that a launcher such as mpirun starts as processes, anew for every run.

use super::job::JobFolder;
use super::{LaunchCommand, Ranks};
use crate::execute::{RankRun, RunContext};
use hyperslab_core::{Error, ErrorKind, Result, Stack};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Between two looks at the running job.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a job may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most that is quoted of what ranks printed.
const QUOTED: u64 = 2000;

/// Processes of this same program, started with the hidden command that runs one rank.
#[derive(Debug)]
pub struct Processes {
    command: LaunchCommand,
    stack: Stack,
    folder: PathBuf,
    logs: PathBuf,
    runs: AtomicUsize,
}

impl Processes {
    /// The command of this program that runs one rank of a job.
    pub const RANK_COMMAND: &str = "mpi-rank";

    /// Ranks by `command`, each building `stack` for itself. Runs are handed over in `folder`, which all machines of the
    /// job see; what ranks print is kept in `logs`, a folder that is made when it is needed.
    pub fn new(command: LaunchCommand, stack: &Stack, folder: &Path, logs: &Path) -> Self {
        Self { command, stack: stack.clone(), folder: folder.into(), logs: logs.into(), runs: AtomicUsize::new(0) }
    }

    fn start(&self, job: &JobFolder) -> Result<Child> {
        let into = |name: &str| {
            let path = job.path().join(name);
            File::create(&path).map_err(|e| Error::io("start ranks", e).target(path.display()))
        };
        let program = std::env::current_exe().map_err(|e| Error::io("start ranks", e))?;
        let arguments = [Self::RANK_COMMAND.as_ref(), job.path().as_os_str()];
        self.command
            .of(program.as_os_str(), &arguments)
            .stdin(Stdio::null())
            .stdout(into("launcher.stdout")?)
            .stderr(into("launcher.stderr")?)
            .spawn()
            .map_err(|e| {
                Error::io("start ranks", e).target(&self.command).hint(
                    "install MPI or load its module, name its launcher with --mpi-command, or use --launcher threads",
                )
            })
    }

    /// Keeps what the ranks and the launcher printed; returns where, if they printed anything.
    fn keep_output(&self, job: &JobFolder) -> Result<Option<PathBuf>> {
        let to = self.logs.join(format!("run-{}", self.runs.fetch_add(1, Relaxed) + 1));
        let mut kept = None;
        for path in printed(job.path()) {
            let failed = |e| Error::io("keep output of ranks", e).target(to.display());
            fs::create_dir_all(&to).map_err(failed)?;
            fs::copy(&path, to.join(path.file_name().unwrap_or_default())).map_err(failed)?;
            kept = Some(to.clone());
        }
        Ok(kept)
    }

    /// Why a job ended that left no result.
    fn why(&self, job: &JobFolder, status: ExitStatus) -> Error {
        job.failure().unwrap_or_else(|| {
            let quote = quoted(job.path());
            let said = if quote.is_empty() { "no rank said why".to_owned() } else { format!("it said\n{quote}") };
            Error::new(ErrorKind::Io, "run ranks", format!("the job ended with {status}; {said}")).target(&self.command)
        })
    }
}

impl Ranks for Processes {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn one_process(&self) -> bool {
        false
    }

    fn run(&self, context: &RunContext<'_>) -> Result<Vec<RankRun>> {
        let job = JobFolder::create(&self.folder, context, &self.stack)?;
        let mut child = self.start(&job)?;
        let ended = wait(&mut child, context, &job);
        let kept = self.keep_output(&job)?;
        let status = ended?;
        let mut ranks = match job.result() {
            Some(result) if status.success() => result?,
            _ => {
                let error = self.why(&job, status);
                return Err(match &kept {
                    Some(kept) => error.hint(format!("see what the ranks printed in {}", kept.display())),
                    None => error,
                });
            }
        };
        if let (Some(kept), Some(first)) = (kept, ranks.first_mut()) {
            first.remarks.push(format!("ranks or their launcher printed something: see {}", kept.display()));
        }
        Ok(ranks)
    }
}

/// Waits for the job, passing on its progress, and ends it when the user asks to.
fn wait(child: &mut Child, context: &RunContext<'_>, job: &JobFolder) -> Result<ExitStatus> {
    let failed = |e| Error::io("wait for ranks", e);
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            // A Ctrl-C reaches the launcher too, perhaps first.
            return if asked.is_some() || context.progress.stop_requested() {
                Err(Error::new(ErrorKind::Interrupted, "run workload", "stopped on request"))
            } else {
                Ok(status)
            };
        }
        job.follow(context.progress, context.workload.header.ranks);
        match asked {
            None if context.progress.stop_requested() => {
                // The launcher passes this on to its ranks. It may just have ended, which the next look shows.
                if let Some(process) = rustix::process::Pid::from_raw(child.id() as i32) {
                    let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
                }
                asked = Some(Instant::now());
            }
            Some(since) if since.elapsed() > PATIENCE => child.kill().map_err(failed)?,
            _ => {}
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The files of the job folder that hold what was printed, by name.
fn printed(folder: &Path) -> Vec<PathBuf> {
    let holds_output = |path: &PathBuf| {
        path.extension().is_some_and(|kind| kind == "stdout" || kind == "stderr")
            && path.metadata().is_ok_and(|file| file.len() > 0)
    };
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).filter(holds_output).collect();
    files.sort();
    files
}

/// The end of what was printed to standard error, of the ranks if they said anything.
fn quoted(folder: &Path) -> String {
    let files = printed(folder);
    let errors = || files.iter().filter(|path| path.extension().is_some_and(|kind| kind == "stderr"));
    let of_a_rank = |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rank-"));
    let Some(path) = errors().find(of_a_rank).or_else(|| errors().next()) else { return String::new() };
    let mut end = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(QUOTED)))?;
        file.take(QUOTED).read_to_end(&mut end)
    });
    match read {
        Ok(_) => String::from_utf8_lossy(&end).trim().replace(|c: char| c.is_control() && c != '\n', " "),
        Err(_) => String::new(),
    }
}
