//! `hyperslab run --compare`: the command without and with the connector, in copies of the folder, and what it left there.

use super::content::Contents;
use crate::connector::{self, Environment, Launched, Statistics, say};
use crate::terminal::plain;
use crate::tune::work_folder::{FolderCopy, WorkFolder};
use anyhow::{Context, Result, bail};
use hyperslab_core::units::display_size;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Runs of each side, where they are short.
const MOST_RUNS: usize = 3;
/// No run is begun after this many seconds.
const LONG: f64 = 20.0;
/// Times that are told apart.
const NOTICEABLE: f64 = 1.05;
/// Lines of differences.
const MOST_LINES: usize = 10;
/// Lines of what the command said that are shown when it fails.
const LAST_LINES: usize = 10;
/// Contents differ.
const DIFFERENT: u8 = 1;

/// The two sides, in this order everywhere.
const SIDES: [&str; 2] = ["without", "with"];

/// The command to be compared.
pub struct Compared<'a> {
    pub command: &'a [OsString],
    pub environment: &'a Environment,
}

/// How a run of one side went.
struct SideRun {
    seconds: f64,
    statistics: Statistics,
}

/// Files of the command's folder that it made or changed, and what became of them.
#[derive(Default)]
struct Outcome {
    contents: Contents,
    /// Files of which all objects were compared.
    containers: usize,
    /// Others with the same bytes, and with other ones.
    same: usize,
    other: Vec<String>,
}

impl Compared<'_> {
    /// Runs both sides in turns, and says which is faster and whether the files are the same.
    pub fn run(&self) -> Result<ExitCode> {
        let folder = WorkFolder::new(&std::env::current_dir().context("there is no current folder")?, false)?;
        let begin = Instant::now();
        let mut seconds = [Vec::new(), Vec::new()];
        let (mut outcome, mut statistics) = (None, Statistics::default());
        for round in 0..MOST_RUNS {
            if round > 0 && begin.elapsed().as_secs_f64() > LONG {
                break;
            }
            let mut copies: [Option<FolderCopy>; 2] = [None, None];
            for side in [round % 2, 1 - round % 2] {
                let copy = folder.copy_as(SIDES[side])?;
                let run = match self.side(&folder, &copy, side, round == 0)? {
                    Ok(run) => run,
                    Err(code) => return Ok(code),
                };
                seconds[side].push(run.seconds);
                if side == 1 {
                    statistics = run.statistics;
                }
                copies[side] = Some(copy);
            }
            if let [Some(a), Some(b)] = &copies
                && round == 0
            {
                outcome = Some(Outcome::of(folder.source(), [a.path(), b.path()])?);
            }
        }
        let outcome = outcome.unwrap_or_default();
        say(&words(&seconds.map(least), &outcome));
        match connector::summary(&statistics) {
            Some(text) => say(&format!("hyperslab: {text}")),
            None => bail!("the command did not use HDF5 through the connector\n  try: hyperslab doctor PROGRAM"),
        }
        Ok(if outcome.contents.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
    }

    /// Runs one side. The error is the exit code of a command that failed, which was said.
    fn side(
        &self,
        folder: &WorkFolder,
        copy: &FolderCopy,
        side: usize,
        first: bool,
    ) -> Result<Result<SideRun, ExitCode>> {
        let (program, arguments) = self.command.split_first().context("there is no command to run")?;
        let mut command = Command::new(folder.program(program));
        command.args(arguments.iter().map(|word| folder.word(word))).current_dir(copy.path()).stdin(Stdio::null());
        let private = folder.private()?;
        let said = private.path().join("said");
        // The user sees what the command says once.
        if !(first && side == 1) {
            let stream = File::create(&said)?;
            command.stdout(stream.try_clone()?).stderr(stream);
        }
        let begin = Instant::now();
        let launched = match side {
            0 => connector::launch_alone(&mut command)?,
            _ => connector::launch_command(&mut command, self.environment.clone())?,
        };
        let seconds = begin.elapsed().as_secs_f64();
        let (ended, statistics) = match launched {
            Launched::Ended(ended, statistics) => (ended, statistics),
            Launched::NotStarted(code) => return Ok(Err(code)),
        };
        let lost = statistics.processes.iter().any(|process| !process.unwritten.is_empty());
        if ended.code() == 0 && !lost {
            return Ok(Ok(SideRun { seconds, statistics }));
        }
        say(&format!(
            "hyperslab: nothing is compared: {} the connector the command ended with exit code {}{}\n",
            SIDES[side],
            ended.code(),
            last_lines(&said)
        ));
        Ok(Err(connector::exit_code(ended, &statistics)))
    }
}

