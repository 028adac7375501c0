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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::settings::{Packets, Placement, SummaryFormat};

    fn settings(line: &str) -> Result<Settings> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&arguments, &mut Vec::new())? {
            Asked::Tests(settings) => Ok(*settings),
            Asked::Help => Err(Error::invalid("parse", "help was asked for")),
        }
    }

    #[test]
    fn flags_can_be_joined_and_values_attached() {
        let plain = settings("-a HDF5 -b 4m -t 1m -s 2 -w -r -k -C -v -v -N 4").unwrap();
        for same in [
            "-a=HDF5 -b=4m -t=1m -s=2 -wrk -C -vv -N=4",
            "-aHDF5 -b4m -t1m -s2 -wrkCvv -N4",
            "-wrkCvvaHDF5 -b 4096k -t 1024k -s2 -N 4",
            "-O api=HDF5,blockSize=4m,TRANSFERSIZE=1m -O segmentCount=2 -w=1 -r -k=1 -C -v=2 -O numTasks=4",
            "-Oapi=HDF5,blocksize=4m -O=transfersize=1m -s2 -wrkCvv -N4",
        ] {
            assert_eq!(settings(same).unwrap(), plain, "{same}");
        }
        assert_eq!((plain.block_size, plain.verbose, plain.tasks), (4 << 20, 2, Some(4)));
        let off = settings("-w -r -k -w=0 -O keepFile=0").unwrap();
        assert!(!off.write_file && off.read_file && !off.keep_file);
    }

    #[test]
    fn values_may_hold_equals_signs_and_commas() {
        for line in ["-a hdf5(align=1m,plane=on)", "-ahdf5(align=1m,plane=on)", "-a=hdf5(align=1m,plane=on)"] {
            assert_eq!(settings(line).unwrap().api, "hdf5(align=1m,plane=on)", "{line}");
        }
        assert_eq!(settings("-O api=hdf5(align=1m,plane=on),keepFile=1").unwrap().api, "hdf5(align=1m,plane=on)");
        assert_eq!(settings("-o x=y").unwrap().test_file, "x=y");
        assert_eq!(settings("-ox=y").unwrap().test_file, "x=y");
    }

    #[test]
    fn long_forms_are_taken() {
        let found = settings(
            "--collective --dataPacketType=offset --random-offset-seed 7 --posix.odirect --pattern ost:2 --gather=3 \
             -O summaryFormat=JSON --hdf5.chunkSize=512 -X -3 -Z -Z",
        )
        .unwrap();
        assert!(found.collective && found.packets == Packets::Offset && found.random_offset_seed == 7);
        assert!(found.placement == Placement::Stripes(2) && found.gather == 3 && found.chunk_size == 512);
        assert!(found.summary_format == SummaryFormat::Json && found.reorder_seed == -3 && found.reorder_random == 2);
    }

    #[test]
    fn a_signature_asks_for_the_data_of_ior() {
        assert_eq!(settings("-w").unwrap().packets, Packets::ByPlace);
        assert_eq!(settings("-G 27").unwrap().packets, Packets::Timestamp);
        assert_eq!(settings("-l random -G 27").unwrap().packets, Packets::Random);
        assert_eq!(settings("-l place -G 27").unwrap().packets, Packets::ByPlace);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, word) in [
            ("-b", "-b"),
            ("-b x", "\"x\""),
            ("--nonsense", "--nonsense"),
            ("-wrq", "-q"),
            ("file", "\"file\""),
            ("-y", "socket"),
            ("-O blockSize", "NAME=VALUE"),
            ("-O =", "NAME=VALUE"),
            ("-O", "-O"),
            ("-l what", "timestamp"),
            ("-N 0", "0 ranks"),
            ("--pattern ost:0", "ost:2"),
            ("-i -1", "below 0"),
            ("-é", "é"),
        ] {
            let error = settings(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
        assert!(matches!(parse(&["-h".into()], &mut Vec::new()).unwrap(), Asked::Help));
    }
}
