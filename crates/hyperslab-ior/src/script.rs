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
            .map_err(|error| Error::new(error.kind(), "read script", format!("line {}: {error}", number + 1)))?;
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tests_of(text: &str) -> Result<(Vec<Settings>, Vec<String>)> {
        let mut notes = Vec::new();
        parse(text, &Settings::default(), &mut notes).map(|tests| (tests, notes))
    }

    #[test]
    fn settings_persist_and_two_runs_repeat() {
        let text = "\
            whatever=1 before the start is ignored\n  ior  START\n# a remark\n\n\
            blockSize=2m, transfersize = 1m # why\n  RUN\nKEEPFILE=1\nrun\nrun\n\
            api=hdf5(align=1m,plane=on)\nrun\nIOR STOP\nnonsense\n";
        let (tests, notes) = tests_of(text).unwrap();
        assert_eq!(tests.len(), 4);
        assert!(tests.iter().all(|test| (test.block_size, test.transfer_size) == (2 << 20, 1 << 20)));
        assert_eq!(tests.iter().map(|test| test.keep_file).collect::<Vec<_>>(), [false, true, true, true]);
        assert_eq!((tests[2].api.as_str(), tests[3].api.as_str()), ("POSIX", "hdf5(align=1m,plane=on)"));
        assert_eq!((&tests[1], notes.len()), (&tests[2], 0));
    }

    #[test]
    fn settings_without_run_are_run_with_a_note() {
        let (tests, notes) = tests_of("IOR START\nsegmentCount=3\nIOR STOP").unwrap();
        assert_eq!((tests.len(), tests[0].segment_count, notes.len()), (1, 3, 1));
        assert_eq!(tests_of("IOR START\nIOR STOP").unwrap().0.len(), 1);
    }

    #[test]
    fn scripts_begin_with_the_settings_of_the_command_line() {
        let initial = Settings { segment_count: 9, ..Settings::default() };
        let tests = parse("IOR START\nRUN\nIOR STOP", &initial, &mut Vec::new()).unwrap();
        assert_eq!((tests.len(), tests[0].segment_count), (1, 9));
    }

    #[test]
    fn malformed_scripts_are_refused_with_their_line() {
        for (text, word) in [
            ("", "IOR START"),
            ("blockSize=1m\nRUN", "IOR START"),
            ("IOR START\nblockSize\nRUN", "line 2"),
            ("IOR START\n\nblockSize=\nRUN", "line 3"),
            ("IOR START\n=1m\nRUN", "NAME=VALUE"),
            ("IOR START\nblockSize=1m,,\nRUN", "NAME=VALUE"),
            ("IOR START\nnoSuchThing=1\nRUN", "noSuchThing"),
            ("IOR START\ndualMount=1\nRUN", "socket"),
        ] {
            let error = tests_of(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_script_makes_it_panic(lines in prop::collection::vec("[ -~]{0,40}|RUN|[a-zA-Z.]{1,12}=[0-9a-z,=#()-]{0,12}", 0..12)) {
            let _ = tests_of(&format!("IOR START\n{}", lines.join("\n")));
        }

        #[test]
        fn no_command_line_makes_it_panic(words in prop::collection::vec("-{0,2}[ -~é]{0,10}", 0..6)) {
            let _ = crate::flags::parse(&words, &mut Vec::new());
        }
    }
}
