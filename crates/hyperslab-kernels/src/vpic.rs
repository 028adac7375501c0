//! VPIC-IO by name: the particle write of a plasma code.

use crate::named::{Files, Growth, Kernel, Phase, SEED, Values, key};
use crate::{FilePattern, MemoryPattern, Particles};
use hyperslab_core::{OptionSpec, Result, TransferMode};

const LAYOUTS: &str = "contiguous|interleaved";

pub(crate) const PARTICLES: OptionSpec = key("particles", "N", "256K", "particles per rank; published runs have 8M");
pub(crate) const STEPS: OptionSpec = key("steps", "N", "4", "time steps");
pub(crate) const MEMORY: OptionSpec =
    key("memory", LAYOUTS, "contiguous", "in memory a buffer per property, or structures of 32 bytes");
pub(crate) const FILE: OptionSpec =
    key("file", LAYOUTS, "contiguous", "in the file an array per property, or one of compounds");
pub(crate) const TOGETHER: OptionSpec = key("collective", "yes|no", "no", "all ranks transfer together");
pub(crate) const COMPUTE: OptionSpec = key("compute", "TIME", "0", "pause between time steps");

/// The kernel by name.
pub const KERNEL: Kernel = Kernel {
    name: "vpic",
    about: "particles of a plasma simulation, written in time steps",
    stands_for: "VPIC-IO, the particle dump of a plasma code (h5bench's write, pattern CC). Each rank writes its range of eight \
        one-dimensional arrays of 4 bytes, x y z px py pz id_1 id_2, in a group per time step; 32 bytes per particle. Weak \
        scaling: every rank adds its particles. bdcats reads what it wrote.",
    keys: &[PARTICLES, STEPS, MEMORY, FILE, TOGETHER, COMPUTE, SEED],
    ranks: 2,
    growth: Growth::PerRank("particles"),
    plan,
};

fn plan(values: &Values, ranks: usize, _: &dyn Files) -> Result<Vec<Phase>> {
    Ok(vec![Phase::new("vpic write", particles(values, ranks)?.write()?)])
}

/// The particles that both kernels speak of.
pub(crate) fn particles(values: &Values, ranks: usize) -> Result<Particles> {
    let interleaved = |key: &str| values.word(key, &[("contiguous", false), ("interleaved", true)]);
    Ok(Particles {
        time_steps: values.positive("steps")?,
        memory: if interleaved("memory")? { MemoryPattern::Interleaved } else { MemoryPattern::Contiguous },
        pattern: if interleaved("file")? { FilePattern::Interleaved } else { FilePattern::Contiguous },
        compute: values.time("compute")?,
        transfer: if values.flag("collective")? { TransferMode::Collective } else { TransferMode::Independent },
        seed: values.number("seed")?,
        ..Particles::new("vpic.h5", ranks, &[values.positive("particles")?])
    })
}
