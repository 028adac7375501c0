//! A stack with what a workload would take on it.

use hyperslab_core::Stack;
use hyperslab_core::workload::Workload;
use hyperslab_model::{
    Configuration, Costs, Count, Counts, Part, Prediction, Profile, PythonLibrary, Stored, footprint, seconds_in_python,
};
use std::collections::{BTreeMap, BTreeSet};

/// One workload on the stack, counted and predicted.
pub struct ScoredWorkload {
    /// What is done.
    pub workload: Workload,
    /// On what.
    pub configuration: Configuration,
    /// What that makes the stack do.
    pub costs: Costs,
    /// What it takes.
    pub prediction: Prediction,
}

/// All of them together.
pub struct ScoredStack {
    /// The stack.
    pub stack: Stack,
    /// Seconds of all workloads, one after the other.
    pub seconds: f64,
    /// Nine of ten take at least so many.
    pub low: f64,
    /// Nine of ten take at most so many.
    pub high: f64,
    /// Seconds that go on behind the program's back.
    pub hidden: f64,
    /// What is done.
    pub works: Vec<ScoredWorkload>,
}

/// What a stack takes on storage and in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// All containers.
    pub stored: Stored,
    /// The most of all workloads.
    pub memory: u64,
}

impl ScoredStack {
    /// Adds up.
    pub fn new(stack: Stack, works: Vec<ScoredWorkload>) -> Self {
        let total = |of: &dyn Fn(&Prediction) -> f64| works.iter().fold(0.0, |sum, work| sum + of(&work.prediction));
        Self {
            stack,
            seconds: total(&|found| found.seconds),
            low: total(&|found| found.low),
            high: total(&|found| found.high),
            hidden: total(&|found| found.hidden),
            works,
        }
    }

    /// Seconds of a part.
    pub fn part(&self, part: Part) -> f64 {
        self.works.iter().filter_map(|work| work.prediction.parts.get(&part)).fold(0.0, |sum, seconds| sum + seconds)
    }

    /// What is done most of the time.
    pub fn most(&self) -> &'static str {
        let largest = Part::ALL.into_iter().max_by(|a, b| self.part(*a).total_cmp(&self.part(*b)));
        largest.filter(|part| self.part(*part) > 0.0).map_or("", Part::name)
    }

    /// How often something is done.
    pub fn count(&self, count: Count) -> u64 {
        let all = self.works.iter().map(|work| work.costs.total()[count]);
        all.fold(0, u64::saturating_add)
    }

    /// Whether chunks are compressed.
    pub fn codes(&self) -> bool {
        let coded = |counts: &Counts| {
            [
                Count::DeflateEncoded,
                Count::DeflateDecoded,
                Count::ZstdEncoded,
                Count::ZstdDecoded,
                Count::FastEncoded,
                Count::FastDecoded,
            ]
            .iter()
            .any(|count| counts[*count] > 0)
        };
        self.works.iter().any(|work| coded(&work.costs.total()))
    }

    /// The same by the library of Python that stores so, and its name; `None` for what no such library does.
    pub fn in_python(&self, profile: &Profile) -> Option<(PythonLibrary, f64)> {
        let first = self.works.first().filter(|_| self.stack.layers.is_empty())?;
        let libraries = [PythonLibrary::H5py, PythonLibrary::ZarrPython];
        let library = libraries.into_iter().find(|one| one.stores(first.configuration.class()))?;
        let of = |work: &ScoredWorkload| {
            seconds_in_python(library, &profile.python, &work.costs, work.prediction.seconds, profile.copy_rate)
        };
        Some((library, self.works.iter().map(of).sum()))
    }

    /// Whether it is predicted to take exactly as long as another, and saves no room beside it.
    pub fn same_as(&self, other: &Self) -> bool {
        let equal = (self.seconds - other.seconds).abs() <= 1e-9 * other.seconds;
        equal && (other.codes() || !self.codes())
    }

    /// Layers whose costs the profile does not know.
    pub fn unknown(&self) -> BTreeSet<&str> {
        self.works.iter().flat_map(|work| work.prediction.unknown.iter().map(String::as_str)).collect()
    }

    /// What it takes elsewhere. A container that several workloads use counts once.
    pub fn sizes(&self) -> hyperslab_core::Result<Sizes> {
        let (mut by_name, mut memory) = (BTreeMap::<String, Stored>::new(), 0);
        for work in &self.works {
            let found = footprint(&work.workload, &work.configuration, &work.costs)?;
            memory = memory.max(found.memory);
            for (name, stored) in found.stored {
                let known = by_name.entry(name).or_default();
                if stored.elements >= known.elements {
                    *known = stored;
                }
            }
        }
        let stored = by_name.values().fold(Stored::default(), |sum, one| Stored {
            elements: sum.elements.saturating_add(one.elements),
            rest: sum.rest.saturating_add(one.rest),
            files: sum.files.saturating_add(one.files),
        });
        Ok(Sizes { stored, memory })
    }
}

impl Sizes {
    /// Bytes on storage.
    pub fn bytes(&self) -> u64 {
        self.stored.elements.saturating_add(self.stored.rest)
    }
}
