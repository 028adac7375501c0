//! The description of a system: what its parts can do, with the source of each figure (docs/system-format.md).

use crate::timing::TimingParameters;
use hyperslab_core::{Error, ErrorKind, Result, json_problem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the form that this build reads and writes.
pub const SYSTEM_VERSION: u32 = 1;
/// The most bytes of a description.
pub const MOST_BYTES: usize = 1 << 20;

/// The most targets of all servers.
const MOST_TARGETS: f64 = 65536.0;

/// A number and where it is from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced {
    /// The number, in the unit that the field's name says.
    pub value: f64,
    /// Publication, data sheet, or `assumed: ` and why.
    pub source: String,
}

impl Sourced {
    /// A value and its source.
    pub fn new(value: f64, source: impl Into<String>) -> Self {
        Self { value, source: source.into() }
    }

    /// Whether nobody has published or measured it.
    pub fn is_assumed(&self) -> bool {
        self.source.starts_with("assumed")
    }
}

/// A system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Version of the form.
    #[serde(rename = "hyperslab_system")]
    pub version: u32,
    /// A short name.
    pub name: String,
    /// One line for people.
    pub about: String,
    /// Machines that programs run on.
    pub nodes: Nodes,
    /// Bytes per second that cross the network between all nodes and storage; absent: no limit but the links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_rate: Option<Sourced>,
    /// Who creates and opens files.
    pub metadata: MetadataServers,
    /// Who holds the bytes.
    pub storage: ObjectStorage,
    /// A fast store that all nodes share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_buffer: Option<BurstBuffer>,
    /// What others take of the storage.
    pub background: Background,
    /// What the model charges.
    pub timing: TimingParameters,
    /// Where that is from.
    pub calibration: Calibration,
}

/// Machines that programs run on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// How many there are.
    pub count: Sourced,
    /// Ranks of each, unless a run says otherwise.
    pub ranks: Sourced,
    /// Bytes per second that all ranks of a node copy in memory.
    pub copy_rate: Sourced,
    /// Bytes per second of a node's link.
    pub link_rate: Sourced,
    /// Bytes that a node's file system client holds back or reads ahead.
    pub client_cache: Sourced,
    /// Storage of the node itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_write_rate: Option<Sourced>,
    /// The same when reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_read_rate: Option<Sourced>,
    /// Bytes per second between a node's GPUs and its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_rate: Option<Sourced>,
}

/// Metadata servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetadataServers {
    /// How many work on the files of one program.
    pub servers: Sourced,
    /// Files that one creates or opens in a second.
    pub operations: Sourced,
    /// Seconds that creating or opening a shared file takes the program.
    pub open_seconds: Sourced,
}

/// Object servers and their targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectStorage {
    /// Servers.
    pub servers: Sourced,
    /// Targets of each.
    pub targets: Sourced,
    /// Bytes per second of a server's link.
    pub server_rate: Sourced,
    /// Bytes per second that a target writes.
    pub write_rate: Sourced,
    /// Bytes per second that a target reads.
    pub read_rate: Sourced,
    /// Bytes of a stripe unless a run says otherwise.
    pub stripe_size: Sourced,
    /// Targets of a file unless a run says otherwise.
    pub stripe_count: Sourced,
}

/// A store that all nodes share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstBuffer {
    /// Servers.
    pub servers: Sourced,
    /// Bytes per second of each.
    pub rate: Sourced,
}

/// Load of others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Part of the servers' time that others take on an ordinary day.
    pub load: f64,
    /// Standard deviation of the logarithm of a run's time from day to day.
    pub sigma: f64,
}

/// How the timing was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// In words: which runs.
    pub source: String,
    /// Number of runs; 0: none, the timing is of other systems.
    pub runs: usize,
    /// Largest number of clients in these runs.
    pub most_clients: usize,
    /// Smallest and largest bytes of a call.
    pub calls: [u64; 2],
    /// Absolute errors of the logarithm of times that were left out of the fit, sorted: conformal scores.
    #[serde(default)]
    pub errors: Vec<f64>,
    /// Standard deviations of the logarithms of timings, by name; those that are missing were not fitted.
    #[serde(default)]
    pub deviations: BTreeMap<String, f64>,
}

