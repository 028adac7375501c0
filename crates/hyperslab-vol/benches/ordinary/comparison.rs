//! A program on both sides: its times, and whether files and results are the same.

use crate::stage::{Side, Stage, Storage};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a comparison gives.
pub enum Comparison {
    Measured(Measured),
    /// A library that the program uses is not there.
    Skipped(String),
}

/// The runs of a side, in seconds, and the digest of what they read.
#[derive(Default)]
struct Runs {
    times: Vec<f64>,
    processors: Vec<f64>,
    results: Vec<String>,
}

/// Both sides: plain, connector.
pub struct Measured {
    runs: [Runs; 2],
    /// What is not the same.
    pub differs: Option<&'static str>,
}

impl Measured {
    /// The best plain time by the best under the connector.
    pub fn ratio(&self) -> f64 {
        self.by(|runs| least(&runs.times))
    }

    fn by(&self, figure: impl Fn(&Runs) -> f64) -> f64 {
        figure(&self.runs[0]) / figure(&self.runs[1])
    }
}

fn least(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [plain, connector] = &self.runs;
        write!(
            f,
            "{:6.1} ms {:7.1} ms {:6.2} {:7.2} {:5.2}",
            least(&plain.times) * 1e3,
            least(&connector.times) * 1e3,
            self.ratio(),
            self.by(|runs| median(&runs.times)),
            self.by(|runs| least(&runs.processors)),
        )?;
        self.differs.map_or(Ok(()), |what| write!(f, "  DIFFERENT {what}"))
    }
}

fn script(stage: &Stage, words: &[&str], path: &Path, side: Side) -> Result<Vec<String>, String> {
    let mut command = Command::new(stage.interpreter());
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/ordinary/programs.py")).args(words).arg(path);
    let output = stage.dress(&mut command, side).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        return Ok(text.lines().next_back().unwrap_or_default().split_whitespace().map(str::to_owned).collect());
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{words:?} {side:?}: {last}"))
}

/// The names of all programs.
pub fn names(stage: &Stage) -> Result<Vec<String>, String> {
    script(stage, &["list"], Path::new(""), Side::Plain)
}

/// Runs a program on both sides alternately; the side that goes first changes.
pub fn compare(stage: &Stage, name: &str, rounds: usize) -> Result<Comparison, String> {
    let path = |which: &str| stage.path(Storage::Memory, &format!("{name}-{which}.h5"));
    let paths = [path("plain"), path("connector")];
    let made = script(stage, &[name, "prepare"], &paths[0], Side::Plain);
    let compared = match &made {
        Err(why) if why.contains("No module named") => Ok(Comparison::Skipped(why.clone())),
        Err(why) => Err(why.clone()),
        Ok(words) => measure(stage, name, rounds, &paths, words == &["made"]),
    };
    paths.iter().for_each(|path| drop(std::fs::remove_file(path)));
    match compared {
        Err(why) if why.contains("No module named") => Ok(Comparison::Skipped(why)),
        compared => compared,
    }
}

fn measure(
    stage: &Stage,
    name: &str,
    rounds: usize,
    paths: &[PathBuf; 2],
    only_reads: bool,
) -> Result<Comparison, String> {
    let sides = [Side::Plain, Side::Connector("codec")];
    let mut runs = [Runs::default(), Runs::default()];
    for round in 0..rounds {
        for which in [round % 2, 1 - round % 2] {
            // Programs that only read have the same file on both sides.
            let path = if only_reads { &paths[0] } else { &paths[which] };
            let words = script(stage, &[name, "run"], path, sides[which])?;
            let number = |at: usize| words.get(at).and_then(|word: &String| word.parse::<f64>().ok());
            let (Some(time), Some(processors), Some(result)) = (number(0), number(1), words.get(2)) else {
                return Err(format!("it printed {words:?}"));
            };
            let runs = &mut runs[which];
            runs.times.push(time);
            runs.processors.push(processors);
            runs.results.push(result.clone());
        }
    }
    let mut differs = None;
    let [plain, connector] = &runs;
    if plain.results.iter().chain(&connector.results).any(|result| *result != plain.results[0]) {
        differs = Some("what it read");
    } else if !only_reads {
        // Both files by a plain process.
        let content = |path: &Path| script(stage, &[name, "content"], path, Side::Plain);
        differs = (content(&paths[0])? != content(&paths[1])?).then_some("files");
    }
    Ok(Comparison::Measured(Measured { runs, differs }))
}
