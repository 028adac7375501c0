//! A directory in which one program after the other runs, is recovered and judged.

use crate::acks::{self, Progress};
use crate::checker::{Checker, Program, Verdict};
use crate::report::Case;
use crate::subject::Subject;
use crate::tools::Tools;
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a program or a recovery may take before it counts as hung.
const LIMIT: Duration = Duration::from_secs(60);

/// The directory and the process that judges.
pub struct Workshop<'a> {
    tools: &'a Tools,
    root: PathBuf,
    checker: Checker,
}

/// What the preloaded library does.
pub enum Preload<'a> {
    Nothing,
    /// Records every change; perhaps with a fault.
    Record(Option<&'a str>),
    /// Ends the process before its n-th change.
    Kill(u64),
    /// Says that the machine was started anew.
    Restarted,
}

/// How `hyperslab recover` ended.
pub struct Recovered {
    pub killed: bool,
    /// What it said, if it failed.
    pub refused: Option<String>,
}

impl<'a> Workshop<'a> {
    /// Makes the directory below `scratch`.
    pub fn new(tools: &'a Tools, scratch: &Path, name: &str) -> Result<Self> {
        let root = scratch.join(name);
        std::fs::create_dir_all(&root)?;
        Ok(Self { tools, root, checker: Checker::start(tools)? })
    }

    /// The directory with everything that a program and the layers below it write.
    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// The file of the n-th program in it.
    pub fn container(&self, job: usize) -> PathBuf {
        self.data().join(format!("job{job}.h5"))
    }

    pub fn logs(&self) -> PathBuf {
        self.data().join("logs")
    }

    pub fn trace(&self) -> PathBuf {
        self.root.join("trace")
    }

    /// Acknowledgements, out of the way of faults; a trace has them too.
    pub fn acks(&self, job: usize) -> PathBuf {
        self.root.join(format!("acks{job}"))
    }

    /// Removes everything.
    pub fn clear(&self) -> Result<()> {
        let _ = std::fs::remove_dir_all(&self.root);
        std::fs::create_dir_all(self.logs())?;
        Ok(())
    }

    /// The command that runs a program.
    pub fn command(&self, job: usize, subject: Subject, program: Program, preload: &Preload<'_>) -> Command {
        let mut command = Command::new(&self.tools.python);
        command.args(["-m", "crashlab.execute"]).arg(self.container(job)).arg(self.acks(job));
        command.args([program.seed.to_string(), program.length.to_string()]).arg(program.flavour);
        subject.apply(&mut command, &self.tools.plugin, &self.logs());
        command.env("PYTHONPATH", &self.tools.modules).env("PYTHONDONTWRITEBYTECODE", "1");
        command.current_dir(&self.root).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        self.preload(&mut command, preload);
        command
    }

    fn preload(&self, command: &mut Command, preload: &Preload<'_>) {
        let data = self.data();
        match preload {
            Preload::Nothing => return,
            Preload::Restarted => {
                command.env("HYPERSLAB_RESTARTED", self.root.join("boot"));
            }
            Preload::Record(fault) => {
                let record = format!("path={}/,to={}", self.root.display(), self.trace().display());
                command.env("HYPERSLAB_RECORD", record);
                command.envs(fault.map(|fault| ("HYPERSLAB_FAULT", fault)));
            }
            Preload::Kill(nth) => {
                let fault = format!("path={},call=change,nth={nth},fault=KILL", data.display());
                command.env("HYPERSLAB_FAULT", fault);
            }
        }
        command.env("LD_PRELOAD", &self.tools.recorder);
    }

    /// Runs a program in an empty directory, and says how it ended and what it said.
    pub fn execute(&self, subject: Subject, program: Program, preload: &Preload<'_>) -> Result<(ExitStatus, String)> {
        self.clear()?;
        finish(&mut self.command(0, subject, program, preload))
    }

