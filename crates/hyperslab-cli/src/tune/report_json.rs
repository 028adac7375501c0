//! The answers as JSON.

use super::comparison::{Better, Tried};
use super::{Findings, Proposal};
use serde_json::{Value, json};

/// Everything that was found; keys may be added.
pub fn of(found: &Findings<'_>) -> Value {
    let calibration = found.calibration;
    json!({
        "hyperslab_tune": 1,
        "partial": found.partial,
        "machine_measured": found.measured,
        "transfers_recorded_seconds": calibration.recorded.reading + calibration.recorded.writing,
        "transfers_predicted_seconds": calibration.predicted.reading + calibration.predicted.writing,
        "predicted": found.predicted,
        "runs": found.comparison.runs + 2,
        "plain": found.plain.as_ref().map(|better| answer(found, better)),
        "both": found.both.as_ref().map(|better| answer(found, better)),
        "with_run": found.with_run.as_ref().map(|better| answer(found, better)),
        "tried": found.comparison.tried.iter().map(|tried| tried_one(found, tried)).collect::<Vec<_>>(),
    })
}

fn answer(found: &Findings<'_>, better: &Better) -> Value {
    let before = &better.before;
    json!({
        "proposal": proposal(found, &better.proposal),
        "of_processors": better.of_processors,
        "seconds_before": better.medians[0],
        "seconds_after": better.medians[1],
        "ratio": better.ratio.value,
        "ratio_95": better.ratio.interval,
        "pairs": better.pairs,
        "writing": [before.writing, better.middle.writing],
        "reading": [before.reading, better.middle.reading],
        "stored": [before.stored, better.middle.stored],
    })
}

fn proposal(found: &Findings<'_>, proposal: &Proposal) -> Value {
    let files: Vec<String> = found.recorded.files().into_iter().map(str::to_owned).collect();
    json!({
        "mode": proposal.modes,
        "overrides": proposal.overrides(&found.recorded.groups, &files, found.told.watched.netcdf),
        "change": found.told.changes(proposal),
        "predicted_io_seconds": proposal.predicted,
    })
}

fn tried_one(found: &Findings<'_>, tried: &Tried) -> Value {
    json!({
        "proposal": proposal(found, &tried.proposal),
        "seconds": tried.seconds,
        "beside": tried.beside,
        "why": tried.why,
    })
}
