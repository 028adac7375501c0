//! Whether a published claim holds here.

use super::published;
use super::studies::{ClaimSpec, Figure, Side, Study};
use hyperslab_report::Claim;
use hyperslab_report::ratio::of_medians;
use hyperslab_run::{CaseResult, Repetition, Results, Status};

pub const HOLDS: &str = "holds";
pub const FAILS: &str = "does not hold";
pub const UNSURE: &str = "cannot tell";

/// Sets a claim beside the results of its study.
pub fn judge(study: &Study, claim: &ClaimSpec, results: &[(&str, Results)]) -> Claim {
    let row = published::find(claim.published);
    let told = |verdict: &str, here: String, reason: String| Claim {
        study: study.name.into(),
        source: row.map_or_else(String::new, |row| row.cited()),
        published: row.map_or_else(String::new, |row| row.words()),
        here,
        verdict: verdict.into(),
        reason,
    };
    let sides = [&claim.before, &claim.after].map(|side| figures(side, claim.figure, results));
    let [before, after] = match sides {
        [Ok(before), Ok(after)] => [before, after],
        [Err(why), _] | [_, Err(why)] => return told(UNSURE, "not measured".into(), why),
    };
    let Some((medians, ratio)) = of_medians(&before, &after) else {
        return told(UNSURE, "not measured".into(), "there are no figures to compare".into());
    };
    let unit = |value: f64| match claim.figure {
        Figure::Rate => format!("{}/s", hyperslab_core::units::display_size(value as u64)),
        Figure::Time | Figure::CloseAgainstOpen => format!("{:.3} ms", value * 1e3),
    };
    let interval = ratio.interval.map(|[low, high]| format!(", {low:.2} to {high:.2}")).unwrap_or_default();
    let here = format!(
        "{:.2} times ({} {}, {} {}{interval})",
        ratio.value,
        claim.before.words,
        unit(medians[0]),
        claim.after.words,
        unit(medians[1])
    );
    let Some([low, high]) = ratio.interval else {
        return told(UNSURE, here, "not enough repetitions: with three or more there is an interval".into());
    };
    let bound = claim.above;
    if low > bound {
        told(HOLDS, here, format!("the ratio is above {bound} with its whole interval. {}", claim.holds_because))
    } else if high < bound {
        told(FAILS, here, format!("the ratio is below {bound} with its whole interval. {}", claim.fails_because))
    } else {
        told(
            UNSURE,
            here,
            format!("the interval of the ratio holds {bound}: more repetitions or larger data would tell"),
        )
    }
}

/// The figures of all repetitions of a side, or why there are none.
fn figures(side: &Side, figure: Figure, results: &[(&str, Results)]) -> Result<Vec<f64>, String> {
    let found = results.iter().find(|(name, _)| *name == side.trial).map(|(_, results)| results);
    let mut cases = found.iter().flat_map(|results| &results.cases);
    let fits = |case: &&CaseResult| {
        let stack = case.stack.to_string();
        let stack = if side.exactly { stack == side.stack } else { stack.starts_with(side.stack) };
        stack && case.workload.contains(side.workload) && case.benchmark.contains(side.benchmark)
    };
    let case = cases.find(fits).ok_or_else(|| format!("no case of {} is on {}", side.trial, side.stack))?;
    if case.status != Status::Ok {
        return Err(case.error.clone().unwrap_or_else(|| "it did not run".into()));
    }
    let one = |repetition: &Repetition| match figure {
        Figure::Rate => repetition.observed_rate(),
        Figure::Time => repetition.observed(),
        Figure::CloseAgainstOpen if side.words == "closing" => repetition.slowest(|rank| rank.close_file),
        Figure::CloseAgainstOpen => repetition.slowest(|rank| rank.open_file),
    };
    Ok(case.repetitions.iter().map(one).filter(|value| *value > 0.0).collect())
}
