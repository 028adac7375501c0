//! What a results file says of its origin.

use super::plan::Plan;
use crate::options::BenchOptions;
use hyperslab_run::{Build, Provenance};
use std::fs;

/// Everything that is known before the run.
pub fn of(plan: &Plan, options: &BenchOptions) -> Provenance {
    let mut provenance = Provenance::begin(build(), &plan.directory);
    for path in options.config.iter().chain(&options.workload) {
        // The name of a kernel is in the command line, and no file.
        if let Ok(text) = fs::read(path) {
            provenance.keep_input(path, &text);
        }
    }
    plan.cases.iter().for_each(|case| provenance.keep_stack(&case.stack));
    provenance
}

/// How this program was built.
pub fn build() -> Build {
    let features = [
        ("hdf5", cfg!(feature = "hdf5")),
        ("bundled-hdf5", cfg!(feature = "bundled-hdf5")),
        ("parallel-hdf5", cfg!(feature = "parallel-hdf5")),
        ("mpi", cfg!(feature = "mpi")),
        ("zarr", cfg!(feature = "zarr")),
    ];
    Build {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: option_env!("HYPERSLAB_COMMIT").map(str::to_owned),
        features: features.iter().filter(|(_, on)| *on).map(|(name, _)| (*name).to_owned()).collect(),
        debug: cfg!(debug_assertions),
    }
}

/// The load average of the last minute.
pub fn load_now() -> Option<f64> {
    hyperslab_run::load_averages().map(|[minute, ..]| minute)
}
