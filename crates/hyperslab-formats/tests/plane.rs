//! The data plane of HDF5 (`plane=on`) beside libhdf5: whoever wrote a file and whoever reads it, the elements are the
//! same; what the plane leaves to libhdf5 it names; damage, concurrency and errors do no harm.
//!
//! `HYPERSLAB_SEED` asks for other random cases. Trials with h5py need `HYPERSLAB_PYTHON` and are skipped without it.

#[path = "plane/common.rs"]
mod common;
#[path = "plane/concurrent.rs"]
mod concurrent;
#[path = "plane/damage.rs"]
mod damage;
#[path = "plane/handles.rs"]
mod handles;
#[path = "plane/python.rs"]
mod python;
#[path = "plane/random.rs"]
mod random;
#[path = "plane/raw.rs"]
mod raw;
#[path = "plane/reasons.rs"]
mod reasons;
#[path = "plane/theirs.rs"]
mod theirs;

use libtest_mimic::Arguments;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = random::trials();
    trials.extend(theirs::trials());
    trials.extend(reasons::trials());
    trials.extend(handles::trials());
    trials.extend(damage::trials());
    trials.extend(concurrent::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