fn last_lines(said: &Path) -> String {
    let text = fs::read(said).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    last.iter().map(|line| format!("\n  {}", plain(line))).collect()
}

fn least(times: Vec<f64>) -> f64 {
    times.into_iter().fold(f64::INFINITY, f64::min)
}

impl Outcome {
    /// Compares what the runs left in two copies of a folder.
    fn of(source: &Path, copies: [&Path; 2]) -> Result<Self> {
        let mut outcome = Self::default();
        let mut names = BTreeSet::new();
        for copy in copies {
            names.extend(files_of(copy)?);
        }
        for name in names {
            let [a, b] = copies.map(|copy| copy.join(&name));
            let is_new = |path: &Path| stamp(path) != stamp(&source.join(&name));
            if is_new(&a) || is_new(&b) {
                outcome.file(&name.display().to_string(), [&a, &b])?;
            }
        }
        Ok(outcome)
    }

    fn file(&mut self, name: &str, [a, b]: [&Path; 2]) -> Result<()> {
        for (there, missing, side) in [(a, b, SIDES[0]), (b, a, SIDES[1])] {
            if there.is_file() && !missing.is_file() {
                self.contents.differences.push(format!("{}: is there only {side} the connector", plain(name)));
                return Ok(());
            }
        }
        // A file that one side left in pieces is recognised by the other.
        match hyperslab::detect_stack(a).or_else(|_| hyperslab::detect_stack(b)) {
            Ok(stack) if self.contents.compare(&stack, [a, b], name).is_ok() => self.containers += 1,
            // No container, or one that cannot be opened again.
            _ if same_bytes(a, b)? => self.same += 1,
            _ => self.other.push(plain(name)),
        }
        Ok(())
    }
}

/// All files below a folder, by their names within it.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            let about = fs::symlink_metadata(&path)?;
            if about.is_dir() {
                folders.push(path);
            } else if about.is_file() {
                files.push(path.strip_prefix(folder)?.to_owned());
            }
        }
    }
    Ok(files)
}

/// What tells whether a file was changed; `None` if there is none.
fn stamp(path: &Path) -> Option<(u64, std::time::SystemTime)> {
    let about = fs::metadata(path).ok()?;
    Some((about.len(), about.modified().ok()?))
}

fn same_bytes(a: &Path, b: &Path) -> Result<bool> {
    use std::io::{BufReader, Read};
    if fs::metadata(a)?.len() != fs::metadata(b)?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (BufReader::new(File::open(a)?), BufReader::new(File::open(b)?));
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    loop {
        of_a.clear();
        of_b.clear();
        a.by_ref().take(1 << 20).read_to_end(&mut of_a)?;
        b.by_ref().take(1 << 20).read_to_end(&mut of_b)?;
        if of_a != of_b {
            return Ok(false);
        }
        if of_a.is_empty() {
            return Ok(true);
        }
    }
}

