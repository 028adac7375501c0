//! The tests in parts, each of which can be run alone: on several machines, or again after it failed.

use anyhow::{Result, bail};

use super::programs::Program;
use crate::arguments::did_you_mean;

/// A part of the tests that is no test program but a step of its own.
pub const STEPS: [(&str, &str); 5] = [
    ("checks", "tidy, format, clippy"),
    ("mpi", "tests under mpirun; set up as with --mpi"),
    ("fuzz", "each fuzz target for 5 seconds; with --long only"),
    ("sanitize", "copy kernels, filters and the direct path with AddressSanitizer; with --long only"),
    ("miri", "selections, copies and conversions under Miri; with --long only"),
];

/// Test programs, or some trials of one.
#[derive(Debug, PartialEq)]
pub struct Part {
    pub name: &'static str,
    pub purpose: &'static str,
    /// The crates whose `tests` folders belong to it; none for all that no other part names.
    packages: &'static [&'static str],
    /// Words for the programs: which of their trials.
    words: &'static [&'static str],
}

/// All parts, those that take longest first, so that nothing long is left when all else is done.
pub const PARTS: [Part; 10] = [
    Part {
        name: "connector",
        purpose: "programs under the connector: situations, kills, forks, full disks, netCDF4, tools, C and MPI programs",
        packages: &["hyperslab-vol"],
        words: &["--skip", "'s tests, ", "--skip", "valgrind, ", "--skip", "random programs"],
    },
    Part {
        name: "h5py-suite",
        purpose: "h5py's own tests under the connector",
        packages: &["hyperslab-vol"],
        words: &["'s tests, "],
    },
    Part {
        name: "random-programs",
        purpose: "random programs under the connector, against a model",
        packages: &["hyperslab-vol"],
        words: &["random programs"],
    },
    Part {
        name: "valgrind",
        purpose: "C programs and h5py under the connector in valgrind",
        packages: &["hyperslab-vol"],
        words: &["valgrind, "],
    },
    Part { name: "crashlab", purpose: "the crash laboratory", packages: &["hyperslab-crashlab"], words: &[] },
    Part { name: "layers", purpose: "the layers, over every format", packages: &["hyperslab-layers"], words: &[] },
    Part {
        name: "formats",
        purpose: "the formats: conformance, faults, other libraries",
        packages: &["hyperslab-formats"],
        words: &[],
    },
    Part {
        name: "program",
        purpose: "the command line and the runner",
        packages: &["hyperslab-cli", "hyperslab-run"],
        words: &[],
    },
    Part { name: "others", purpose: "the tests folders of all other crates", packages: &[], words: &[] },
    Part {
        name: "unit",
        purpose: "tests within libraries and programs, and those of the documentation",
        packages: &[],
        words: &[],
    },
];

/// What was asked for with `--part`.
#[derive(Debug, Default, PartialEq)]
pub struct Chosen(Option<Vec<String>>);

impl Chosen {
    /// From the value of `--part`, if there was one: names with commas between them.
    pub fn parse(value: Option<&str>) -> Result<Self> {
        let Some(value) = value else { return Ok(Self(None)) };
        let known: Vec<&str> = PARTS.iter().map(|part| part.name).chain(STEPS.iter().map(|step| step.0)).collect();
        let names: Vec<String> = value.split(',').map(|name| name.trim().to_owned()).collect();
        for name in &names {
            if !known.contains(&name.as_str()) {
                bail!("there is no part {name:?} of the tests; {}", did_you_mean(name, &known));
            }
        }
        Ok(Self(Some(names)))
    }

    /// Whether not all parts are run.
    pub fn some(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the part or step of this name is run.
    pub fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|chosen| chosen == name))
    }

    /// The parts of test programs that are run.
    pub fn parts(&self) -> impl Iterator<Item = &'static Part> {
        PARTS.iter().filter(|part| self.has(part.name))
    }
}

impl Part {
    /// Whether the documentation's tests belong to it.
    pub fn has_documentation(&self) -> bool {
        self.name == "unit"
    }

    /// Whether `program` belongs to it, or some of its trials do.
    pub fn has(&self, program: &Program) -> bool {
        let named = |part: &Part| part.packages.contains(&program.package.as_str());
        match self.name {
            "unit" => program.unit,
            "others" => !program.unit && !PARTS.iter().any(named),
            // Only the clients have trials that other parts name.
            _ => {
                !program.unit
                    && named(self)
                    && (self.name == "connector" || self.words.is_empty() || program.name == "clients")
            }
        }
    }

    /// What `program` is told besides.
    pub fn words(&self, program: &Program) -> &'static [&'static str] {
        if program.name == "clients" { self.words } else { &[] }
    }

    /// `hyperslab-vol clients: valgrind`.
    pub fn title(&self, program: &Program) -> String {
        match self.words(program) {
            [] => program.title(),
            _ => format!("{}: {}", program.title(), self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::PathBuf;

    fn program(package: &str, name: &str, unit: bool) -> Program {
        Program { package: package.into(), name: name.into(), unit, path: PathBuf::new(), folder: PathBuf::new() }
    }

    fn parts_of(program: &Program) -> Vec<&'static str> {
        PARTS.iter().filter(|part| part.has(program)).map(|part| part.name).collect()
    }

    #[test]
    fn every_program_belongs_to_a_part() {
        assert_eq!(parts_of(&program("hyperslab-vol", "linked", false)), ["connector"]);
        let clients = program("hyperslab-vol", "clients", false);
        assert_eq!(parts_of(&clients), ["connector", "h5py-suite", "random-programs", "valgrind"]);
        assert_eq!(parts_of(&program("hyperslab-vol", "hyperslab_vol", true)), ["unit"]);
        assert_eq!(parts_of(&program("hyperslab-core", "hostile", false)), ["others"]);
        assert_eq!(parts_of(&program("hyperslab-run", "run", false)), ["program"]);
    }

    #[test]
    fn trials_of_the_clients_belong_to_exactly_one_part() {
        let words = |name: &str| PARTS.iter().find(|part| part.name == name).unwrap().words;
        let named: Vec<&str> = ["h5py-suite", "valgrind", "random-programs"].map(|name| words(name)[0]).into();
        let skipped: Vec<&str> = words("connector").iter().copied().filter(|word| *word != "--skip").collect();
        assert_eq!(named, skipped);
    }

    #[test]
    fn unknown_parts_are_refused() {
        assert!(Chosen::parse(None).unwrap().has("miri"));
        let chosen = Chosen::parse(Some("layers,mpi")).unwrap();
        assert!(chosen.has("mpi") && chosen.has("layers") && !chosen.has("formats"));
        assert!(Chosen::parse(Some("layer")).unwrap_err().to_string().contains("did you mean \"layers\"?"));
    }
}
