//! Script files: `IOR START`, lines of `name=value`, `RUN`, `IOR STOP`.

use crate::settings::{Given, Settings};
use hyperslab_core::{Error, Result};

/// The most tests of a script, so that a file of nothing but `RUN` does no harm.
const MOST_TESTS: usize = 1 << 16;

/// The tests of a script, whose settings begin with `initial` and persist from one to the next. Lines before `IOR START`
/// and after `IOR STOP` are ignored. Each `RUN` is a test; settings that no `RUN` follows make one more, as in IOR.
pub fn parse(text: &str, initial: &Settings, notes: &mut Vec<String>) -> Result<Vec<Settings>> {
    let mut settings = initial.clone();
    let mut tests = Vec::new();
    let (mut started, mut changed) = (false, true);
    for (number, line) in text.lines().enumerate() {
        let words = line.trim();
        if !started {
            started = is(words, "ior start");
            continue;
        }
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        if is(words, "ior stop") {
            break;
        }
        if is(words, "run") {
            tests.push(settings.clone());
            if tests.len() > MOST_TESTS {
                return Err(Error::invalid("read script", format!("more than {MOST_TESTS} tests")));
            }
            changed = false;
            continue;
        }
        apply_line(&mut settings, words, notes)
            .map_err(|error| error.hint(format!("line {} of the script", number + 1)))?;
        changed = true;
    }
    if !started {
        return Err(Error::invalid("read script", "there is no line IOR START")
            .hint("put the settings between IOR START and IOR STOP"));
    }
    if changed {
        notes.push("script: the last settings have no RUN after them; they are run, as IOR does".into());
        tests.push(settings);
    }
    Ok(tests)
}

/// Applies settings such as `blockSize=4m, keepFile=1 # why`.
pub fn apply_line(settings: &mut Settings, line: &str, notes: &mut Vec<String>) -> Result<()> {
    let line = line.split_once('#').map_or(line, |(before, _)| before);
    for setting in outside_brackets(line) {
        let (name, value) = setting
            .split_once('=')
            .map(|(name, value)| (name.trim(), value.trim()))
            .filter(|(name, value)| !name.is_empty() && !value.is_empty())
            .ok_or_else(|| {
                Error::invalid("read options", format!("{:?} is no setting", setting.trim())).hint("write NAME=VALUE")
            })?;
        settings.apply(name, Given::Value(value), notes)?;
    }
    Ok(())
}

/// The parts between commas; those inside brackets, as stacks have them, separate nothing.
fn outside_brackets(line: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, letter) in line.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&line[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&line[from..]);
    parts
}

fn is(words: &str, wanted: &str) -> bool {
    words.split_whitespace().map(str::to_ascii_lowercase).eq(wanted.split(' ').map(str::to_owned))
}