/// `3.1 x faster, identical`, and the reasons.
fn words(&[without, with]: &[f64; 2], outcome: &Outcome) -> String {
    let contents = &outcome.contents;
    let ratio = without / with;
    let speed = match ratio {
        _ if ratio >= NOTICEABLE => format!("{ratio:.1} x faster"),
        _ if ratio <= 1.0 / NOTICEABLE => format!("{:.1} x slower", 1.0 / ratio),
        _ => "as fast".into(),
    };
    let compared = outcome.containers + outcome.same + outcome.other.len();
    let verdict = match () {
        () if !contents.differences.is_empty() => "THE FILES DIFFER",
        () if compared == 0 => "no files to compare",
        () if !contents.left_out.is_empty() || !outcome.other.is_empty() => "identical as far as compared",
        () => "identical",
    };
    let mut text = format!("hyperslab: {speed}, {verdict}\n");
    let _ = writeln!(text, "  without  {without:.2} s\n  with     {with:.2} s");
    if outcome.containers + outcome.same > 0 {
        let bytes = display_size(contents.bytes);
        let _ = writeln!(
            text,
            "  same     {} arrays of {} files, {bytes}; {} other files",
            contents.arrays, outcome.containers, outcome.same
        );
    }
    let lines = [
        ("differs", &contents.differences),
        ("not compared", &contents.left_out),
        ("other bytes, no arrays", &outcome.other),
    ];
    for (what, all) in lines {
        for line in all.iter().take(MOST_LINES) {
            let _ = writeln!(text, "  {what}: {line}");
        }
        if all.len() > MOST_LINES {
            let _ = writeln!(text, "  {what}: {} more", all.len() - MOST_LINES);
        }
    }
    if compared == 0 {
        text += "  the command made no files here: files elsewhere are not compared\n  \
                 try: a folder of its own, and names without a leading /\n";
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_say_no_more_than_was_compared() {
        let mut outcome = Outcome::default();
        assert!(words(&[3.1, 1.0], &outcome).starts_with("hyperslab: 3.1 x faster, no files to compare\n"));
        outcome.containers = 1;
        assert!(words(&[1.0, 1.02], &outcome).starts_with("hyperslab: as fast, identical\n"));
        outcome.other.push("log.txt".into());
        assert!(words(&[1.0, 2.0], &outcome).starts_with("hyperslab: 2.0 x slower, identical as far as compared\n"));
        outcome.contents.differences.push("a.h5: x: 1 of 2 elements differ, the first at 0".into());
        let text = words(&[1.0, 1.0], &outcome);
        assert!(
            text.starts_with("hyperslab: as fast, THE FILES DIFFER\n") && text.contains("  differs: a.h5"),
            "{text}"
        );
    }

    #[test]
    fn files_are_compared_by_content() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [source, a, b] = folders.each_ref().map(tempfile::TempDir::path);
        for (folder, text) in [(a, "one"), (b, "two")] {
            fs::write(folder.join("same.txt"), "same").unwrap();
            fs::write(folder.join("log.txt"), text).unwrap();
        }
        fs::write(a.join("lost.txt"), "").unwrap();
        let outcome = Outcome::of(source, [a, b]).unwrap();
        assert_eq!((outcome.same, outcome.other), (1, vec!["log.txt".to_owned()]));
        assert_eq!(outcome.contents.differences, ["lost.txt: is there only without the connector"]);
    }

    #[test]
    fn what_one_side_alone_can_read_differs() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [source, a, b] = folders.each_ref().map(tempfile::TempDir::path);
        for name in ["whole.h5", "cut.h5", "chunk.h5"] {
            let file = hyperslab::File::create(a.join(name), "hdf5(chunk=64,deflate=1)").unwrap();
            let array = file.create_array::<i32>("x", &[4096]).unwrap();
            array.write(.., &(0..4096).map(|i: i32| i.wrapping_mul(40_503)).collect::<Vec<_>>()).unwrap();
            file.close().unwrap();
        }
        let whole = fs::read(a.join("whole.h5")).unwrap();
        fs::write(b.join("whole.h5"), &whole).unwrap();
        fs::write(b.join("cut.h5"), &whole[..whole.len() / 3]).unwrap();
        // The streams of the chunks are what has no long runs of zeros: the last quarter is theirs.
        let mut torn = whole.clone();
        let (from, to) = (whole.len() * 3 / 4, whole.len() * 3 / 4 + 600);
        torn[from..to].fill(0xff);
        fs::write(b.join("chunk.h5"), torn).unwrap();
        for (side, other) in [([a, b], "without"), ([b, a], "with")] {
            let outcome = Outcome::of(source, side).unwrap();
            assert_eq!((outcome.containers, outcome.other.len()), (3, 0));
            let differences = &outcome.contents.differences;
            assert_eq!(differences.len(), 2, "{differences:?}");
            let once = format!("can be read only {other} the connector");
            assert!(differences.iter().all(|one| one.contains(&once)), "{differences:?}");
        }
    }
}
