//! A compiled program: which libhdf5 it is linked with, and whether that loads the connector.

use super::elf::Elf;
use super::library::{FUNCTION, Library};
use super::{NEWER, libraries};
use crate::doctor::{Finding, State};
use std::path::Path;

const STATIC: &str = "link it with -rdynamic (CMake: ENABLE_EXPORTS), so that the connector finds HDF5's functions in it, or link \
                      it with a shared libhdf5";

/// Looks at a program without running it.
pub fn look(path: &Path) -> Vec<Finding> {
    let program = match Elf::read(path) {
        Ok(program) => program,
        Err(why) => return vec![Finding::new("program", State::Lacking, format!("cannot be read: {why}"))],
    };
    if let Some(own) = Library::of(&program) {
        return vec![inside(&own, &program)];
    }
    let dynamic = program.is_dynamic();
    let (found, missing) = libraries::find(path, program, |library| library.exports(FUNCTION));
    let mut findings = vec![match found {
        Some((path, elf)) => match Library::of(&elf) {
            Some(library) => shared(&path, &library),
            None => Finding::new("libhdf5", State::Lacking, format!("{} cannot be read", path.display())),
        },
        None if !dynamic => Finding::new("libhdf5", State::Absent, "no HDF5 in it, and it is linked statically"),
        None => Finding::new("libhdf5", State::Absent, "neither it nor its libraries use HDF5")
            .try_this("the program or Python that opens the files; modules that are loaded later are not seen"),
    }];
    if !missing.is_empty() {
        let what = format!("not found: {}", missing.join(", "));
        findings.push(
            Finding::new("libraries", State::Lacking, what).try_this("LD_LIBRARY_PATH, or the module that brings them"),
        );
    }
    findings
}

fn shared(path: &Path, library: &Library) -> Finding {
    let words = format!("{} ({})", library.words(), path.display());
    match library.new_enough() {
        Some(true) => Finding::good("libhdf5", format!("{words}: loads the connector")),
        Some(false) => {
            Finding::new("libhdf5", State::Lacking, format!("{words}: too old for connectors")).try_this(NEWER)
        }
        None => Finding::new("libhdf5", State::Lacking, words).try_this(NEWER),
    }
}

/// libhdf5 inside the program itself.
fn inside(library: &Library, program: &Elf) -> Finding {
    let words = format!("{}, linked statically", library.words());
    let lacking =
        |why: &str, remedy: &str| Finding::new("libhdf5", State::Lacking, format!("{words}: {why}")).try_this(remedy);
    match library.new_enough() {
        Some(false) => lacking("too old for connectors", NEWER),
        _ if !program.is_dynamic() => {
            lacking("the whole program is static and cannot load plugins", "a dynamic executable")
        }
        _ if program.exports(FUNCTION) => {
            Finding::good("libhdf5", format!("{words}, its functions exported: loads the connector"))
        }
        _ => lacking("its functions are hidden from plugins", STATIC),
    }
}