    /// How far a program came that ran outside a trace, and what failed in it.
    pub fn progress(&self, job: usize) -> (Progress, Option<String>) {
        let text = std::fs::read_to_string(self.acks(job)).unwrap_or_default();
        let mut progress = Progress::default();
        progress.see(&text);
        (progress, acks::failure(&text).map(str::to_owned))
    }

    /// Runs `hyperslab recover` on each directory that may have logs.
    pub fn recover(&self, subject: Subject, preload: &Preload<'_>) -> Result<Recovered> {
        let mut recovered = Recovered { killed: false, refused: None };
        let directories = if subject.log_directory { vec![self.logs(), self.data()] } else { vec![self.data()] };
        for directory in directories {
            let mut command = Command::new(&self.tools.hyperslab);
            command.arg("recover").arg(directory).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            self.preload(&mut command, preload);
            let (mut status, mut said) = finish(&mut command)?;
            // Logs of an image have other inodes than those of the program: an image is a copy, and says so.
            if status.code() == Some(1) && said.contains("a copy of others") {
                (status, said) = finish(command.arg("--force"))?;
            }
            match status.code() {
                Some(0) => {}
                None => recovered.killed = true,
                Some(code) => recovered.refused = Some(format!("exit {code}: {}", said.trim())),
            }
        }
        Ok(recovered)
    }

    /// Judges the file as it lies there.
    pub fn judge(&mut self, job: usize, subject: Subject, program: Program, progress: Progress) -> Result<Verdict> {
        let container = self.container(job);
        self.checker.judge(&container, program, progress, subject.promise)
    }

    /// Judges what lies there, recovers it, and judges it again.
    pub fn case(&mut self, subject: Subject, program: Program, progress: Progress, replay: String) -> Result<Case> {
        self.case_after(&Preload::Nothing, subject, program, progress, replay)
    }

    /// The same after a loss of power: the machine was started anew.
    pub fn case_after_restart(
        &mut self,
        subject: Subject,
        program: Program,
        progress: Progress,
        replay: String,
    ) -> Result<Case> {
        std::fs::write(self.root.join("boot"), "0aa4b6f0-93c8-4ea5-a4a1-1c5e3a1d7f10\n")?;
        self.case_after(&Preload::Restarted, subject, program, progress, replay)
    }

    fn case_after(
        &mut self,
        what: &Preload<'_>,
        subject: Subject,
        program: Program,
        progress: Progress,
        replay: String,
    ) -> Result<Case> {
        let before = self.judge(0, subject, program, progress)?;
        if !subject.recovers() || !self.has_more_than_the_file()? {
            return Ok(Case { replay, after: before.clone(), before, refused: None });
        }
        let refused = self.recover(subject, what)?.refused;
        let after = self.judge(0, subject, program, progress)?;
        Ok(Case { replay, before, after, refused })
    }

    /// Whether there is anything beside the file that could be recovered from.
    fn has_more_than_the_file(&self) -> Result<bool> {
        let others = std::fs::read_dir(self.data())?.filter_map(|entry| Some(entry.ok()?.path()));
        let logs = std::fs::read_dir(self.logs()).is_ok_and(|mut logs| logs.next().is_some());
        Ok(logs || others.into_iter().any(|path| path != self.container(0) && path != self.logs()))
    }
}

/// Waits for the end of a command, and returns what it said.
pub fn finish(command: &mut Command) -> Result<(ExitStatus, String)> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    wait(child, &name)
}

/// Waits for the end of a process.
pub fn wait(mut child: std::process::Child, name: &str) -> Result<(ExitStatus, String)> {
    let began = Instant::now();
    let readers: Vec<_> = [
        child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>),
        child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn std::io::Read + Send>),
    ]
    .into_iter()
    .flatten()
    .map(|mut pipe| {
        std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = pipe.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        })
    })
    .collect();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            ensure!(false, "{name} still ran after {} s", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_micros(300));
    };
    let said = readers.into_iter().filter_map(|reader| reader.join().ok()).collect();
    Ok((status, said))
}
