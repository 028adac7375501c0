//! Published claims beside what is simulated for them.

mod evaluate;
mod scenario;
mod undisturbed;

use anyhow::Result;
use evaluate::ScenarioRuns;
use hyperslab_sim::{PublishedClaim, published_claims};
use scenario::{Quantity, Scenario, scenarios};
use serde::Serialize;

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// Simulated within the tolerance.
    Met,
    /// The winner, the sign or the order is right, the figure is not.
    Direction,
    /// Neither.
    Missed,
    /// A figure that the description of the system was made of.
    Input,
    /// Nothing here answers it.
    NotSimulated,
}

impl ClaimVerdict {
    /// All, the best first.
    pub const ALL: [Self; 5] = [Self::Met, Self::Direction, Self::Missed, Self::Input, Self::NotSimulated];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Direction => "direction",
            Self::Missed => "missed",
            Self::Input => "input",
            Self::NotSimulated => "not simulated",
        }
    }
}

/// A claim that was judged.
#[derive(Debug, Clone)]
pub struct JudgedClaim {
    /// Number in the table, from 1.
    pub number: usize,
    /// What was published.
    pub claim: &'static PublishedClaim,
    /// What is simulated, in the same unit.
    pub simulated: Option<f64>,
    /// Relative error of that.
    pub error: Option<f64>,
    /// What became of it.
    pub verdict: ClaimVerdict,
    /// Pairs of its series that come out in the published order, of all pairs.
    pub ordered: Option<(usize, usize)>,
    /// Why it is not met, or what is assumed.
    pub why: String,
    /// What was simulated: words of `hyperslab simulate`.
    pub commands: Vec<String>,
}

/// Judges all claims of `source`, or all.
pub fn judged(source: Option<&str>, mut progress: impl FnMut(usize, usize)) -> Result<Vec<JudgedClaim>> {
    let scenarios = scenarios()?;
    let wanted = |one: &&Scenario| source.is_none_or(|source| published_claims()[one.claim - 1].source == source);
    let chosen: Vec<&Scenario> = scenarios.iter().filter(wanted).collect();
    let mut runs = ScenarioRuns::default();
    let mut all = Vec::with_capacity(chosen.len());
    for (at, scenario) in chosen.iter().enumerate() {
        progress(at, chosen.len());
        let claim = &published_claims()[scenario.claim - 1];
        let simulated = match scenario.quantity {
            Quantity::None => None,
            _ => Some(runs.figure(scenario, unit(&claim.unit))?),
        };
        all.push((*scenario, claim, simulated));
    }
    Ok(all.iter().map(|(scenario, claim, simulated)| judge(scenario, claim, *simulated, &all)).collect())
}

type Simulation<'a> = (&'a Scenario, &'static PublishedClaim, Option<f64>);

fn published(scenario: &Scenario, claim: &PublishedClaim) -> Option<f64> {
    scenario.value.or_else(|| claim.value.parse().ok())
}

