//! Kernels by name: what each stands for, its keys with their defaults, and the workloads that they make.

mod values;

pub use values::Values;

use crate::e3sm::{self, Decomposition};
use crate::{amrex, bdcats, btio, cosmoflow, flash, macsio, openpmd, vl_stream, vpic};
use hyperslab_core::workload::Workload;
use hyperslab_core::{OptionSpec, Result};

/// An application kernel.
#[derive(Debug)]
pub struct Kernel {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// The program that it stands for, what is written or read, and in which order.
    pub stands_for: &'static str,
    /// Its keys; without any it runs on a laptop within seconds.
    pub keys: &'static [OptionSpec],
    /// Number of ranks unless the user says otherwise.
    pub ranks: usize,
    /// How its work follows the number of ranks.
    pub growth: Growth,
    /// Makes its phases out of keys, a number of ranks, and files that keys name.
    pub plan: fn(&Values, usize, &dyn Files) -> Result<Vec<Phase>>,
}

/// The key that says how much work there is, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// For each rank: with the same value, more ranks do more.
    PerRank(&'static str),
    /// For all ranks together: with the same value, more ranks have less each.
    Total(&'static str),
    /// No single key.
    Other,
}

/// Reads files that keys name; kernels do no I/O themselves.
pub trait Files {
    /// The maps in one converted file, or in one file of PIO's text for each, D1 first.
    fn e3sm_maps(&self, paths: &[&str]) -> Result<Vec<Decomposition>>;
}

/// A workload of a kernel that is measured by itself.
#[derive(Debug)]
pub struct Phase {
    /// The kernel's name and what of it this is.
    pub label: String,
    /// What is done.
    pub workload: Workload,
    /// An earlier phase has read the same data just before, so that a cold run of the kernel finds them in memory here.
    pub revisits: bool,
    /// The layer that it is meant to run on.
    pub layer: Option<&'static str>,
}

impl Phase {
    /// One that meets its data for the first time.
    pub fn new(label: impl Into<String>, workload: Workload) -> Self {
        Self { label: label.into(), workload, revisits: false, layer: None }
    }
}

/// All kernels, in alphabetical order.
pub fn kernels() -> &'static [Kernel] {
    static ALL: [Kernel; 12] = [
        amrex::KERNEL,
        bdcats::KERNEL,
        btio::KERNEL,
        cosmoflow::KERNEL,
        e3sm::F,
        e3sm::G,
        e3sm::I,
        flash::KERNEL,
        macsio::KERNEL,
        openpmd::KERNEL,
        vl_stream::KERNEL,
        vpic::KERNEL,
    ];
    &ALL
}

impl Kernel {
    /// The kernel of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        kernels().iter().find(|kernel| kernel.name == name)
    }

    /// The phases for keys written as `KEY=VALUE`.
    pub fn phases<T: AsRef<str>>(&self, keys: &[T], ranks: usize, files: &dyn Files) -> Result<Vec<Phase>> {
        (self.plan)(&Values::parse(self.name, self.keys, keys)?, ranks, files)
    }
}

/// A key and its default.
pub(crate) const fn key(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    about: &'static str,
) -> OptionSpec {
    OptionSpec { name, value, default, about }
}

/// The key that all kernels have.
pub(crate) const SEED: OptionSpec = key("seed", "N", "1", "seed of the data");
/// The key of kernels that were published with transfers of all ranks together.
pub(crate) const COLLECTIVE: OptionSpec = key("collective", "yes|no", "yes", "all ranks transfer together");
