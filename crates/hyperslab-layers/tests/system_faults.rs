//! The n-th I/O call of a program with a log fails, be it on the log or on the file, for every n: the program reports the
//! failure or its data is right. It never panics, hangs, dies of a signal, or loses data in silence.

#[path = "../../hyperslab-formats/tests/faults/hunt.rs"]
mod hunt;
#[path = "../../hyperslab-formats/tests/faults/program.rs"]
mod program;
#[path = "../../hyperslab-formats/tests/faults/shim.rs"]
mod shim;

use libtest_mimic::Arguments;
use std::process::ExitCode;

/// The log lies beside the file.
const STACKS: &[&str] = &[
    "log(drain=off)/posix",
    "log(drain=1,limit=64KiB,buffer=4KiB)/hdf5",
    "log(durability=none)/posix",
    "log(durability=5ms,drain=1)/posix",
    "log(durability=every-write)/posix",
];

fn main() -> ExitCode {
    let build =
        |stack: &hyperslab_core::Stack| hyperslab_layers::build(stack, hyperslab_formats::build(&stack.format)?);
    match program::run_if_asked(build) {
        Some(code) => code,
        None => libtest_mimic::run(&Arguments::from_args(), hunt::trials(STACKS)).exit_code(),
    }
}