fn judge(
    scenario: &Scenario,
    claim: &'static PublishedClaim,
    simulated: Option<f64>,
    all: &[Simulation<'_>],
) -> JudgedClaim {
    let known = published(scenario, claim);
    let error = simulated.zip(known).map(|(found, known)| found / known - 1.0);
    let ordered = ordered(scenario, claim, simulated, all);
    let verdict = verdict(scenario, known, simulated, ordered);
    let commands = [&scenario.run, &scenario.over].into_iter().flatten().cloned().collect();
    let why = match &scenario.circular {
        Some(circular) => circular.clone(),
        None if verdict == ClaimVerdict::Met || verdict == ClaimVerdict::Input => String::new(),
        None => scenario.why.clone(),
    };
    let error = error.filter(|_| scenario.quantity != Quantity::Order);
    JudgedClaim { number: scenario.claim, claim, simulated, error, verdict, ordered, why, commands }
}

/// Pairs of a claim with others of its series that have the published order. Figures within a twentieth have none.
fn ordered(
    scenario: &Scenario,
    claim: &PublishedClaim,
    simulated: Option<f64>,
    all: &[Simulation<'_>],
) -> Option<(usize, usize)> {
    let (series, here, found) = (scenario.series.as_ref()?, published(scenario, claim)?, simulated?);
    let (mut right, mut pairs) = (0, 0);
    for (other, claim, simulated) in all.iter().filter(|(other, ..)| other.series.as_ref() == Some(series)) {
        let (Some(there), Some(other_found)) = (published(other, claim), *simulated) else { continue };
        let apart = (there / here).ln().abs();
        if apart > 0.05 {
            pairs += 1;
            let simulated = (other_found / found).ln();
            right += usize::from(simulated.abs() > 0.01 && (there > here) == (simulated > 0.0));
        }
    }
    (pairs > 0).then_some((right, pairs))
}

/// Relative errors of times and rates, and of ratios, that are within the tolerance; and the factor of saturation points.
const TIMES: f64 = 0.15;
const RATIOS: f64 = 0.20;
const SATURATION: f64 = 1.5;

fn verdict(
    scenario: &Scenario,
    known: Option<f64>,
    simulated: Option<f64>,
    ordered: Option<(usize, usize)>,
) -> ClaimVerdict {
    let Some(found) = simulated else { return ClaimVerdict::NotSimulated };
    let Some(known) = known else { return ClaimVerdict::NotSimulated };
    let within = |tolerance: f64| {
        let above = scenario.bound.as_deref() == Some("lower") && found >= known;
        above || (found / known - 1.0).abs() <= tolerance
    };
    let in_order = ordered.is_some_and(|(right, pairs)| right == pairs);
    let (met, direction) = match scenario.quantity {
        Quantity::None => return ClaimVerdict::NotSimulated,
        Quantity::Input => return if within(TIMES) { ClaimVerdict::Input } else { ClaimVerdict::Missed },
        Quantity::Rate => (within(TIMES), in_order),
        Quantity::Order => (false, in_order),
        Quantity::Times | Quantity::Ratio => {
            let side = (found > 1.0) == (known > 1.0);
            (within(RATIOS) && side, side)
        }
        Quantity::Gain => {
            let side = (found > 0.0) == (known > 0.0);
            (within(RATIOS) && side, side)
        }
        Quantity::Undisturbed => (within(RATIOS), false),
        Quantity::Saturation => ((found / known).ln().abs() <= SATURATION.ln(), false),
    };
    match (met, direction) {
        // What went in comes out: that is no success.
        (true, _) if scenario.circular.is_some() => ClaimVerdict::Input,
        (true, _) => ClaimVerdict::Met,
        (false, true) => ClaimVerdict::Direction,
        (false, false) => ClaimVerdict::Missed,
    }
}

/// What a unit of a claim is in bytes, seconds or numbers.
fn unit(name: &str) -> f64 {
    match name {
        "GB/s" => 1e9,
        "MB/s" => 1e6,
        "MiB/s" => 1_048_576.0,
        "GiB/s" => f64::from(1 << 30),
        "TiB/s" => (1_u64 << 40) as f64,
        _ => 1.0,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_has_a_scenario_or_a_reason() {
        for scenario in scenarios().unwrap() {
            let simulated = scenario.quantity != Quantity::None;
            assert!(simulated || !scenario.why.is_empty(), "claim {}", scenario.claim);
            let known = published(&scenario, &published_claims()[scenario.claim - 1]);
            assert!(!simulated || known.is_some(), "claim {} has no figure", scenario.claim);
        }
    }

    #[test]
    fn what_went_in_is_no_success() {
        let all = scenarios().unwrap();
        let circular = all.iter().find(|one| one.circular.is_some() && one.quantity == Quantity::Rate).unwrap();
        assert_eq!(verdict(circular, Some(1.0), Some(1.0), None), ClaimVerdict::Input);
        let times = all.iter().find(|one| one.quantity == Quantity::Times && one.bound.is_none()).unwrap();
        for (found, expected) in [(2.2, ClaimVerdict::Met), (1.1, ClaimVerdict::Direction), (0.9, ClaimVerdict::Missed)]
        {
            assert_eq!(verdict(times, Some(2.0), Some(found), None), expected);
        }
    }
}
