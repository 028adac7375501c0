//! `hyperslab train --evaluate`: how good the model is on what it does not know, beside simpler ones.

use super::scatter;
use super::timings::{Timing, Timings};
use super::train::samples;
use super::trial::Trial;
use crate::table::{Align, Table};
use anyhow::{Context, Result};
use hyperslab_model::{Choice, Class, Count, Counting, Judgement, Method, Sample, Warmth, judge, leave_groups_out};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A way to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    Ours,
    PublishedCorrected,
    PublishedAsPrinted,
    OnlyTransfers,
    AlwaysHdf5,
}

const MODELS: [(Model, &str); 5] = [
    (Model::Ours, "this model"),
    (Model::PublishedCorrected, "published variables, fitted as here"),
    (Model::PublishedAsPrinted, "published model, as printed"),
    (Model::OnlyTransfers, "reads and writes of files only"),
    (Model::AlwaysHdf5, "always HDF5"),
];

/// Ways of storing that are chosen among.
const CHOSEN: [Class; 4] = [Class::Hdf5, Class::Hdf5Plane, Class::Zarr, Class::ZarrSharded];

/// A name, and what runs have in common that are left out together.
type Split = (&'static str, fn(&Trial) -> String);

const SPLITS: [Split; 2] =
    [("one configuration left out", Trial::name), ("one array left out", |trial| trial.subject.name())];

/// Tables for both caches, and a plot beside the timings.
pub fn report(trials: &[Trial], timings: &Timings, directory: &Path) -> Result<String> {
    let mut out = String::new();
    let mut points = Vec::new();
    let mut list = "cache,array,layout,direction,access,format,measured,predicted\n".to_owned();
    for (warmth, word) in [(Warmth::Warm, "warm"), (Warmth::Cold, "cold")] {
        for (split, group) in SPLITS {
            let mut table = Table::new(&[
                ("model", Align::Left),
                ("choices", Align::Right),
                ("right", Align::Right),
                ("balanced", Align::Right),
                ("commonest", Align::Right),
                ("regret", Align::Right),
                ("log10 error", Align::Right),
                ("relative error", Align::Right),
            ]);
            for (model, name) in MODELS {
                let known = choices(trials, timings, warmth, model, &group)?;
                if model == Model::Ours && split == SPLITS[0].0 {
                    known.iter().for_each(|(key, choice)| list.push_str(&lines(word, key, choice)));
                }
                let choices: Vec<Choice> = known.into_values().collect();
                if choices.iter().all(|choice| choice.options.len() < 2) {
                    continue;
                }
                table.row(row(name, model, &judge(&choices)));
                if model == Model::Ours && split == SPLITS[0].0 {
                    points
                        .extend(choices.iter().flat_map(|choice| choice.options.clone()).map(|(c, t)| (c, warmth, t)));
                }
            }
            out.push_str(&format!("{word}, {split}\n\n{}\n", table.render()));
        }
    }
    out.push_str("choices: those in which the two fastest differ by more than 20 %; commonest: how often the commonest winner wins;\n");
    out.push_str("regret: time lost by taking what is predicted to be the fastest, over all choices\n");
    let plot = directory.join("evaluation.svg");
    fs::write(&plot, scatter::svg(&points)).with_context(|| format!("write {}", plot.display()))?;
    let file = directory.join("evaluation.csv");
    fs::write(&file, list).with_context(|| format!("write {}", file.display()))?;
    out.push_str(&format!("Plot: {}\nRuns: {}", plot.display(), file.display()));
    Ok(out)
}

/// Array, layout, direction and access.
type Key = (String, String, String, String);

/// The runs of a choice as lines of a table.
fn lines(cache: &str, key: &Key, choice: &Choice) -> String {
    let (array, layout, direction, access) = key;
    let line = |(class, (measured, predicted)): (&Class, &(f64, f64))| {
        format!("{cache},{array},\"{layout}\",{direction},{access},{},{measured:.9},{predicted:.9}\n", class.name())
    };
    choice.options.iter().map(line).collect()
}

fn row(name: &str, model: Model, judged: &Judgement) -> Vec<String> {
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let times = model != Model::AlwaysHdf5;
    vec![
        name.into(),
        judged.clear.to_string(),
        percent(judged.accuracy),
        percent(judged.balanced),
        percent(judged.majority),
        percent(judged.regret),
        if times { format!("{:.3}", judged.log10_rmse) } else { "-".into() },
        if times { format!("{:.3}", judged.relative_rmse) } else { "-".into() },
    ]
}

/// What was measured and predicted, by array, layout and access.
fn choices(
    trials: &[Trial],
    timings: &Timings,
    warmth: Warmth,
    model: Model,
    group: &dyn Fn(&Trial) -> String,
) -> Result<BTreeMap<Key, Choice>> {
    let mut choices: BTreeMap<Key, Choice> = BTreeMap::new();
    for class in CHOSEN {
        let (counting, method) = match model {
            Model::Ours | Model::OnlyTransfers | Model::AlwaysHdf5 => (Counting::Real, Method::Robust),
            Model::PublishedCorrected => (Counting::Published, Method::Robust),
            Model::PublishedAsPrinted => (Counting::PublishedAsPrinted, Method::Plain),
        };
        let mut known = samples(trials, timings, class, warmth, counting, group)?;
        if model == Model::OnlyTransfers {
            known.iter_mut().for_each(|(sample, ..)| keep_transfers(sample));
        }
        let predicted: Vec<(f64, f64)> = match model {
            Model::AlwaysHdf5 => {
                let guess = if class == Class::Hdf5 { 1.0 } else { 2.0 };
                known.iter().map(|(sample, ..)| (sample.seconds, guess)).collect()
            }
            _ if known.is_empty() => Vec::new(),
            _ => leave_groups_out(&known.iter().map(|(sample, ..)| sample.clone()).collect::<Vec<_>>(), method)?,
        };
        for ((_, trial, timing), times) in known.iter().zip(predicted) {
            let choice = choices.entry(key(trial, timing)).or_insert_with(|| Choice { options: BTreeMap::new() });
            choice.options.insert(class, times);
        }
    }
    Ok(choices)
}

fn key(trial: &Trial, timing: &Timing) -> Key {
    (trial.subject.name(), trial.layout.clone(), timing.direction.clone(), timing.access.clone())
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
