//! The n-th I/O call fails, for every n: a program reports the failure or its data is right. It never panics, hangs,
//! dies of a signal, or loses data in silence.

#[path = "faults/hunt.rs"]
mod hunt;
#[cfg(feature = "hdf5")]
#[path = "faults/killed_updates.rs"]
mod killed_updates;
#[path = "faults/program.rs"]
mod program;
#[path = "faults/shim.rs"]
mod shim;

use libtest_mimic::Arguments;
use std::process::ExitCode;

fn stacks() -> Vec<&'static str> {
    let mut out = vec!["posix", "posix(files=per_rank)", "posix(preallocate=yes)", "netcdf3", "netcdf3(header_pad=0)"];
    if cfg!(feature = "hdf5") {
        out.extend(["hdf5", "hdf5(plane=on)", "hdf5(plane=on,cache=0,threads=2)"]);
    }
    if cfg!(feature = "zarr") {
        out.extend(["zarr", "zarr(version=2)"]);
    }
    out
}

fn main() -> ExitCode {
    match program::run_if_asked(|stack| hyperslab_formats::build(&stack.format)) {
        Some(code) => code,
        None => {
            #[cfg_attr(not(feature = "hdf5"), expect(unused_mut, reason = "nothing is added"))]
            let mut trials = hunt::trials(&stacks());
            #[cfg(feature = "hdf5")]
            trials.push(killed_updates::trial());
            libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
        }
    }
}
