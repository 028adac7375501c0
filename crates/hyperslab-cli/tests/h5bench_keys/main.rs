//! Every key of h5bench's configurations, by its effect on real files and results.
//!
//! The files are read with h5py, zarr-python and numpy; what must be in them is recomputed in Python from
//! docs/workload-format.md. `HYPERSLAB_PYTHON` names a Python that has these; without it such trials are skipped.
#![allow(clippy::unwrap_used)]

#[path = "../common/program.rs"]
mod program;

mod formats;
mod kernels;
mod modify;
mod patterns;
mod python;
mod reads;
mod reports;
mod storage;
mod timing;
mod workflow;

use libtest_mimic::{Arguments, Completion, Trial};
use std::process::ExitCode;

/// A trial that needs Python.
fn with_python(name: &str, trial: fn()) -> Trial {
    Trial::ignorable_test(name, move || match python::interpreter() {
        None => Ok(Completion::ignored_with("HYPERSLAB_PYTHON is not set: cargo xtask test sets it")),
        Some(_) => {
            trial();
            Ok(Completion::Completed)
        }
    })
}

fn alone(name: &str, trial: fn()) -> Trial {
    Trial::test(name, move || {
        trial();
        Ok(())
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = vec![
        alone("patterns::memory limit", patterns::memory_limit),
        alone("reads::bytes of every read option", reads::bytes_of_every_read_option),
        alone("reads::bytes of partial updates", reads::bytes_of_partial_updates),
        alone("reports::run directory", reports::run_directory),
        alone("reports::modes", reports::modes),
        alone("timing::compute", timing::compute),
    ];
    if cfg!(feature = "hdf5") {
        trials.extend([
            alone("reports::csv", reports::csv),
            alone("reports::printed block", reports::printed_block),
            with_python("patterns::layouts and values", patterns::layouts_and_values),
            with_python("patterns::strided writes", patterns::strided_writes),
            with_python("patterns::numbers", patterns::numbers),
            with_python("patterns::order and form of keys", patterns::order_and_form_of_keys),
            with_python("patterns::different amounts", patterns::different_amounts),
            with_python("storage::chunks and filters", storage::chunks_and_filters),
            with_python("storage::alignment", storage::alignment),
            with_python("storage::unlimited", storage::unlimited),
            with_python("storage::file per process", storage::file_per_process),
            with_python("timing::delayed close", timing::delayed_close),
            with_python("modify::overwrite", modify::overwrite),
            with_python("modify::append", modify::append),
            with_python("modify::repeated", modify::repeated),
            with_python("kernels::metadata", kernels::metadata),
            with_python("kernels::exerciser", kernels::exerciser),
            with_python("formats::same values in all", formats::same_values_in_all),
        ]);
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
