//! `hyperslab train --evaluate`: how good the model is on what it does not know, beside simpler ones.

use super::evaluation_report::Page;
use super::measurement::Measurement;
use super::metadata_ops;
use super::samples::{Measured, samples};
use super::scatter_plot;
use super::timings::{Timing, Timings};
use anyhow::{Context, Result};
use hyperslab_core::CacheState;
use hyperslab_model::{
    Choice, Class, Count, Counting, Fold, Judgement, Method, Sample, ScoredRun, default_coefficients, folds_by_group,
    judge, leave_out,
};
use hyperslab_report::table::{Align, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A way to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    Ours,
    OnlySum,
    PublishedCorrected,
    PublishedAsPrinted,
    OnlyTransfers,
    AlwaysHdf5,
}

const MODELS: [(Model, &str); 6] = [
    (Model::Ours, "this model"),
    (Model::OnlySum, "its sum of counts alone"),
    (Model::PublishedCorrected, "published variables, fitted alike"),
    (Model::PublishedAsPrinted, "published model, as printed"),
    (Model::OnlyTransfers, "reads and writes of files only"),
    (Model::AlwaysHdf5, "always HDF5"),
];

/// Ways of storing that are chosen among.
const CHOSEN: [Class; 4] = [Class::Hdf5, Class::Hdf5Plane, Class::Zarr, Class::ZarrSharded];

/// What a model does not know when it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    Configuration,
    Array,
    ArraysAndAccesses,
}

const SPLITS: [(Split, &str); 3] = [
    (Split::Configuration, "one configuration left out"),
    (Split::Array, "one array left out"),
    (Split::ArraysAndAccesses, "learnt on half of the arrays and accesses, judged on the others"),
];

/// Accesses of one half; the others are the other half.
const HALF: [&str; 2] = ["whole", "rows"];

impl Split {
    fn folds(self, known: &[Measured<'_>]) -> Vec<Fold> {
        let by = |group: &dyn Fn(&Measured<'_>) -> String| {
            let of = |one| Sample { group: group(one), row: Vec::new(), seconds: 1.0 };
            folds_by_group(&known.iter().map(of).collect::<Vec<_>>())
        };
        match self {
            Self::Configuration => by(&|one| one.trial.name()),
            Self::Array => by(&|one| one.trial.subject.name()),
            Self::ArraysAndAccesses => halves(known),
        }
    }
}

/// Four times: a quarter is judged, and the quarter is known that shares neither arrays nor accesses with it.
fn halves(known: &[Measured<'_>]) -> Vec<Fold> {
    let arrays: BTreeSet<String> = known.iter().map(|one| one.trial.subject.name()).collect();
    let quarter = |one: &Measured<'_>| {
        let array = arrays.iter().position(|name| *name == one.trial.subject.name()).unwrap_or(0);
        (array % 2 == 0, HALF.contains(&one.timing.access.as_str()))
    };
    let places = |wanted: (bool, bool)| -> Vec<usize> {
        (0..known.len()).filter(|&place| quarter(&known[place]) == wanted).collect()
    };
    let fold = |(array, access): (bool, bool)| {
        let (learnt, mut judged) = (places((!array, !access)), places((array, access)));
        // Nothing is learnt of writes from reads.
        judged.retain(|&at| learnt.iter().any(|&one| known[one].timing.direction == known[at].timing.direction));
        Fold { known: learnt, judged }
    };
    [(false, false), (false, true), (true, false), (true, true)].map(fold).into()
}

/// Array, layout, direction and access.
type Key = (String, String, String, String);

fn key(one: &Measured<'_>) -> Key {
    let (trial, timing): (&Measurement, &Timing) = (one.trial, one.timing);
    (trial.subject.name(), trial.layout.clone(), timing.direction.clone(), timing.access.clone())
}

/// Tables for both caches, and a page, a plot and a list beside the timings.
pub fn report(trials: &[Measurement], timings: &Timings, directory: &Path) -> Result<String> {
    let mut page = Page::new();
    let mut points = Vec::new();
    let mut together: [Vec<Choice>; MODELS.len()] = Default::default();
    let mut list = "cache,array,layout,direction,access,format,measured,predicted,inside\n".to_owned();
    for (warmth, word) in [(CacheState::Warm, "warm"), (CacheState::Cold, "cold")] {
        for (split, name) in SPLITS {
            let mut table = judged_table();
            for (number, (model, model_name)) in MODELS.into_iter().enumerate() {
                let known = choices(trials, timings, warmth, model, split)?;
                let shown = model == Model::Ours && split == Split::Configuration;
                if shown {
                    known.iter().for_each(|(key, choice)| list.push_str(&lines(word, key, choice)));
                    page.wrong(word, &wrong(&known));
                }
                let choices: Vec<Choice> = known.into_values().collect();
                if choices.iter().all(|choice| choice.options.len() < 2) {
                    continue;
                }
                table.row(judged_row(model_name, model != Model::AlwaysHdf5, &judge(&choices)));
                if shown {
                    let runs = choices.iter().flat_map(|choice| choice.options.clone());
                    points.extend(runs.map(|(class, run)| (class, warmth, (run.measured, run.predicted))));
                }
                if split == Split::Configuration {
                    together[number].extend(choices);
                }
            }
            page.table(&format!("{word}, {name}"), table);
        }
    }
    let mut both = judged_table();
    for ((model, name), choices) in MODELS.into_iter().zip(&together).filter(|(_, choices)| !choices.is_empty()) {
        both.row(judged_row(name, model != Model::AlwaysHdf5, &judge(choices)));
    }
    page.table(&format!("warm and cold together, {}", SPLITS[0].1), both);
    page.words(
        "choices: those in which the two fastest differ by more than 20 %; commonest: how often the commonest winner wins;\n\
         regret: time lost by taking what is predicted to be the fastest, over all choices; inside: runs inside their 90 %\n\
         intervals",
    );
    let plot = scatter_plot::svg(&points);
    let save = |name: &str, text: &str| -> Result<String> {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path.display().to_string())
    };
    let (html, svg) = (save("evaluation.html", &page.html(&plot))?, save("evaluation.svg", &plot)?);
    let csv = save("evaluation.csv", &list)?;
    Ok(format!("{}Page: {html}\nPlot: {svg}\nRuns: {csv}", page.text()))
}

