//! The conformance suite on the ranks of this job.

use hyperslab_comm::MpiJob;
use hyperslab_core::{Format, Stack};
use hyperslab_testkit::{Overrides, Processes, conformance, model};
use std::sync::Arc;

/// A stack under test.
pub struct Tested {
    /// As a user writes it.
    pub text: &'static str,
    overrides: Overrides,
    /// The checks that its options rule out, by a part of their names.
    without: &'static [&'static str],
    /// The numbers of ranks to test it with.
    pub ranks: &'static [usize],
}

/// How many random operation sequences a rank alone plays.
const SEQUENCES: u32 = 20;

const PLAIN: Overrides = Overrides { chunk: false, filters: false, beside: false };

const fn all(text: &'static str) -> Tested {
    Tested { text, overrides: PLAIN, without: &[], ranks: &[1, 2, 4] }
}

/// For what is the same on one rank as in a process without MPI.
const fn several(text: &'static str) -> Tested {
    Tested { ranks: &[2, 4], ..all(text) }
}

/// Everything of this build that works on several processes.
pub fn stacks() -> Vec<Tested> {
    let mut out = vec![all("null"), all("posix"), all("posix(files=per_rank)")];
    // A dimension of length 0 is the one that grows there.
    let no_empty = &["rank/without elements", "1 ranks/more ranks than rows"];
    out.extend(["netcdf3", "netcdf3(header_pad=0)"].map(|text| Tested { without: no_empty, ..all(text) }));
    out.extend([
        all("mpiio"),
        all("mpiio(view=no)"),
        all("mpiio(round=20,buffer=4KiB,preallocate=yes)"),
        all("mpiio(hints=\"cb_nodes=1;romio_cb_write=enable\",atomic=yes)"),
    ]);
    if cfg!(feature = "zarr") {
        out.extend([
            all("zarr"),
            all("zarr(version=2)"),
            Tested { overrides: Overrides { filters: true, ..PLAIN }, ..all("zarr(codec=zstd,threads=2)") },
        ]);
    }
    if cfg!(feature = "hdf5") {
        out.extend([
            all("hdf5"),
            several("hdf5(plane=on)"),
            several("hdf5(plane=on,layout=chunked,libver=latest)"),
            Tested { overrides: Overrides { filters: true, ..PLAIN }, ..several("hdf5(plane=on,deflate=1,threads=2)") },
        ]);
    }
    out.retain(|stack| build(stack.text).caps().execution.many_processes);
    out
}

pub fn build(text: &str) -> Arc<dyn Format> {
    hyperslab_formats::build(&text.parse::<Stack>().unwrap().format).unwrap()
}

/// Runs the suite; rank 0 says how many checks passed. With `HYPERSLAB_SHOW_IGNORED` also which were left out, and why.
pub fn run(job: &MpiJob, stack: &str) {
    let tested = stacks().into_iter().find(|tested| tested.text == stack).unwrap();
    let processes = Processes { world: job.world(), verdicts: job.world() };
    let applies = |name: &str| !tested.without.iter().any(|part| name.contains(part));
    let format = build(stack);
    let tally = conformance::run_in_job(&processes, &format, tested.overrides, applies).unwrap();
    if processes.world.rank() == 0 {
        println!("{} checks passed, {} left out", tally.passed, tally.ignored.len());
        if std::env::var_os("HYPERSLAB_SHOW_IGNORED").is_some() {
            tally.ignored.iter().for_each(|(name, reason)| println!("  {name}: {reason}"));
        }
    }
    assert!(tally.failed.is_empty(), "{:#?}", tally.failed);
    if processes.world.size() == 1 && format.caps().data.readable {
        model::equals_the_oracle(&format, SEQUENCES).unwrap();
    }
}
