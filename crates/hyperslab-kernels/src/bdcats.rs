//! BD-CATS-IO by name: the particle read of a clustering code.

use crate::named::{Files, Growth, Kernel, Phase, SEED, Values};
use crate::vpic::{COMPUTE, FILE, MEMORY, PARTICLES, STEPS, TOGETHER, particles};
use hyperslab_core::Result;

/// The kernel by name.
pub const KERNEL: Kernel = Kernel {
    name: "bdcats",
    about: "particles of a simulation, read in time steps for a cluster analysis",
    stands_for: "BD-CATS-IO, the input of a clustering code for particles (h5bench's read, FULL). Each rank reads its range of all \
        eight arrays that vpic writes, time step after time step. It reads the file of vpic in its directory; one that is not \
        there is made first, unmeasured, and removed afterwards.",
    keys: &[PARTICLES, STEPS, MEMORY, FILE, TOGETHER, COMPUTE, SEED],
    ranks: 2,
    growth: Growth::PerRank("particles"),
    plan,
};

fn plan(values: &Values, ranks: usize, _: &dyn Files) -> Result<Vec<Phase>> {
    Ok(vec![Phase::new("bdcats read", particles(values, ranks)?.read()?)])
}
