//! In how many rounds of calls every client has its targets for itself, by geometry alone.

use crate::simulate::{SimulateOptions, chosen_system, inputs, placement, striped};
use anyhow::{Context, Result};
use hyperslab_core::parse_stacks;
use hyperslab_core::workload::Step;
use hyperslab_sim::{FileLayout, StripePlacement};
use std::collections::HashMap;

/// Ranges of a call that are looked at.
const MOST_RANGES: usize = 1 << 16;

/// The share of rounds; a round is the k-th write of every rank.
pub fn share(options: &SimulateOptions) -> Result<f64> {
    let input = options.input.as_ref().context("nothing is to be simulated")?;
    let system = chosen_system::of(options)?;
    let stack = parse_stacks(options.stack.as_deref().unwrap_or("hdf5"))?.remove(0);
    let case = inputs::cases(options, input, &stack)?.into_iter().next().context("nothing is to be simulated")?;
    let run = striped(&placement(options, &system)?, &stack, &system)?;
    let targets = system.targets();
    let stripes = StripePlacement { size: run.stripe_size, count: run.stripe_count, first: 0, targets };
    // By round and target: the rank that is there, if it is alone.
    let mut rounds: Vec<HashMap<u64, Option<usize>>> = Vec::new();
    for rank in 0..case.workload.header.ranks {
        let mut layout = FileLayout::of(&stack)?;
        let mut placements = HashMap::new();
        let mut round = 0;
        for step in case.workload.steps(rank)? {
            match step? {
                Step::Create { slot, array, .. } => {
                    let spec = &case.workload.header.arrays[array as usize].spec;
                    placements.insert(slot, layout.place(spec)?);
                }
                Step::Write { slot, selection, .. } => {
                    let placement = placements.get(&slot).context("an array is written that nobody made")?;
                    if rounds.len() <= round {
                        rounds.push(HashMap::new());
                    }
                    for extent in placement.ranges(&selection, MOST_RANGES)?.extents {
                        for range in stripes.ranges(extent.offset, extent.len) {
                            let there = rounds[round].entry(range.target).or_insert(Some(rank));
                            *there = there.filter(|other| *other == rank);
                        }
                    }
                    round += 1;
                }
                _ => {}
            }
        }
    }
    let alone = rounds.iter().filter(|round| round.values().all(Option::is_some)).count();
    Ok(alone as f64 / rounds.len().max(1) as f64)
}
