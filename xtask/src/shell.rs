//! Running other programs: quietly with a log, visibly, or for their output. A failure names the command, how it
//! ended, the last lines it printed and what to try.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

const LAST_LINES: usize = 20;
/// Between attempts to fetch something.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];

/// Where the program `name` is on the PATH.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Runs `command` with its output in `log`; on failure shows the end of it.
pub fn run_quietly(command: &mut Command, log: &Path, hint: &str) -> Result<()> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let status = command.status().with_context(|| cannot_start(command, hint))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    bail!("{}\n  all of it: {}", failure(command, status, &text, hint), log.display())
}

/// The same for a command that fetches something: it is tried again when it fails, since connections break.
pub fn fetch_quietly(command: &mut Command, log: &Path, hint: &str) -> Result<()> {
    for pause in PAUSES {
        match run_quietly(command, log, hint) {
            Ok(()) => return Ok(()),
            Err(_) => std::thread::sleep(pause),
        }
    }
    run_quietly(command, log, hint)
}

/// Runs `command` on this terminal.
pub fn run_visibly(command: &mut Command, hint: &str) -> Result<()> {
    println!("$ {}", display(command));
    let status = command.status().with_context(|| cannot_start(command, hint))?;
    if status.success() { Ok(()) } else { bail!("{}", failure(command, status, "", hint)) }
}

/// Runs `command` on this terminal and shows each line of its output and of its errors to `look` as well, in their order.
pub fn run_watched(command: &mut Command, hint: &str, mut look: impl FnMut(&str)) -> Result<()> {
    println!("$ {}", display(command));
    // One pipe for both: what a program says of itself on one belongs to what follows on the other.
    let (reader, writer) = std::io::pipe()?;
    let spawned = command.stdout(writer.try_clone()?).stderr(writer).spawn();
    let mut child = spawned.with_context(|| cannot_start(command, hint))?;
    // The command still has its ends of the pipe; as long as they are open, nobody sees the end.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut output = BufReader::new(reader);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        look(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    let status = child.wait()?;
    if status.success() { Ok(()) } else { bail!("{}", failure(command, status, "", hint)) }
}

/// What `command` prints on its standard output.
pub fn output(command: &mut Command, hint: &str) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command, hint))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    bail!("{}", failure(command, output.status, &String::from_utf8_lossy(&output.stderr), hint))
}

/// The command as one would type it, with the variables set for it.
pub fn display(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| Some(format!("{}={}", quote(name), quote(value?))));
    // Cargo names itself by the full path of the toolchain; nobody types that.
    let program = Path::new(command.get_program());
    let program = program.file_name().filter(|name| *name == "cargo").unwrap_or(program.as_os_str());
    let words = std::iter::once(program).chain(command.get_args()).map(quote);
    set.chain(words).collect::<Vec<_>>().join(" ")
}

fn quote(word: &std::ffi::OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn cannot_start(command: &Command, hint: &str) -> String {
    format!("cannot start a program\n  command: {}\n  try: {}", display(command), indent(hint))
}

fn failure(command: &Command, status: ExitStatus, text: &str, hint: &str) -> String {
    let mut message = format!("a command failed\n  command: {}\n  ended with: {status}", display(command));
    let lines: Vec<&str> = text.lines().collect();
    if !lines.is_empty() {
        message.push_str("\n  its last lines:");
        for line in &lines[lines.len().saturating_sub(LAST_LINES)..] {
            message.push_str("\n    | ");
            message.push_str(line);
        }
    }
    message.push_str("\n  try: ");
    message.push_str(&indent(hint));
    message
}

fn indent(hint: &str) -> String {
    hint.replace('\n', "\n       ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_failure_says_what_how_and_what_to_try() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'no such package' >&2; exit 7"]).env("GREETING", "a b");
        let message = output(&mut command, "another one").unwrap_err().to_string();
        for part in ["GREETING='a b' sh -c", "exit status: 7", "| no such package", "try: another one"] {
            assert!(message.contains(part), "{part:?} is missing in: {message}");
        }
    }

    #[test]
    fn what_is_fetched_is_tried_again() {
        let folder = std::env::temp_dir().join(format!("hyperslab-fetch-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "test -e again || { touch again; exit 1; }"]).current_dir(&folder);
        let fetched = fetch_quietly(&mut command, &folder.join("log"), "");
        fs::remove_dir_all(&folder).unwrap();
        fetched.unwrap();
    }

    #[test]
    fn only_the_last_lines_are_shown() {
        let mut command = Command::new("sh");
        command.args(["-c", "seq 1000 >&2; false"]);
        let message = output(&mut command, "").unwrap_err().to_string();
        assert!(message.contains("| 981\n"), "{message}");
        assert!(!message.contains("| 980\n"), "{message}");
    }

    #[test]
    fn watched_lines_are_seen() {
        let mut seen = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three"]);
        run_watched(&mut command, "", |line| seen.push(line.to_owned())).unwrap();
        assert_eq!(seen, ["one", "two", "three"]);
    }

    #[test]
    fn programs_are_found() {
        assert!(find_program("sh").is_some());
        assert!(find_program("surely-no-such-program").is_none());
    }
}