/// The table for such rows.
pub fn judged_table() -> Table {
    let numbers = ["choices", "right", "balanced", "commonest", "regret", "log10 error", "relative error", "inside"];
    let numbers = numbers.map(|name| (name, Align::Right));
    Table::new(&[&[("model", Align::Left)][..], &numbers].concat())
}

/// The runs of a choice as lines of a table.
fn lines(cache: &str, key: &Key, choice: &Choice) -> String {
    let (array, layout, direction, access) = key;
    let line = |(class, run): (&Class, &ScoredRun)| {
        let ScoredRun { measured, predicted, inside } = run;
        let class = class.name();
        format!("{cache},\"{array}\",\"{layout}\",{direction},{access},{class},{measured:.9},{predicted:.9},{inside}\n")
    };
    choice.options.iter().map(line).collect()
}

/// Clear choices in which something else was advised than what was the fastest.
fn wrong(known: &BTreeMap<Key, Choice>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for ((array, layout, direction, access), choice) in known {
        let (Some(fastest), Some(advised)) = (choice.fastest(), choice.advised()) else { continue };
        if choice.is_clear() && fastest != advised {
            let times = |class| {
                let ScoredRun { measured, predicted, .. } = choice.options[&class];
                format!("{}: {:.2} ms, predicted {:.2}", class.name(), measured * 1e3, predicted * 1e3)
            };
            rows.push(vec![
                format!("{array}, {layout}"),
                format!("{direction} {access}"),
                times(fastest),
                times(advised),
            ]);
        }
    }
    rows
}

/// A row of it; `times`: whether times are predicted, and not only which is the fastest.
pub fn judged_row(name: &str, times: bool, judged: &Judgement) -> Vec<String> {
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let if_times = |text: String| if times { text } else { "-".into() };
    vec![
        name.into(),
        judged.clear.to_string(),
        percent(judged.accuracy),
        percent(judged.balanced),
        percent(judged.majority),
        percent(judged.regret),
        if_times(format!("{:.3}", judged.log10_rmse)),
        if_times(format!("{:.3}", judged.relative_rmse)),
        if_times(percent(judged.coverage)),
    ]
}

/// What was measured and predicted, by array, layout and access.
fn choices(
    trials: &[Measurement],
    timings: &Timings,
    warmth: CacheState,
    model: Model,
    split: Split,
) -> Result<BTreeMap<Key, Choice>> {
    let mut choices: BTreeMap<Key, Choice> = BTreeMap::new();
    for class in CHOSEN {
        let (counting, method) = match model {
            Model::Ours => (Counting::Real, Method::Corrected),
            Model::OnlySum | Model::OnlyTransfers | Model::AlwaysHdf5 => (Counting::Real, Method::Robust),
            Model::PublishedCorrected => (Counting::Published, Method::Robust),
            Model::PublishedAsPrinted => (Counting::PublishedAsPrinted, Method::Plain),
        };
        let mut known = samples(trials, timings, class, warmth, counting)?;
        if known.is_empty() {
            continue;
        }
        if model == Model::OnlyTransfers {
            known.iter_mut().for_each(|one| keep_transfers(&mut one.sample));
        }
        let folds = split.folds(&known);
        let samples: Vec<Sample> = known.iter().map(|one| one.sample.clone()).collect();
        let runs: Vec<Option<ScoredRun>> = match model {
            Model::AlwaysHdf5 => {
                let predicted = if class == Class::Hdf5 { 1.0 } else { 2.0 };
                samples.iter().map(|one| Some(ScoredRun { measured: one.seconds, predicted, inside: false })).collect()
            }
            _ => leave_out(&samples, (method, &default_coefficients()), &folds)?
                .into_iter()
                .map(|run| run.map(|r| ScoredRun { measured: r.measured, predicted: r.predicted, inside: r.inside }))
                .collect(),
        };
        for (one, run) in known.iter().zip(runs) {
            // Nobody chooses by what making small arrays takes.
            if let Some(run) = run.filter(|_| one.trial.layout != metadata_ops::LAYOUT) {
                choices.entry(key(one)).or_default().options.insert(class, run);
            }
        }
    }
    Ok(choices)
}

/// Leaves only what a model of transfers would know.
fn keep_transfers(sample: &mut Sample) {
    let kept = [Count::ReadCalls, Count::ReadBytes, Count::WriteCalls, Count::WriteBytes];
    for (place, value) in sample.row.iter_mut().enumerate() {
        if !kept.contains(&Count::ALL[place % Count::ALL.len()]) {
            *value = 0.0;
        }
    }
}
