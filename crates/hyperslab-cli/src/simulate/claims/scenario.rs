//! What is simulated for each published claim (data/claim_scenarios.json): the words of a `hyperslab simulate` that anybody can repeat.

use anyhow::{Context, Result, ensure};
use hyperslab_sim::published_claims;
use serde::Deserialize;

const SCENARIOS: &str = include_str!("../../../data/claim_scenarios.json");

/// Which figure of a simulation a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Nothing here answers it.
    None,
    /// A figure of the description of a system.
    Input,
    /// Bytes per second of I/O that the program sees.
    Rate,
    /// How many times faster `run` is than `over`.
    Times,
    /// By how much faster it is.
    Gain,
    /// Time of `run`, of that of `over`.
    Ratio,
    /// Ranks from which on the rate no longer grows.
    Saturation,
    /// Seconds, of which only the order is judged.
    Order,
    /// Share of rounds in which all clients have targets for themselves.
    Undisturbed,
}

/// What is simulated for a claim.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Number of the claim in the table, from 1.
    pub claim: usize,
    /// Its metric, so that a table that has changed is noticed.
    pub metric: String,
    /// What is judged.
    pub quantity: Quantity,
    /// Words of `simulate`.
    #[serde(default)]
    pub run: Option<String>,
    /// What it is compared with.
    #[serde(default)]
    pub over: Option<String>,
    /// The case that counts, where `run` has several.
    #[serde(default)]
    pub case: Option<String>,
    /// A workflow that stands for the word CONFIG.
    #[serde(default)]
    pub config: Option<serde_json::Value>,
    /// Ranks that are tried for a saturation.
    #[serde(default)]
    pub ranks: Vec<u32>,
    /// Ranks of a unit of the claim.
    #[serde(default)]
    pub ranks_per_unit: Option<f64>,
    /// Claims of one series are in the published order.
    #[serde(default)]
    pub series: Option<String>,
    /// `lower`: any value above the published one holds.
    #[serde(default)]
    pub bound: Option<String>,
    /// What stands for a value that was published in words.
    #[serde(default)]
    pub value: Option<f64>,
    /// System of an input.
    #[serde(default)]
    pub system: Option<String>,
    /// Names of figures of its description; their product is the input.
    #[serde(default)]
    pub field: Option<String>,
    /// Which figure was set from this claim, so that it comes out because it went in.
    #[serde(default)]
    pub circular: Option<String>,
    /// What is assumed, or why the claim is not met or not simulated.
    #[serde(default)]
    pub why: String,
}

/// One for each claim, in the order of the table.
pub fn scenarios() -> Result<Vec<Scenario>> {
    let all: Vec<Scenario> = serde_json::from_str(SCENARIOS).context("read scenarios of claims")?;
    let claims = published_claims();
    ensure!(all.len() == claims.len(), "{} scenarios for {} claims", all.len(), claims.len());
    for (number, (scenario, claim)) in all.iter().zip(claims).enumerate() {
        let fits = scenario.claim == number + 1 && scenario.metric == claim.metric;
        ensure!(fits, "the scenario of claim {} is that of another one", number + 1);
    }
    Ok(all)
}
