//! What the tables do not say: whether data were right, how far repetitions and ranks differ, and which targets ranks met.

use super::summary::{phases, rates};
use super::table::MEBIBYTE;
use crate::data::Wrong;
use crate::measured::Access;
use crate::plan::Plan;
use crate::settings::{Packets, Placement};
use crate::test_run::TestResult;
use hyperslab_core::units::display_size;
use hyperslab_kernels::ior::{Stripes, targets_per_client};
use hyperslab_run::Spread;

/// The remarks on a test, one a line.
pub fn of(plan: &Plan, result: &TestResult) -> Vec<String> {
    let mut lines = Vec::new();
    if plan.settings.dry_run {
        lines.push(format!("Dry run: nothing was written or read; {} would be.", display_size(plan.bytes())));
    } else {
        lines.extend(verification(plan, result));
    }
    for access in [Access::Write, Access::Read] {
        lines.extend(spread(result, access));
        lines.extend(ranks(result, access));
        lines.extend(stonewall(plan, result, access));
    }
    lines.extend(targets(plan));
    let mut remarks: Vec<&String> = result.rows.iter().flat_map(|row| &row.measured.remarks).collect();
    remarks.dedup();
    lines.extend(remarks.into_iter().map(|remark| format!("Note: {remark}")));
    lines
}

fn verification(plan: &Plan, result: &TestResult) -> Vec<String> {
    let settings = &plan.settings;
    if result.keeps_nothing {
        return vec![format!("Not verified: {} keeps no data.", plan.stack)];
    }
    if !settings.check_write && !settings.check_read {
        return vec!["Not verified: -R compares what is read, -W what was written.".into()];
    }
    let reads: Vec<&Wrong> = phases(result, Access::Read).iter().map(|phase| &phase.wrong).collect();
    let checks = &result.checked_writes.wrong;
    let all = || std::iter::once(checks).chain(reads.iter().copied());
    let sum = |which: fn(&Wrong) -> u64| all().map(which).sum::<u64>();
    let compared = sum(|wrong| wrong.compared);
    let rule = match settings.packets {
        Packets::ByPlace => "every element follows from its place",
        _ => "IOR's words",
    };
    let bytes = sum(|wrong| wrong.bytes);
    if bytes == 0 {
        let how = if settings.check_read && settings.check_write {
            "after the writes and in the reads"
        } else if settings.check_write {
            "after the writes"
        } else {
            "in the reads"
        };
        return vec![format!("Verified: {} were compared {how}, all right ({rule}).", display_size(compared))];
    }
    let transfers = sum(|wrong| wrong.transfers);
    let first = all().find_map(|wrong| wrong.first.clone()).unwrap_or_default();
    vec![format!("WRONG DATA: {bytes} of {compared} bytes, in {transfers} transfers. First: {first}.")]
}

fn spread(result: &TestResult, access: Access) -> Option<String> {
    let rates = rates(result, access);
    if rates.len() < 2 {
        return None;
    }
    let count = rates.len();
    let spread = Spread::of(rates.into_iter().map(|rate| rate / MEBIBYTE));
    let [from, to] = spread.reach();
    let what = if spread.interval.is_some() { "95 % interval" } else { "smallest and largest" };
    Some(format!(
        "{} over {count} repetitions: median {:.2} MiB/s, {what} {from:.2} to {to:.2} MiB/s.",
        capital(access),
        spread.median
    ))
}

/// Median times of the fastest and the slowest rank.
fn ranks(result: &TestResult, access: Access) -> Option<String> {
    let phases = phases(result, access);
    let ranks = phases.first()?.ranks.len();
    if ranks < 2 {
        return None;
    }
    let median = |rank: usize| Spread::of(phases.iter().map(|phase| phase.ranks[rank].total)).median;
    let times: Vec<f64> = (0..ranks).map(median).collect();
    let order = |a: &usize, b: &usize| times[*a].total_cmp(&times[*b]);
    let (fastest, slowest) = ((0..ranks).min_by(order)?, (0..ranks).max_by(order)?);
    Some(format!(
        "{}: rank {fastest} was the fastest with {:.6} s, rank {slowest} the slowest with {:.6} s.",
        capital(access),
        times[fastest],
        times[slowest]
    ))
}

fn stonewall(plan: &Plan, result: &TestResult, access: Access) -> Vec<String> {
    let mut lines = Vec::new();
    for phase in phases(result, access) {
        if let Some(found) = phase.stonewall {
            lines.push(format!(
                "stonewalling pairs accessed min: {} max: {} -- min data: {} mean data: {} time: {:.1}s",
                found.fewest,
                found.most,
                display_size(found.fewest_bytes),
                display_size(found.bytes / plan.ranks as u64),
                found.seconds
            ));
        } else if phase.bytes < plan.bytes() {
            lines.push(format!(
                "{} stopped after {} of {}.",
                capital(access),
                display_size(phase.bytes),
                display_size(plan.bytes())
            ));
        }
    }
    lines
}

fn targets(plan: &Plan) -> Option<String> {
    let settings = &plan.settings;
    if settings.placement == Placement::AsGiven && settings.stripe_count < 2 || settings.file_per_proc {
        return None;
    }
    let stripes = Stripes { size: settings.stripe_size, count: settings.stripe_count };
    let targets = targets_per_client(&plan.ior, stripes);
    let (least, most) = (targets.iter().min()?, targets.iter().max()?);
    let each = if least == most { least.to_string() } else { format!("{least} to {most}") };
    Some(format!(
        "Targets per client: {each} of {}, with stripes of {}.",
        settings.stripe_count,
        display_size(settings.stripe_size)
    ))
}

fn capital(access: Access) -> &'static str {
    match access {
        Access::Write => "Write",
        Access::Read => "Read",
    }
}
