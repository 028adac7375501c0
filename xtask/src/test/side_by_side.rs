//! Runs test programs side by side, and gives the output of each in one piece.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How often a running program is looked at.
const OFTEN: Duration = Duration::from_millis(20);

/// A program to be run.
pub struct Job {
    /// What it is called in reports.
    pub title: String,
    pub command: Command,
    /// Longer is taken for hanging.
    pub limit: Duration,
}

/// A program that ended.
pub struct Ended {
    pub title: String,
    pub time: Duration,
    /// What it printed, on both ways.
    pub output: String,
    /// What went wrong, if it did not end well.
    pub wrong: Option<String>,
}

/// Runs `jobs`, `at_once` of them at a time and in their order, and gives each that ended to `see`. Output is kept in `logs`.
pub fn run(jobs: Vec<Job>, at_once: usize, logs: &Path, mut see: impl FnMut(&Ended)) -> Result<()> {
    fs::create_dir_all(logs).with_context(|| format!("cannot create {}", logs.display()))?;
    let waiting = Mutex::new(jobs.into_iter().collect::<VecDeque<Job>>());
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            let (sender, waiting) = (sender.clone(), &waiting);
            scope.spawn(move || {
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(job) = next else { return };
                    if sender.send(one(job, logs)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for ended in receiver {
            see(&ended?);
        }
        Ok(())
    })
}

fn one(mut job: Job, logs: &Path) -> Result<Ended> {
    let begin = Instant::now();
    let log = log_file(logs, &job.title);
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    job.command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = job.command.spawn().with_context(|| format!("cannot start {}", job.title))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if begin.elapsed() > job.limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(OFTEN);
    };
    let wrong = match status {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("it ended with {status}")),
        None => Some(format!("it was still running after {} s, and was ended", job.limit.as_secs())),
    };
    let output = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    Ok(Ended { title: job.title, time: begin.elapsed(), output, wrong })
}

/// A name that a file system bears.
fn log_file(logs: &Path, title: &str) -> PathBuf {
    let plain: String = title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    logs.join(format!("{}.txt", plain.trim_matches('-')))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn job(title: &str, script: &str, limit: Duration) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job { title: title.into(), command, limit }
    }

    #[test]
    fn programs_run_beside_each_other_and_say_how_they_ended() {
        let folder = std::env::temp_dir().join(format!("hyperslab-side-by-side-{}", std::process::id()));
        let long = Duration::from_secs(60);
        // The first ends only if the second runs meanwhile.
        let met = folder.join("met");
        let wait = format!("while ! test -e {0}; do sleep 0.01; done; echo one; echo two >&2", met.display());
        let jobs = vec![
            job("waits", &wait, long),
            job("is met", &format!("touch {}; exit 3", met.display()), long),
            job("hangs (for ever)", "exec sleep 600", Duration::from_millis(100)),
        ];
        let mut ended = Vec::new();
        run(jobs, 2, &folder, |end| ended.push((end.title.clone(), end.output.clone(), end.wrong.clone()))).unwrap();
        ended.sort();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(ended.len(), 3);
        assert!(ended[0].2.as_ref().unwrap().contains("still running"), "{ended:?}");
        assert!(ended[1].2.as_ref().unwrap().contains('3'), "{ended:?}");
        assert_eq!((ended[2].1.as_str(), &ended[2].2), ("one\ntwo\n", &None));
    }
}
