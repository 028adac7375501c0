//! From counts and a profile to seconds.

use crate::configuration::Class;
use crate::counts::Part;
use crate::epochs::{Epoch, Staging, saturating};
use crate::profile::{Profile, Warmth, part};
use crate::walk::Costs;
use hyperslab_core::Result;
use std::collections::BTreeMap;

/// What a workload would take on a stack.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Seconds of I/O that the slowest rank would see, computing left out.
    pub seconds: f64,
    /// Nine of ten runs take at least so many.
    pub low: f64,
    /// Nine of ten runs take at most so many; infinite if that is not known.
    pub high: f64,
    /// What the seconds are made of; they add up to the seconds, unless transfers go on behind the program's back.
    pub parts: BTreeMap<Part, f64>,
    /// Seconds of I/O that go on while the program computes.
    pub hidden: f64,
}

/// Layers that let transfers go on behind the program's back.
const BEHIND: [&str; 3] = ["async", "cache", "log"];

/// Predicts the time of counted work. `layers` are those of the stack.
pub fn predict(
    costs: &Costs,
    class: Class,
    layers: &[String],
    profile: &Profile,
    warmth: Warmth,
) -> Result<Prediction> {
    let fit = profile.fit(class, warmth)?;
    let rows: Vec<Vec<f64>> = costs.by_rank.iter().map(|work| work.row(warmth)).collect();
    let alone = rows.iter().map(|row| fit.seconds(row)).fold(0.0, f64::max);
    let walked: f64 = rows.iter().map(|row| fit.seconds(row)).sum();
    let all = walked * costs.ranks as f64 / rows.len().max(1) as f64;
    let servers = match class.serialises_ranks() {
        true => 1.0,
        false => profile.servers.get(&class).copied().unwrap_or(1.0),
    };
    let seconds = saturating(alone, all, servers);
    let mut parts: BTreeMap<Part, f64> = BTreeMap::new();
    for row in &rows {
        for (place, (value, each)) in row.iter().zip(&fit.coefficients).enumerate() {
            *parts.entry(part(place)).or_default() += value * each;
        }
    }
    let scale = if walked > 0.0 { seconds / walked } else { 0.0 };
    parts.values_mut().for_each(|part| *part *= scale);
    parts.retain(|_, part| *part > 0.0);
    let (seen, hidden) = match layers.iter().any(|layer| BEHIND.contains(&layer.as_str())) {
        true => seen_behind(costs, seconds, parts.get(&Part::Layer).copied().unwrap_or(0.0)),
        false => (seconds, 0.0),
    };
    let (low, high) = fit.interval.around(seen);
    Ok(Prediction { seconds: seen, low, high, parts, hidden })
}

/// What the program sees of transfers that go on behind, and what it does not.
fn seen_behind(costs: &Costs, seconds: f64, overhead: f64) -> (f64, f64) {
    let steps = costs.epochs.max(1);
    let each = |total: f64| total / steps as f64;
    let compute = costs.compute.as_secs_f64();
    let epoch = Epoch { compute: each(compute), transfer: each(seconds - overhead), overhead: each(overhead) };
    let seen = (epoch.run_behind(steps, Staging::TwoBuffers) - compute).max(overhead);
    (seen.min(seconds), (seconds - seen).max(0.0))
}
