//! What limits a run, what would next, and what more of each resource buys.

use crate::layer_effects::LayerEffects;
use crate::simulation::{Simulated, simulate};
use crate::system::System;
use crate::walk::Walked;
use serde::Serialize;

/// A resource and how busy it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourceUse {
    /// What it is, in words.
    pub name: &'static str,
    /// Seconds that it works.
    pub seconds: f64,
    /// Of all transfers' seconds.
    pub share: f64,
}

/// What one more of something buys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gain {
    /// One more of what, in words.
    pub more: &'static str,
    /// Seconds of the run then.
    pub seconds: f64,
}

/// What limits a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunLimits {
    /// Busiest first.
    pub resources: Vec<ResourceUse>,
    /// Ranks beyond which more of them bring no higher rate, if they do as these do.
    pub saturation_ranks: Option<f64>,
    /// One more of each.
    pub gains: Vec<Gain>,
}

/// Works it out for a run that was simulated.
pub fn limits(run: &Simulated, walked: &Walked, system: &System, layers: &LayerEffects) -> RunLimits {
    let stages = &run.stages;
    let all = [
        ("links of nodes", stages.link),
        ("network", stages.network),
        ("object servers", (stages.server - stages.seeks).max(0.0)),
        ("seeks of targets", stages.seeks),
        ("disks of targets", stages.disk),
        ("waiting for calls and ranks", stages.calls),
        ("extent locks", stages.locks),
        ("chunks", stages.chunks),
        ("metadata servers", stages.metadata + run.metadata),
        ("copies in memory or to local storage", run.copies),
    ];
    let whole = stages.total + run.metadata + run.copies;
    let used = |(name, seconds): (&'static str, f64)| ResourceUse {
        name,
        seconds,
        share: if whole > 0.0 { (seconds / whole).min(1.0) } else { 0.0 },
    };
    let mut resources: Vec<ResourceUse> = all.into_iter().filter(|(_, seconds)| *seconds > 0.0).map(used).collect();
    resources.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    // More ranks bring more of what each waits for, and put more on what all share.
    let own = stages.link + stages.calls + stages.chunks + run.copies;
    let shared = stages.server.max(stages.network).max(stages.disk) + stages.locks + stages.metadata;
    let saturation_ranks = (shared > 0.0 && own > 0.0).then(|| walked.ranks as f64 * own / shared);
    RunLimits { resources, saturation_ranks, gains: gains(walked, system, layers) }
}

fn gains(walked: &Walked, system: &System, layers: &LayerEffects) -> Vec<Gain> {
    let with = |change: &dyn Fn(&mut System)| {
        let mut other = system.clone();
        change(&mut other);
        simulate(walked, &other, layers, &other.timing).seconds
    };
    let more = |number: f64| (number + 1.0) / number.max(1.0);
    let servers = more(system.storage.servers.value);
    let nodes = more(walked.nodes.max(1) as f64);
    let metadata = more(system.metadata.servers.value);
    let all: [(&'static str, f64); 4] = [
        (
            "object server",
            with(&|other: &mut System| {
                for rate in
                    [&mut other.storage.server_rate, &mut other.storage.write_rate, &mut other.storage.read_rate]
                {
                    rate.value *= servers;
                }
                other.timing.incast /= servers;
                (other.timing.write_run, other.timing.read_run) =
                    (other.timing.write_run * servers, other.timing.read_run * servers);
            }),
        ),
        (
            "node for the same ranks",
            with(&|other: &mut System| {
                other.nodes.link_rate.value *= nodes;
                other.nodes.copy_rate.value *= nodes;
            }),
        ),
        ("metadata server", with(&|other: &mut System| other.metadata.servers.value *= metadata)),
        (
            "disk on every target",
            with(&|other: &mut System| {
                other.storage.write_rate.value *= 2.0;
                other.storage.read_rate.value *= 2.0;
                other.timing.seek /= 2.0;
            }),
        ),
    ];
    all.into_iter().map(|(more, seconds)| Gain { more, seconds }).collect()
}
