//! What is known of a machine: the file that `train` writes and `predict` reads.

mod profile_serde;

use crate::configuration::Class;
use crate::contention::{ContentionCurve, RankKind};
use crate::counts::{Count, Part};
use crate::fit::Fit;
use crate::layers::LayerCost;
use crate::python_costs::{PythonCosts, PythonLibrary};
use hyperslab_core::{CacheState, Error, ErrorKind, Result};
use std::collections::BTreeMap;

/// The version of the form that this build writes. It reads the two before, too.
pub const PROFILE_VERSION: u32 = 4;

/// What the profile was measured on, as far as it decides whether it holds elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MachineFacts {
    /// Processor model.
    pub processor: String,
    /// Number of processors.
    pub processors: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Type of the file system.
    pub file_system: String,
    /// Device or server behind it.
    pub device: String,
}

impl MachineFacts {
    /// What makes a profile of `other` wrong here; `None` if nothing does.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let words = |what: &str, mine: &dyn std::fmt::Display, theirs: &dyn std::fmt::Display| {
            Some(format!("{what} is {mine} here and {theirs} there"))
        };
        if self.processor != other.processor {
            return words("the processor", &self.processor, &other.processor);
        }
        if self.processors != other.processors {
            return words("the number of processors", &self.processors, &other.processors);
        }
        if self.file_system != other.file_system {
            return words("the file system", &self.file_system, &other.file_system);
        }
        None
    }
}

/// What is known of a machine.
///
/// ```
/// use hyperslab_model::{MachineFacts, Profile};
///
/// let (processor, file_system, device) = ("a processor".into(), "ext4".into(), "/dev/vda".into());
/// let machine = MachineFacts { processor, processors: 2, memory: 8 << 30, file_system, device };
/// let profile = Profile::unmeasured(machine.clone());
/// assert!(Profile::from_json(&profile.to_json()?)?.check_machine(&machine).is_ok());
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Version of the program that measured.
    pub program: String,
    /// Seconds since 1970.
    pub measured: f64,
    /// On what.
    pub machine: MachineFacts,
    /// What each way of storing costs.
    pub fits: BTreeMap<(Class, CacheState), Fit>,
    /// How ranks share each. Threads take turns where nothing is said.
    pub sharing: BTreeMap<(Class, RankKind), ContentionCurve>,
    /// What could not be measured, in words.
    pub missing: Vec<String>,
    /// What layers add, by name.
    pub layers: BTreeMap<String, LayerCost>,
    /// What the alignment of objects changes.
    pub alignment: Vec<Alignment>,
    /// Bytes in a second of a large copy in memory, which no way of storing does without.
    pub copy_rate: Option<f64>,
    /// What libraries of Python add; of those that were not measured what is ordinary.
    pub python: BTreeMap<PythonLibrary, PythonCosts>,
}

/// Time with objects of HDF5 files at multiples of a size, as a multiple of the time without.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alignment {
    /// The size.
    pub bytes: u64,
    /// Of reading.
    pub read: f64,
    /// Of writing.
    pub write: f64,
}

impl Profile {
    /// The coefficients for a way of storing.
    pub fn fit(&self, class: Class, warmth: CacheState) -> Result<&Fit> {
        self.fits.get(&(class, warmth)).ok_or_else(|| {
            let word = if warmth == CacheState::Cold { "cold" } else { "warm" };
            Error::new(ErrorKind::NotFound, "predict", format!("the profile knows nothing of {word} {}", class.name()))
                .hint("run hyperslab train again")
        })
    }

    /// Of a machine that nobody has measured: everything takes what it does on ordinary ones, how far off is not known.
    pub fn unmeasured(machine: MachineFacts) -> Self {
        let fit = Fit { coefficients: default_coefficients(), ..Fit::default() };
        Self {
            program: String::new(),
            measured: 0.0,
            machine,
            fits: Class::ALL.iter().map(|class| ((*class, CacheState::Warm), fit.clone())).collect(),
            sharing: BTreeMap::new(),
            missing: Vec::new(),
            layers: BTreeMap::new(),
            alignment: Vec::new(),
            copy_rate: None,
            python: BTreeMap::new(),
        }
    }

    /// The same for work that takes so many times as long to read and to write as predicted.
    #[must_use]
    pub fn calibrated(mut self, class: Class, warmth: CacheState, [reading, writing]: [f64; 2]) -> Self {
        if let Some(fit) = self.fits.get_mut(&(class, warmth)) {
            let scaled = fit.coefficients.iter_mut().enumerate();
            scaled.for_each(|(place, each)| *each *= if reads(place) { reading } else { writing });
        }
        self
    }

    /// How ranks of a kind share a way of storing; `None` if that was not measured. A library that serialises threads lets
    /// them take turns, whatever was measured.
    pub fn sharing(&self, class: Class, ranks: RankKind) -> Option<ContentionCurve> {
        let known = || self.sharing.get(&(class, ranks)).cloned();
        match ranks {
            RankKind::Threads if class.serialises_ranks() => Some(ContentionCurve::turns()),
            RankKind::Threads => Some(known().unwrap_or_else(ContentionCurve::turns)),
            RankKind::Processes => known(),
        }
    }

    /// What the largest measured alignment that is not above `bytes` changes; nothing if there is none.
    pub fn aligned(&self, bytes: u64) -> Option<&Alignment> {
        self.alignment.iter().filter(|known| known.bytes <= bytes).max_by_key(|known| known.bytes)
    }

    /// The text of the file.
    pub fn to_json(&self) -> Result<String> {
        profile_serde::to_json(self)
    }

    /// Reads the text of a file. Refuses other versions and what makes no sense.
    pub fn from_json(text: &str) -> Result<Self> {
        profile_serde::from_json(text)
    }

    /// Refuses a profile of another machine.
    pub fn check_machine(&self, here: &MachineFacts) -> Result<()> {
        match here.difference(&self.machine) {
            None => Ok(()),
            Some(difference) => {
                Err(Error::unsupported("read profile", format!("it is of another machine: {difference}"))
                    .hint("run hyperslab train here, or pass --foreign to use it all the same"))
            }
        }
    }
}

/// The name of a coefficient in profiles, by its place in a row.
pub(crate) fn variable(place: usize) -> Option<(&'static str, Count)> {
    let kinds = Count::ALL.len();
    let direction = if place < kinds { "read" } else { "write" };
    Count::ALL.get(place % kinds).filter(|_| place < 2 * kinds).map(|&count| (direction, count))
}

/// What is ordinary for every place of a row.
pub fn default_coefficients() -> Vec<f64> {
    (0..).map_while(variable).map(|(_, count)| count.ordinary()).collect()
}

/// The least for every place of a row, of counts whose seconds were measured by themselves: `reading` and `writing`.
pub fn least(reading: &[(Count, f64)], writing: &[(Count, f64)]) -> Vec<f64> {
    let of = |(direction, count): (&str, Count)| {
        let known = if direction == "read" { reading } else { writing };
        known.iter().find(|(known, _)| *known == count).map_or(0.0, |(_, seconds)| *seconds)
    };
    (0..).map_while(variable).map(of).collect()
}

/// The part of the time that a place of a row explains.
pub(crate) fn part(place: usize) -> Part {
    match variable(place) {
        Some((_, count)) => count.part(),
        None => Part::Metadata,
    }
}

/// Whether a place of a row is of reading.
pub(crate) fn reads(place: usize) -> bool {
    place < Count::ALL.len()
}