impl System {
    /// Reads a description; refuses what is no system.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |message: String| Error::new(ErrorKind::Corrupt, "read system", message);
        if text.len() > MOST_BYTES {
            return Err(bad(format!("a description has at most {MOST_BYTES} bytes, this has {}", text.len())));
        }
        let system: Self = serde_json::from_str(text).map_err(|error| bad(json_problem(&error)))?;
        system.check()?;
        Ok(system)
    }

    /// As a description.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Refuses figures that no system has.
    pub fn check(&self) -> Result<()> {
        let bad = |message: String| {
            Err(Error::new(ErrorKind::Corrupt, "read system", message).hint("hyperslab simulate --template prints one"))
        };
        if self.version != SYSTEM_VERSION {
            return bad(format!("version {} of the form; this build reads {SYSTEM_VERSION}", self.version));
        }
        for (name, value, [low, high]) in self.figures() {
            if !(value.value >= low && value.value <= high) {
                return bad(format!("{name} is {}; {low} to {high} are possible", value.value));
            }
            if value.source.trim().is_empty() {
                return bad(format!("{name} has no source; say where it is from, or \"assumed: why\""));
            }
        }
        if self.storage.servers.value * self.storage.targets.value > MOST_TARGETS {
            return bad(format!(
                "{} servers of {} targets; at most {MOST_TARGETS} targets are possible",
                self.storage.servers.value, self.storage.targets.value
            ));
        }
        let Background { load, sigma } = self.background;
        if !(0.0..0.99).contains(&load) || !(0.0..=3.0).contains(&sigma) {
            return bad(format!("a background load of {load} and sigma of {sigma}; 0 to 0.99 and 0 to 3 are possible"));
        }
        let unsorted = self.calibration.errors.windows(2).any(|two| two[0] > two[1]);
        let finite = |value: &f64| value.is_finite() && *value >= 0.0;
        if unsorted || self.calibration.errors.len() > 100_000 || !self.calibration.errors.iter().all(finite) {
            return bad("the errors of the calibration are not sorted numbers of 0 or more".into());
        }
        if !self.calibration.deviations.values().all(finite) {
            return bad("a deviation of the calibration is no number of 0 or more".into());
        }
        self.timing.check()
    }

    /// Every figure with its name and what it may be.
    pub fn figures(&self) -> Vec<(&'static str, &Sourced, [f64; 2])> {
        const RATE: [f64; 2] = [1.0, 1e16];
        const NUMBER: [f64; 2] = [1.0, 1e7];
        let mut all = vec![
            ("nodes.count", &self.nodes.count, NUMBER),
            ("nodes.ranks", &self.nodes.ranks, [1.0, 1e5]),
            ("nodes.copy_rate", &self.nodes.copy_rate, RATE),
            ("nodes.link_rate", &self.nodes.link_rate, RATE),
            ("nodes.client_cache", &self.nodes.client_cache, [0.0, 1e15]),
            ("metadata.servers", &self.metadata.servers, NUMBER),
            ("metadata.operations", &self.metadata.operations, [1e-3, 1e12]),
            ("metadata.open_seconds", &self.metadata.open_seconds, [0.0, 1e4]),
            ("storage.servers", &self.storage.servers, [1.0, 1e5]),
            ("storage.targets", &self.storage.targets, [1.0, 1e4]),
            ("storage.server_rate", &self.storage.server_rate, RATE),
            ("storage.write_rate", &self.storage.write_rate, RATE),
            ("storage.read_rate", &self.storage.read_rate, RATE),
            ("storage.stripe_size", &self.storage.stripe_size, [4096.0, 1e12]),
            ("storage.stripe_count", &self.storage.stripe_count, NUMBER),
        ];
        let optional = [
            ("network_rate", &self.network_rate),
            ("nodes.local_write_rate", &self.nodes.local_write_rate),
            ("nodes.local_read_rate", &self.nodes.local_read_rate),
            ("nodes.gpu_rate", &self.nodes.gpu_rate),
        ];
        all.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?, RATE))));
        if let Some(buffer) = &self.burst_buffer {
            all.extend([("burst_buffer.servers", &buffer.servers, NUMBER), ("burst_buffer.rate", &buffer.rate, RATE)]);
        }
        all
    }

    /// The system with files on its burst buffer: striped over all its servers, which do not seek.
    pub fn at_burst_buffer(&self) -> Result<Self> {
        let Some(buffer) = &self.burst_buffer else {
            let error = Error::invalid("choose storage", format!("{} has no burst buffer", self.name));
            return Err(error.hint("cori has one"));
        };
        let mut system = self.clone();
        let storage = &mut system.storage;
        (storage.servers, storage.targets) = (buffer.servers.clone(), Sourced::new(1.0, "a server is a target"));
        storage.stripe_count = buffer.servers.clone();
        for rate in [&mut storage.server_rate, &mut storage.write_rate, &mut storage.read_rate] {
            *rate = buffer.rate.clone();
        }
        system.timing.seek = 0.0;
        Ok(system)
    }

    /// Targets of all servers.
    pub fn targets(&self) -> u64 {
        ((self.storage.servers.value as u64) * (self.storage.targets.value as u64)).max(1)
    }
}
