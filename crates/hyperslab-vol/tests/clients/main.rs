//! Real programs under the connector: h5py with its own test suite, netCDF4, xarray, the HDF5 tools, C and MPI programs; and what
//! their files hold in the eyes of programs without it.
//!
//! `HYPERSLAB_PYTHON` names a Python that has the clients; without it their trials are skipped. Ignored trials take minutes:
//! `cargo xtask test --long`. `HYPERSLAB_SEED` asks for other random programs.
#![allow(clippy::print_stdout)]

mod c_programs;
mod cycles;
mod ends;
mod fields;
mod forks;
mod full_disk;
mod h5py_suite;
mod killed_after;
mod kills;
mod memcheck;
mod modes;
mod mpi_programs;
mod netcdf;
mod objects;
mod pieces;
mod plugin;
mod program;
mod random_programs;
mod safe;
mod situations;
mod statistics;
mod tools;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// How a trial ends: well, wrong, or not begun, with the reason.
type Outcome = Result<Completion, Failed>;

/// Why a trial is not in the ordinary run.
const LONG: &str = "takes minutes: cargo xtask test --long";

/// A trial of the ordinary run.
fn trial(name: impl Into<String>, work: impl FnOnce() -> Outcome + Send + 'static) -> Trial {
    Trial::ignorable_test(name, work)
}

/// A trial for people who have time.
fn long_trial(name: impl Into<String>, work: impl FnOnce() -> Outcome + Send + 'static) -> Trial {
    Trial::ignorable_test(format!("{} [{LONG}]", name.into()), work).with_ignored_flag(true)
}

/// A trial for each mode; those of modes that are not usual are long ones.
fn in_modes(name: &str, work: fn(&str) -> Outcome) -> Vec<Trial> {
    let each = modes::ALL.into_iter().map(|mode| {
        let name = format!("{name}, {mode}");
        if modes::USUAL.contains(&mode) {
            trial(name, move || work(mode))
        } else {
            long_trial(name, move || work(mode))
        }
    });
    each.collect()
}

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for some in [
        h5py_suite::trials,
        random_programs::trials,
        situations::trials,
        objects::trials,
        fields::trials,
        pieces::trials,
        netcdf::trials,
        tools::trials,
        c_programs::trials,
        mpi_programs::trials,
        kills::trials,
        killed_after::trials,
        forks::trials,
        ends::trials,
        safe::trials,
        full_disk::trials,
        cycles::trials,
        memcheck::trials,
        statistics::trials,
    ] {
        trials.extend(some());
    }
    let ended = libtest_mimic::run(&arguments, trials);
    plugin::remove();
    ended.exit();
}
