//! Whether programs load the HDF5 connector, and if not, why.

mod compiled;
mod elf;
mod libraries;
mod library;
mod python;
mod trial;

use super::{Finding, State};
use crate::connector::find_plugin;
use crate::mpi_job::find_program;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The oldest libhdf5 that loads it.
const OLDEST: (u32, u32) = (1, 14);
const NEWER: &str =
    "HDF5 1.14 or newer: a recent wheel or conda package, another module of the cluster, or a build of your own";

/// The plugin, and the Pythons that people are likely to use.
pub fn look() -> Vec<(String, Vec<Finding>)> {
    let mut sections = vec![("The HDF5 connector".to_owned(), plugin())];
    let chosen = std::env::var_os("HYPERSLAB_PYTHON").filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut pythons: Vec<PathBuf> = find_program("python3").into_iter().chain(chosen).collect();
    pythons.dedup();
    for python in pythons {
        sections.push((title(&python), python::look(&python)));
    }
    sections
}

/// The plugin, and the programs that were named.
pub fn look_at(programs: &[PathBuf]) -> Vec<(String, Vec<Finding>)> {
    let mut sections = vec![("The HDF5 connector".to_owned(), plugin())];
    for name in programs {
        let findings = match name.to_str().and_then(find_program).or_else(|| Some(name.clone()).filter(|p| p.is_file()))
        {
            None => vec![Finding::new("program", State::Bad, "there is no such program").try_this("its path")],
            Some(path) => match kind(&path) {
                Kind::Python(interpreter) => python::look(&interpreter),
                Kind::Compiled => compiled::look(&path),
                Kind::Other(what) => vec![
                    Finding::new("program", State::Lacking, what)
                        .try_this("the Python or compiled program that it starts"),
                ],
            },
        };
        sections.push((title(name), findings));
    }
    sections
}

fn title(program: &Path) -> String {
    format!("The HDF5 connector in {}", program.display())
}

fn plugin() -> Vec<Finding> {
    vec![match find_plugin() {
        Ok(folder) => Finding::good("plugin", folder.display().to_string()),
        Err(error) => {
            let text = format!("{error:#}");
            let (seen, remedy) = text.split_once("\n  try: ").unwrap_or((&text, "cargo xtask install"));
            Finding::new("plugin", State::Lacking, seen).try_this(remedy)
        }
    }]
}

enum Kind {
    Python(PathBuf),
    Compiled,
    Other(&'static str),
}

/// What a program is, by its name and its first bytes.
fn kind(path: &Path) -> Kind {
    let named_python = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("python") || name.starts_with("pypy")
    };
    let mut start = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(256).read_to_end(&mut start);
    }
    let text = String::from_utf8_lossy(&start).into_owned();
    let script = text.strip_prefix("#!").and_then(|rest| rest.lines().next());
    let interpreter = script.and_then(|line| {
        let mut words = line.split_whitespace().filter(|word| !word.ends_with("/env") && !word.starts_with('-'));
        words.next().and_then(find_program)
    });
    match interpreter {
        Some(interpreter) if named_python(&interpreter) && !named_python(path) => Kind::Python(interpreter),
        _ if named_python(path) => Kind::Python(path.to_owned()),
        _ if start.starts_with(b"\x7fELF") => Kind::Compiled,
        Some(_) => Kind::Other("a script of another language than Python"),
        None => Kind::Other("neither a Python nor a compiled program"),
    }
}

/// `not thread-safe`, and so on.
fn thread_safety(safe: bool) -> &'static str {
    if safe { "thread-safe" } else { "not thread-safe" }
}
