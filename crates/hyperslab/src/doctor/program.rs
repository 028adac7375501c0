//! What is compiled in.

use super::{Finding, State};
use crate::mpi_job::{COMPILED_IN, HOW_TO_BUILD};

/// The program, its formats and its libraries.
pub fn look() -> Vec<Finding> {
    let version = format!("{} ({})", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let mut findings = vec![Finding::good("hyperslab", version)];
    for entry in hyperslab_formats::formats() {
        findings.push(if entry.build.is_some() {
            Finding::good(format!("format {}", entry.name), entry.about)
        } else {
            let how = entry.how_to_build();
            Finding::new(format!("format {}", entry.name), State::Absent, "not compiled in").try_this(how)
        });
    }
    for (name, version) in hyperslab_formats::library_versions() {
        findings.push(Finding::good(format!("library {name}"), version));
    }
    if !COMPILED_IN {
        findings.push(Finding::new("MPI", State::Absent, "not compiled in: ranks are threads").try_this(HOW_TO_BUILD));
    }
    findings
}
