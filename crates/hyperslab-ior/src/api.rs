//! From IOR's names of interfaces to stacks.

use crate::settings::Settings;
use hyperslab_core::{Error, Result, Stack};
use hyperslab_formats::formats;
use std::fs;

/// IOR's names, ours, and names that nothing here stands for, with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("AIO", "use -a async/posix: writes go on in the background"),
    ("MMAP", "memory maps are no format here; use -a POSIX"),
    ("S3", "object stores are no format here; use -a ZARR on a mounted one"),
    ("S3-4C", "object stores are no format here"),
    ("S3_EMC", "object stores are no format here"),
    ("S3_PLUS", "object stores are no format here"),
    ("RADOS", "object stores are no format here"),
    ("CEPHFS", "use -a POSIX on a mounted file system"),
    ("DFS", "use -a POSIX on a mounted file system"),
    ("HDFS", "use -a POSIX on a mounted file system"),
    ("GFARM", "use -a POSIX on a mounted file system"),
    ("CHFS", "use -a POSIX on a mounted file system"),
    ("FINCHFS", "use -a POSIX on a mounted file system"),
    ("IME", "use -a POSIX on a mounted file system"),
    ("PMDK", "persistent memory is no format here; use -a POSIX on it"),
    ("LIBNFS", "use -a POSIX on a mounted file system"),
    ("BEEGFS", "use -a POSIX"),
];

/// The stack for the API of `settings`, with the options that are for it. Others are left out with a note, as IOR leaves
/// them out.
pub fn stack(settings: &Settings, notes: &mut Vec<String>) -> Result<Stack> {
    let name = settings.api.trim();
    let upper = name.to_ascii_uppercase();
    if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == upper) {
        return Err(Error::unsupported("choose API", *reason).target(format!("-a {name}")));
    }
    let mut stack: Stack = stack_text(name).parse()?;
    let entry = formats().iter().find(|entry| entry.name == stack.format.name);
    for (api, key, value) in &settings.api_options {
        if !entry.is_some_and(|entry| entry.interfaces.contains(api)) {
            notes.push(format!("options of {api} are left out with -a {name}: {key}={value}"));
        } else if stack.format.get(key).is_none() {
            stack.format.options.push(((*key).to_owned(), value.clone()));
        }
    }
    let hints = hints(settings)?;
    if !hints.is_empty() {
        let text = hints.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(";");
        if entry.is_some_and(|entry| entry.has_option("hints")) {
            stack.format.options.push(("hints".into(), text));
        } else {
            notes.push(format!("hints for MPI are left out with -a {name}: {text}"));
        }
    }
    Ok(stack)
}

/// The stack that a name of an interface stands for: what is no name of IOR's is a stack.
pub fn stack_text(name: &str) -> &str {
    let upper = name.to_ascii_uppercase();
    let entry = formats().iter().find(|entry| entry.interfaces.contains(&upper.as_str()));
    entry.map_or(name, |entry| entry.name)
}

/// How the environment and hint files name hints for MPI.
const HINT: &str = "IOR_HINT__MPI__";

/// Hints for MPI: those of the file, and before them those of the environment.
pub fn hints(settings: &Settings) -> Result<Vec<(String, String)>> {
    let environment = std::env::vars().filter_map(|(name, value)| Some((name.strip_prefix(HINT)?.to_owned(), value)));
    let mut hints: Vec<(String, String)> = environment.collect();
    hints.sort();
    if let Some(path) = &settings.hints_file {
        let text = fs::read_to_string(path).map_err(|e| Error::io("read hints", e).target(path))?;
        for hint in read_hints(&text)? {
            hints.retain(|(known, _)| *known != hint.0);
            hints.push(hint);
        }
    }
    Ok(hints)
}

/// Lines such as `setenv IOR_HINT__MPI__cb_nodes 2` or `IOR_HINT__MPI__cb_nodes=2`.
pub fn read_hints(text: &str) -> Result<Vec<(String, String)>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter(|line| !line.contains("IOR_HINT__GPFS__"))
        .map(|line| {
            let rest = ["setenv ", "export "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line).trim();
            let bare = rest.strip_prefix(HINT).unwrap_or(rest);
            let (name, value) = bare
                .split_once('=')
                .or_else(|| bare.split_once(char::is_whitespace))
                .map(|(name, value)| (name.trim(), value.trim().trim_matches('"')))
                .filter(|(name, value)| !name.is_empty() && !value.is_empty())
                .ok_or_else(|| {
                    Error::invalid("read hints", format!("{line:?} is no hint")).hint("write IOR_HINT__MPI__NAME=VALUE")
                })?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::settings::Given;

    fn stack_of(settings: &[(&str, &str)]) -> Result<(String, Vec<String>)> {
        let (mut all, mut notes) = (Settings::default(), Vec::new());
        for (name, value) in settings {
            all.apply(name, Given::Value(value), &mut notes)?;
        }
        Ok((stack(&all, &mut notes)?.to_string(), notes))
    }

    #[test]
    fn names_of_interfaces_are_stacks() {
        for (api, expected) in [
            ("POSIX", "posix"),
            ("hdf5", "hdf5"),
            ("NCMPI", "netcdf3"),
            ("DUMMY", "null"),
            ("async/hdf5(align=1MiB)", "async/hdf5(align=1MiB)"),
        ] {
            assert_eq!(stack_of(&[("api", api)]).unwrap().0, expected);
        }
        let error = stack_of(&[("api", "AIO")]).unwrap_err().to_string();
        assert!(error.contains("async/posix"), "{error}");
    }

    #[test]
    fn options_go_to_their_own_format() {
        let all = [("api", "HDF5"), ("hdf5.setAlignment", "1m"), ("hdf5.noFill", "1"), ("posix.odirect", "1")];
        let (stack, notes) = stack_of(&all).unwrap();
        assert_eq!(stack, "hdf5(align=1048576,align_threshold=1048576,fill_time=never)");
        assert!(notes.iter().any(|note| note.contains("direct")), "{notes:?}");
        assert_eq!(stack_of(&[("posix.odirect", "1")]).unwrap().0, "posix(direct)");
        assert_eq!(stack_of(&[("posix.odirect", "1"), ("posix.odirect", "0")]).unwrap().0, "posix");
    }

    #[test]
    fn hints_are_read_in_both_forms() {
        let text = "# why\nsetenv IOR_HINT__MPI__cb_nodes 2\nIOR_HINT__MPI__romio_cb_write=\"enable\"\nsetenv IOR_HINT__GPFS__x 1\n";
        let hints = read_hints(text).unwrap();
        assert_eq!(hints, [("cb_nodes".into(), "2".into()), ("romio_cb_write".into(), "enable".to_string())]);
        assert!(read_hints("nonsense").is_err());
    }
}
