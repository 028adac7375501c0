//! One run of the program, in a copy of its folder, and what it took.

use super::proposal::Proposal;
use super::recorded_program::RecordedProgram;
use super::work_folder::WorkFolder;
use crate::connector::{self, Environment, STATS, Statistics};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it is looked whether the program has ended.
const LOOK: Duration = Duration::from_micros(500);
/// The last lines of what the program said that are shown.
const LAST_LINES: usize = 8;

/// What runs a program.
pub struct Runner<'a> {
    /// Where.
    pub folder: &'a WorkFolder,
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// Whether the user wants to stop.
    pub progress: Arc<hyperslab_run::Progress>,
}

/// What a run took.
#[derive(Debug, Clone, Default)]
pub struct TimedRun {
    /// From start to end.
    pub seconds: f64,
    /// Of processors, by all its processes.
    pub processor: f64,
    /// In HDF5's write calls; 0 without the connector.
    pub writing: f64,
    /// In its read calls.
    pub reading: f64,
    /// Bytes of the files that it writes.
    pub stored: u64,
    /// Datasets and files whose storage was overridden.
    pub overridden: u64,
    /// Versions of the libraries that were seen.
    pub libraries: Vec<String>,
    /// Names of the programs.
    pub programs: Vec<String>,
    /// Whether one of the files is of netCDF; known of runs that are watched.
    pub netcdf: bool,
}

/// What became of a run.
pub struct RunOutcome {
    /// What it took.
    pub run: TimedRun,
    /// Files of the wanted names that it left.
    pub files: usize,
    /// Whether it is of use.
    pub fate: Result<(), Unusable>,
}

/// How a program is run.
pub enum Manner<'a> {
    /// As it is.
    Alone,
    /// Recorded into files of this folder.
    Recorded(&'a Path),
    /// Below the connector, which passes all calls on, to see their times.
    Watched(&'a RecordedProgram),
    /// As proposed.
    Proposed(&'a Proposal, &'a RecordedProgram, bool),
}

/// Why a run is of no use.
#[derive(Debug)]
pub enum Unusable {
    /// The program did not end well, in these words.
    Failed(String),
    /// It took longer than it may.
    TooLong,
}

impl Runner<'_> {
    /// Runs the program once. `outputs`: names of files whose size is wanted. `longest`: it is ended after this.
    pub fn run(
        &self,
        manner: &Manner<'_>,
        outputs: &std::collections::BTreeSet<&str>,
        longest: Option<f64>,
    ) -> Result<RunOutcome> {
        let copy = self.folder.copy()?;
        let private = self.folder.private()?;
        let (program, arguments) = self.command.split_first().context("there is no command to run")?;
        let mut command = Command::new(self.folder.program(program));
        command.args(arguments.iter().map(|word| self.folder.word(word))).current_dir(copy.path());
        let said = private.path().join("said");
        let stream = fs::File::create(&said)?;
        command.stdin(Stdio::null()).stdout(stream.try_clone()?).stderr(stream);
        let statistics = private.path().join("stats.jsonl");
        if let Some(environment) = self.environment(manner, private.path(), &statistics)? {
            environment.apply(&mut command);
        }
        let before = processor_seconds();
        let begin = Instant::now();
        let mut child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
        let ended = self.wait(&mut child, begin, longest)?;
        let seconds = begin.elapsed().as_secs_f64();
        let known = Statistics::read(&statistics);
        let files = copy.find(outputs);
        let mut run = TimedRun {
            processor: processor_seconds() - before,
            seconds,
            stored: files.iter().map(|(_, bytes)| bytes).sum(),
            ..TimedRun::default()
        };
        for process in &known.processes {
            run.writing += process.write.seconds;
            run.reading += process.read.seconds;
            run.overridden += process.overridden;
            run.libraries.push(process.library.clone());
            run.programs.push(process.program.clone());
        }
        let lost = known.processes.iter().any(|process| !process.unwritten.is_empty());
        let fate = match ended {
            None => Err(Unusable::TooLong),
            Some(status) if status.success() && !lost => Ok(()),
            Some(status) => Err(Unusable::Failed(words(status, lost, &said))),
        };
        if let Manner::Watched(recorded) = manner {
            run.netcdf = copy.find(&recorded.files()).iter().any(|(path, _)| is_netcdf(path));
        }
        Ok(RunOutcome { run, files: files.len(), fate })
    }

    fn environment(&self, manner: &Manner<'_>, private: &Path, statistics: &Path) -> Result<Option<Environment>> {
        if matches!(manner, Manner::Alone) {
            return Ok(None);
        }
        let mut environment = Environment::new(&connector::find_plugin()?)?;
        fs::write(statistics, "")?;
        environment.set(STATS, statistics);
        environment.set("HYPERSLAB_RUN", "1");
        let mode = match manner {
            Manner::Alone | Manner::Watched(_) => "off",
            Manner::Recorded(place) => {
                environment.set("HYPERSLAB_TRACE", place.join("%p-%n.jsonl"));
                "trace"
            }
            Manner::Proposed(proposal, recorded, each_dataset) => {
                let files: Vec<String> = recorded.files().into_iter().map(str::to_owned).collect();
                let overrides = proposal.overrides(&recorded.groups, &files, *each_dataset);
                if !overrides.is_empty() {
                    let path = private.join("overrides.json");
                    fs::write(&path, serde_json::to_vec(&overrides)?)?;
                    environment.set("HYPERSLAB_OVERRIDES", path);
                }
                proposal.modes.unwrap_or("off")
            }
        };
        environment.set("HYPERSLAB_MODE", mode);
        Ok(Some(environment))
    }

    /// Waits for the end; `None` if it took too long and was ended.
    fn wait(&self, child: &mut Child, begin: Instant, longest: Option<f64>) -> Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            let late = longest.is_some_and(|longest| begin.elapsed().as_secs_f64() > longest);
            if late || self.progress.stop_requested() {
                child.kill()?;
                child.wait()?;
                if self.progress.stop_requested() {
                    bail!("stopped; nothing was changed");
                }
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Seconds of processors that ended children took so far.
fn processor_seconds() -> f64 {
    // SAFETY: all zeros are a valid rusage.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a variable of this function.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut used) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(used.ru_utime) + seconds(used.ru_stime)
}

/// Whether netCDF made the file: it leaves its name in an attribute of the root, whose text is near the beginning.
fn is_netcdf(path: &Path) -> bool {
    const MARK: &[u8] = b"_NCProperties";
    const LOOKED_AT: u64 = 1 << 20;
    let mut begin = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut begin));
    read.is_ok() && begin.windows(MARK.len()).any(|window| window == MARK)
}

fn words(status: ExitStatus, lost: bool, said: &Path) -> String {
    let how = match (status.code(), status.signal()) {
        _ if lost => "not all data were written".to_owned(),
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, signal) => format!("signal {} ended it", signal.unwrap_or_default()),
    };
    let text = fs::read(said).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(LAST_LINES).collect();
    let lines: String = lines.iter().rev().map(|line| format!("\n    {}", crate::terminal::plain(line))).collect();
    format!("{how}{lines}")
}
