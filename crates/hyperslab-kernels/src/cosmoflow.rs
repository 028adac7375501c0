//! Training reads as CosmoFlow makes them: whole samples of four-dimensional data, in another order each epoch.

mod shuffle;
mod steps;

use crate::named::{Files, Growth, Kernel, Phase, SEED, Values, key};
use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, WORKLOAD_VERSION, Workload};
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, Fill, Result, dims};
use std::time::Duration;
use steps::{Filling, Training};

/// What one read brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadUnit {
    /// A sample.
    Sample,
    /// All samples of a batch that lie in a file.
    Batch,
}

/// Parameters of the training reads.
#[derive(Debug, Clone, PartialEq)]
pub struct CosmoFlow {
    /// Number of ranks.
    pub ranks: usize,
    /// Beginning of the file names, relative to the run's directory.
    pub file: String,
    /// Samples of the data set.
    pub samples: u64,
    /// Files that they are in, the same number in each.
    pub files: u64,
    /// Extents of a sample, slowest dimension first.
    pub sample: Dims,
    /// Type of its elements.
    pub dtype: Datatype,
    /// Samples of a rank between two training steps.
    pub batch: u64,
    /// What one read brings.
    pub unit: ReadUnit,
    /// Emulated training time of a batch.
    pub compute: Duration,
    /// Seed of the data and of the order of samples.
    pub seed: u64,
}

/// The most samples of a data set: every rank works out the order of all.
const MOST_SAMPLES: u64 = 1 << 26;
/// The most files of a data set.
const MOST_FILES: u64 = 1 << 16;
/// The largest seed: files say theirs as a signed integer.
const LARGEST_SEED: u64 = i64::MAX as u64;

/// The kernel by name.
pub const KERNEL: Kernel = Kernel {
    name: "cosmoflow",
    about: "training reads: epochs of shuffled samples, with emulated training in between",
    stands_for: "CosmoFlow of MLPerf HPC, a network that is trained with cubes of simulated universes of 128^3 cells and four \
        channels, 16-bit integers (published: 524288 samples, about 16 MiB each). The data set is written first, a sample per \
        call. Then in every epoch all samples are read once, in an order that is shuffled anew: each rank takes batches, \
        and pauses after each as long as the training step would take. Every epoch is a case by itself, so that the table \
        has a rate for each; with --cold only the first epoch is cold.",
    keys: &[
        key("samples", "N", "32", "samples of the data set"),
        key("files", "N", "1", "files that they are in; a divisor of samples"),
        key("sample", "ZxYxXxC", "32x32x32x4", "extents of a sample; published 128x128x128x4"),
        key("dtype", "TYPE", "<u2", "type of an element, as in numpy: |u1, <u2, <f4"),
        key("batch", "N", "4", "samples of a rank between two training steps"),
        key("read", "sample|batch", "sample", "a read for each sample, or one for those of a batch in a file"),
        key("epochs", "N", "2", "epochs"),
        key("compute", "TIME", "2ms", "emulated training time of a batch"),
        SEED,
    ],
    ranks: 2,
    growth: Growth::Total("samples"),
    plan,
};

fn plan(values: &Values, ranks: usize, _: &dyn Files) -> Result<Vec<Phase>> {
    let kernel = CosmoFlow {
        ranks,
        file: "cosmoflow".into(),
        samples: values.positive("samples")?,
        files: values.positive("files")?,
        sample: values.extents("sample")?,
        dtype: values.text("dtype").parse()?,
        batch: values.positive("batch")?,
        unit: values.word("read", &[("sample", ReadUnit::Sample), ("batch", ReadUnit::Batch)])?,
        compute: values.time("compute")?,
        seed: values.number("seed")?,
    };
    let mut phases = vec![Phase::new("cosmoflow write", kernel.write()?)];
    for epoch in 0..values.count("epochs")? as u64 {
        let label = format!("cosmoflow epoch {}", epoch + 1);
        phases.push(Phase { revisits: epoch > 0, ..Phase::new(label, kernel.epoch(epoch)?) });
    }
    Ok(phases)
}

impl CosmoFlow {
    /// Creates the files, and writes all samples, a call for each.
    pub fn write(&self) -> Result<Workload> {
        let header = self.header("write", format!("write {} samples", self.samples), FileDeclaration::created)?;
        crate::batches::workload(header, Filling(self.clone()))
    }

    /// Reads every sample once, in the order of epoch number `epoch`.
    pub fn epoch(&self, epoch: u64) -> Result<Workload> {
        let about = format!("read {} samples in batches of {}, epoch {}", self.samples, self.batch, epoch + 1);
        let header = self.header("epoch", about, FileDeclaration::read)?;
        crate::batches::workload(header, Training { kernel: self.clone(), epoch })
    }

    fn samples_per_file(&self) -> u64 {
        self.samples / self.files
    }

    fn header(&self, name: &str, about: String, declare: fn(String) -> FileDeclaration) -> Result<Header> {
        self.check()?;
        let shape: Dims = [self.samples_per_file()].into_iter().chain(self.sample.iter().copied()).collect();
        let file = |number| match self.files {
            1 => format!("{}.h5", self.file),
            _ => format!("{}_{number:05}.h5", self.file),
        };
        Ok(Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: format!("cosmoflow-{name}"),
            about: format!("{about} of {} {}", dims::display(&self.sample), self.dtype),
            ranks: self.ranks,
            seed: self.seed,
            files: (0..self.files).map(|number| declare(file(number))).collect(),
            arrays: vec![ArrayDeclaration { spec: ArraySpec::new(self.dtype.clone(), &shape), fill: Fill::Random }],
        })
    }

    fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::invalid("plan training reads", message));
        if self.ranks == 0 || self.batch == 0 || self.sample.is_empty() || self.sample.contains(&0) {
            return bad("ranks, batch and every extent of a sample must be at least 1".into());
        }
        if self.samples == 0 || self.samples > MOST_SAMPLES {
            return bad(format!("{} samples; 1 to {MOST_SAMPLES} are possible", self.samples));
        }
        if self.files == 0 || self.files > MOST_FILES || !self.samples.is_multiple_of(self.files) {
            return bad(format!("{} samples in {} files; use a divisor up to {MOST_FILES}", self.samples, self.files));
        }
        if self.seed > LARGEST_SEED {
            return bad(format!("seed {}; at most {LARGEST_SEED} is possible", self.seed));
        }
        let all: Dims = [self.samples].into_iter().chain(self.sample.iter().copied()).collect();
        dims::byte_count(&all, self.dtype.size()).map(|_| ())
    }
}
