//! What the connectors of all processes of a command have put on record: one JSON object per line.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// The version that is understood.
const VERSION: u64 = 1;
const KEY: &str = "hyperslab_connector_stats";

/// Transfers of one direction.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SideStatistics {
    pub calls: u64,
    pub bytes: u64,
    pub accelerated_calls: u64,
    pub accelerated_bytes: u64,
    pub seconds: f64,
}

/// Transfers that libhdf5 made, and why.
#[derive(Debug, Clone, Deserialize)]
pub struct Reason {
    /// `read` or `write`.
    pub what: String,
    pub why: String,
    pub calls: u64,
    pub bytes: u64,
}

/// Data that a program was told was written, and that is not in its file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Unwritten {
    pub file: String,
    /// Empty where the error belongs to no single one.
    pub dataset: String,
    pub why: String,
    /// Whether a log has it.
    pub in_log: bool,
}

/// One libhdf5 of one process.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Process {
    pub pid: u32,
    /// Milliseconds since 1970; 0 in records of earlier versions.
    pub started: u64,
    /// Tells the libraries of a process apart.
    pub slot: u64,
    /// Whether it came to a normal end, after which nothing was done.
    pub ended: bool,
    pub open_files: u64,
    pub program: String,
    pub library: String,
    pub mode: String,
    pub files: u64,
    pub datasets: u64,
    /// Datasets and files whose storage was not what the program asked for.
    pub overridden: u64,
    pub write: SideStatistics,
    pub read: SideStatistics,
    pub fell_back: Vec<Reason>,
    pub background_seconds: f64,
    pub waited_seconds: f64,
    pub hidden_seconds: f64,
    /// Time by which more threads made the program's calls shorter.
    pub helper_seconds: f64,
    pub drain_seconds: f64,
    pub peak_memory: u64,
    pub errors: u64,
    /// What layers say of files.
    pub remarks: Vec<String>,
    pub unwritten: Vec<Unwritten>,
}

impl Process {
    /// Whether both are records of the same library in the same process, one of them out of date.
    fn is_same(&self, other: &Self) -> bool {
        let who = |one: &Self| (one.pid, one.started, one.slot);
        self.started > 0 && who(self) == who(other)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Statistics {
    pub processes: Vec<Process>,
    /// Lines as they were written.
    pub(super) lines: Vec<(u32, String)>,
    /// Lines that this version does not understand.
    pub strange: usize,
}

impl Statistics {
    /// Reads what was gathered; a file that is not there holds nothing.
    pub fn read(path: &Path) -> Self {
        Self::parse(&fs::read_to_string(path).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut statistics = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let value: Option<serde_json::Value> = serde_json::from_str(line).ok();
            let known = value.filter(|value| value[KEY] == VERSION);
            match known.and_then(|value| serde_json::from_value::<Process>(value).ok()) {
                Some(process) => {
                    // The later of two is whole: the earlier was to be removed when the process was killed.
                    if let Some(at) = statistics.processes.iter().position(|known| known.is_same(&process)) {
                        statistics.processes.remove(at);
                    }
                    statistics.lines.push((process.pid, line.trim_end().to_owned()));
                    statistics.processes.push(process);
                }
                None => {
                    statistics.lines.push((0, line.to_owned()));
                    statistics.strange += 1;
                }
            }
        }
        statistics
    }
}

/// Where the user wants the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    Stderr,
    /// `%p` stands for the number of the process.
    File(PathBuf),
}

impl Sink {
    /// `stderr`, or a file, in the words of `HYPERSLAB_STATS`. Refuses a file that holds something else.
    pub fn parse(text: &str) -> Result<Self> {
        if text == "stderr" {
            return Ok(Self::Stderr);
        }
        let path = std::path::absolute(text).with_context(|| format!("{text:?} is no path"))?;
        match first_line(&path) {
            Ok(Some(line)) if !line.contains(KEY) => {
                bail!("{} holds something else than statistics\n  try: another file", path.display())
            }
            Ok(_) => Ok(Self::File(path)),
            Err(error) => bail!("cannot use {} for statistics: {error}", path.display()),
        }
    }

    /// Hands the lines over.
    pub fn take(&self, statistics: &Statistics) -> Result<()> {
        for (pid, line) in &statistics.lines {
            match self {
                Self::Stderr => drop(writeln!(std::io::stderr(), "{line}")),
                Self::File(pattern) => {
                    let path = PathBuf::from(pattern.to_string_lossy().replace("%p", &pid.to_string()));
                    let file = fs::OpenOptions::new().create(true).append(true).open(&path);
                    file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
                        .with_context(|| format!("cannot write statistics to {}", path.display()))?;
                }
            }
        }
        Ok(())
    }
}

/// The first line of a file; `None` if there is no such file or nothing in it.
fn first_line(path: &Path) -> std::io::Result<Option<String>> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    if file.metadata()?.is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    let mut line = Vec::new();
    BufReader::new(std::io::Read::take(file, 1 << 16)).read_until(b'\n', &mut line)?;
    Ok(Some(String::from_utf8_lossy(&line).into_owned()).filter(|line| !line.trim().is_empty()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_strange_ones_counted() {
        let text = r#"{"hyperslab_connector_stats":1,"pid":7,"program":"p","library":"2.0.0","mode":"codec","files":2,
"x":1}"#
            .replace('\n', "");
        let statistics = Statistics::parse(&format!("{text}\n{{\"hyperslab_connector_stats\":9}}\nnonsense\n"));
        assert_eq!((statistics.processes.len(), statistics.strange), (1, 2));
        assert_eq!((statistics.processes[0].pid, statistics.processes[0].files), (7, 2));
    }

    #[test]
    fn the_last_record_of_a_process_counts() {
        let line = |pid, started, files| {
            format!("{{\"hyperslab_connector_stats\":1,\"pid\":{pid},\"started\":{started},\"files\":{files}}}   \n")
        };
        // Numbers of processes are used again, and records of earlier versions have no time.
        let text = [line(7, 5, 1), "   \n".into(), line(7, 6, 1), line(7, 5, 2), line(8, 0, 1), line(8, 0, 1)].concat();
        let statistics = Statistics::parse(&text);
        assert_eq!(statistics.processes.iter().map(|process| process.files).collect::<Vec<_>>(), [1, 2, 1, 1]);
        assert_eq!(statistics.strange, 0);
    }

    #[test]
    fn files_of_others_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.h5");
        fs::write(&path, "something else").unwrap();
        assert!(Sink::parse(path.to_str().unwrap()).unwrap_err().to_string().contains("something else"));
        assert!(Sink::parse(folder.path().to_str().unwrap()).is_err());
        let sink = Sink::parse(folder.path().join("s-%p.jsonl").to_str().unwrap()).unwrap();
        sink.take(&Statistics::parse("{\"hyperslab_connector_stats\":1,\"pid\":7}")).unwrap();
        let written = folder.path().join("s-7.jsonl");
        assert!(fs::read_to_string(&written).unwrap().ends_with("}\n"));
        assert!(Sink::parse(written.to_str().unwrap()).is_ok());
    }
}
