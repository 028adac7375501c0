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
            let how = entry.how_to_build;
            Finding::new(format!("format {}", entry.name), State::Absent, "not compiled in").try_this(how)
        });
    }
    for (name, version) in hyperslab_formats::library_versions() {
        findings.push(Finding::good(format!("library {name}"), version));
    }
    #[cfg(feature = "hdf5")]
    findings.push(hdf5_features());
    if !COMPILED_IN {
        findings.push(Finding::new("MPI", State::Absent, "not compiled in: ranks are threads").try_this(HOW_TO_BUILD));
    }
    findings
}

/// What libhdf5 can do and what not.
#[cfg(feature = "hdf5")]
fn hdf5_features() -> Finding {
    let features = hyperslab_formats::hdf5::features();
    let named = |there: bool| -> Vec<&str> { features.iter().filter(|f| f.1 == there).map(|f| f.0).collect() };
    let (has, lacks) = (named(true), named(false));
    let without = if lacks.is_empty() { String::new() } else { format!("; without {}", lacks.join(", ")) };
    Finding::good("features of hdf5", format!("{}{without}", has.join(", ")))
}
