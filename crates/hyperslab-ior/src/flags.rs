//! The command line: flags that can be joined, with values that can be attached.

use crate::directives::{self, Directive, Takes};
use crate::script;
use crate::settings::{Given, Settings};
use hyperslab_core::{Error, Result};

/// What a command line asks for.
#[derive(Debug)]
pub enum Asked {
    /// The list of options.
    Help,
    /// Tests with these settings; those of a script begin with them.
    Tests(Box<Settings>),
}

/// Reads the arguments after the name of the program, in their order. Notes are for people.
pub fn parse(arguments: &[String], notes: &mut Vec<String>) -> Result<Asked> {
    let mut settings = Settings::default();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        if argument == "-h" || argument == "--help" {
            return Ok(Asked::Help);
        }
        let (flags, attached) = match argument.split_once('=') {
            Some((flags, value)) => (flags, Some(value)),
            None => (argument, None),
        };
        if let Some(name) = flags.strip_prefix("--") {
            let directive = long(name)?;
            take(&mut settings, directive, name, attached, &mut rest, notes)?;
        } else if let Some(letters) = flags.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            joined(&mut settings, letters, argument, attached, &mut rest, notes)?;
        } else {
            return Err(Error::invalid("read options", format!("{argument:?} is no option"))
                .hint("values follow their flag: -o FILE, -b 4m"));
        }
    }
    Ok(Asked::Tests(Box::new(settings)))
}

/// Flags behind one dash: any number without a value, then at most one with a value.
fn joined<'a>(
    settings: &mut Settings,
    letters: &'a str,
    argument: &'a str,
    attached: Option<&'a str>,
    rest: &mut impl Iterator<Item = &'a str>,
    notes: &mut Vec<String>,
) -> Result<()> {
    for (at, letter) in letters.char_indices() {
        if letter == 'O' {
            // What follows may hold any number of equals signs.
            let inside = &argument[1 + at + 1..];
            let inside = inside.strip_prefix('=').unwrap_or(inside);
            let line = if inside.is_empty() { rest.next() } else { Some(inside) };
            let line = line.ok_or_else(|| needs_value("-O"))?;
            return script::apply_line(settings, line, notes);
        }
        let directive = by_letter(letter).ok_or_else(|| directives::unknown(&format!("-{letter}")))?;
        let name = format!("-{letter}");
        let after = &letters[at + letter.len_utf8()..];
        match directive.takes {
            // A value behind joined flags belongs to the last.
            Takes::Nothing => {
                let given = if after.is_empty() { attached.map_or(Given::Once, Given::Value) } else { Given::Once };
                apply(settings, directive, &name, given, notes)?;
            }
            Takes::A(_) if after.is_empty() => {
                return take(settings, directive, &name, attached, rest, notes);
            }
            Takes::A(_) => {
                // The rest of the argument, equals signs and all.
                let value = &argument[1 + at + letter.len_utf8()..];
                return apply(settings, directive, &name, Given::Value(value), notes);
            }
        }
    }
    Ok(())
}

fn take<'a>(
    settings: &mut Settings,
    directive: Directive,
    name: &str,
    attached: Option<&'a str>,
    rest: &mut impl Iterator<Item = &'a str>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let given = match (directive.takes, attached) {
        (_, Some(value)) => Given::Value(value),
        (Takes::Nothing, None) => Given::Once,
        (Takes::A(_), None) => Given::Value(rest.next().ok_or_else(|| needs_value(name))?),
    };
    apply(settings, directive, name, given, notes)
}

fn apply(
    settings: &mut Settings,
    directive: Directive,
    name: &str,
    given: Given<'_>,
    notes: &mut Vec<String>,
) -> Result<()> {
    settings.apply(directive.name, given, notes).map_err(|error| error.hint(format!("this is about {name}")))
}

fn needs_value(name: &str) -> Error {
    Error::invalid("read options", format!("{name} needs a value")).hint("hyperslab ior --help lists all")
}

fn by_letter(letter: char) -> Option<Directive> {
    directives::TABLE.iter().find(|directive| directive.letter == Some(letter)).copied()
}

fn long(name: &str) -> Result<Directive> {
    let found = directives::TABLE.iter().find(|directive| {
        directive.long.is_some_and(|long| long.eq_ignore_ascii_case(name)) || directive.name.eq_ignore_ascii_case(name)
    });
    found.copied().ok_or_else(|| directives::unknown(&format!("--{name}")))
}
