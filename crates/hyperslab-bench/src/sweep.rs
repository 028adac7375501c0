//! Sweeps: options and keys that have several values, and the points that follow from them.

mod scaling;
mod values;

use crate::options::{BenchOptions, Transfers};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use hyperslab_core::{OptionSpec, Stack, StackElement, parse_stacks, suggest};
use hyperslab_h5bench::WorkflowKeys;
use hyperslab_kernels::Kernel;
use std::collections::BTreeMap;

/// The most points of a sweep.
const MOST_POINTS: usize = 10_000;

/// What an axis varies.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AxisTarget {
    Ranks,
    Transfers,
    KernelKey,
    WorkflowKey,
    /// An option of every element of stacks that has it, or of those of a name.
    StackOption {
        element: Option<String>,
        option: String,
    },
}

/// Something varied, and its values.
#[derive(Debug, Clone)]
struct SweepAxis {
    name: String,
    target: AxisTarget,
    values: Vec<String>,
}

/// All that is varied. Axes of a group take their values together; groups are combined in every way.
#[derive(Debug, Default)]
pub struct ParameterSweep {
    groups: Vec<Vec<SweepAxis>>,
}

/// One choice of values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepPoint {
    /// Place on each group of axes.
    places: Vec<usize>,
    /// How far from the ends and the middles of its axes it lies: a part of a sweep takes points of low level first.
    pub level: (u32, u32),
}

impl ParameterSweep {
    /// What the command line asks to be varied.
    pub fn asked(options: &BenchOptions) -> Result<Self> {
        let kernel = options.config.as_ref().and_then(|path| path.to_str()).and_then(Kernel::named);
        let known = Varied { kernel, workflow: workflow_keys(options, kernel), stacks: stacks(options)? };
        let mut sweep = Self::default();
        if let Some(text) = options.rank_list.as_deref().filter(|text| values::are_several(text)) {
            sweep.add(&known, vec![("ranks".into(), text.to_owned())]).context("--ranks")?;
        }
        for group in &options.sweep {
            let settings = group.split_whitespace().map(|setting| match setting.split_once('=') {
                Some((name, text)) => Ok((name.to_owned(), text.to_owned())),
                None => bail!("--sweep {group:?}: {setting:?} is not NAME=VALUES, such as ranks=1,2,4"),
            });
            sweep.add(&known, settings.collect::<Result<_>>()?).with_context(|| format!("--sweep {group}"))?;
        }
        for (name, text) in options.keys.iter().filter_map(|key| key.split_once('=')) {
            let spec = kernel.and_then(|kernel| kernel.keys.iter().find(|spec| spec.name == name));
            if spec.is_some_and(|spec| !takes_lists(spec)) && values::are_several(text) {
                sweep
                    .add(&known, vec![(name.to_owned(), text.to_owned())])
                    .with_context(|| format!("{name}={text}"))?;
            }
        }
        let names: Vec<&String> = sweep.axes().map(|axis| &axis.name).collect();
        if let Some((_, twice)) = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
            bail!("{twice} is varied twice");
        }
        if sweep.axes().any(|axis| axis.target == AxisTarget::Ranks) && !options.workload.is_empty() {
            bail!("a workload's steps are those of its own ranks and no other number: ranks cannot be varied");
        }
        if options.scaling.is_some() && !sweep.axes().any(|axis| axis.target == AxisTarget::Ranks) {
            bail!("--scaling says what stays the same while ranks vary; add --ranks 1,2,4");
        }
        if options.budget.is_some() && sweep.groups.is_empty() {
            bail!(
                "--budget chooses among the points of a sweep; add --sweep NAME=VALUES, or lists such as --ranks 1,2,4"
            );
        }
        Ok(sweep)
    }

    fn add(&mut self, known: &Varied<'_>, settings: Vec<(String, String)>) -> Result<()> {
        let axis = |(name, text): (String, String)| -> Result<SweepAxis> {
            Ok(SweepAxis { target: known.target(&name)?, values: values::parse(&text)?, name })
        };
        let group = settings.into_iter().map(axis).collect::<Result<Vec<SweepAxis>>>()?;
        let Some(first) = group.first() else { bail!("it names nothing to vary") };
        if let Some(other) = group.iter().find(|axis| axis.values.len() != first.values.len()) {
            bail!(
                "{} has {} values and {} has {}: what is varied together needs as many",
                first.name,
                first.values.len(),
                other.name,
                other.values.len()
            );
        }
        self.groups.push(group);
        Ok(())
    }

    fn axes(&self) -> impl Iterator<Item = &SweepAxis> {
        self.groups.iter().flatten()
    }

    /// Whether anything is varied.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// All points, the last axis varying fastest; without axes, one.
    pub fn points(&self) -> Result<Vec<SweepPoint>> {
        let lengths: Vec<usize> = self.groups.iter().map(|group| group[0].values.len()).collect();
        let all = lengths.iter().try_fold(1usize, |all, length| all.checked_mul(*length));
        let Some(all) = all.filter(|all| *all <= MOST_POINTS) else {
            bail!("the sweep has more than {MOST_POINTS} points; vary less at a time");
        };
        let point = |number: usize| {
            let mut rest = number;
            let mut places: Vec<usize> = lengths
                .iter()
                .rev()
                .map(|length| {
                    let place = rest % length;
                    rest /= length;
                    place
                })
                .collect();
            places.reverse();
            let levels = places.iter().zip(&lengths).map(|(place, length)| level(*place, *length));
            let level = levels.fold((0, 0), |(most, sum): (u32, u32), level| (most.max(level), sum + level));
            SweepPoint { places, level }
        };
        Ok((0..all).map(point).collect())
    }

    /// Names and values at a point.
    pub fn values<'a>(&'a self, point: &'a SweepPoint) -> Vec<(&'a str, &'a str)> {
        self.at(point).map(|(axis, value, _)| (axis.name.as_str(), value)).collect()
    }

    fn at<'a>(&'a self, point: &'a SweepPoint) -> impl Iterator<Item = (&'a SweepAxis, &'a str, bool)> {
        let groups = self.groups.iter().zip(&point.places);
        groups.flat_map(|(group, place)| group.iter().map(|axis| (axis, axis.values[*place].as_str(), *place == 0)))
    }

    /// The command line at a point, or nothing if no stack is left: a stack without an option takes part at the first of its
    /// values alone.
    pub fn options(&self, options: &BenchOptions, point: &SweepPoint) -> Result<Option<BenchOptions>> {
        let mut new = options.clone();
        new.ranks = match options.rank_list.as_deref() {
            Some(text) if !values::are_several(text) => Some(rank_number(text).context("--ranks")?),
            _ => None,
        };
        let mut stacks = stacks(options)?;
        let varies_stacks = self.axes().any(|axis| matches!(axis.target, AxisTarget::StackOption { .. }));
        for (axis, value, is_first) in self.at(point) {
            let place = || format!("{}={value}", axis.name);
            match &axis.target {
                AxisTarget::Ranks => new.ranks = Some(rank_number(value).with_context(place)?),
                AxisTarget::Transfers => {
                    new.transfers =
                        Some(Transfers::from_str(value, false).map_err(anyhow::Error::msg).with_context(place)?);
                }
                AxisTarget::KernelKey => set_key(&mut new.keys, &axis.name, value),
                AxisTarget::WorkflowKey => new.workflow_values.push((axis.name.clone(), value.to_owned())),
                AxisTarget::StackOption { element, option } => {
                    stacks.retain_mut(|stack| set_option(stack, element.as_deref(), option, value) || is_first);
                }
            }
        }
        self.scale(&mut new)?;
        if varies_stacks {
            new.stack = Some(stacks.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
            new.format = None;
        }
        Ok((!stacks.is_empty()).then_some(new))
    }

    /// Has the amount of work follow the ranks.
    fn scale(&self, options: &mut BenchOptions) -> Result<()> {
        let (Some(scaling), Some(ranks)) = (options.scaling, options.ranks) else { return Ok(()) };
        let counts = self.axes().filter(|axis| axis.target == AxisTarget::Ranks).flat_map(|axis| &axis.values);
        let base = counts.filter_map(|value| rank_number(value).ok()).min().unwrap_or(ranks);
        let kernel = options.config.as_ref().and_then(|path| path.to_str()).and_then(Kernel::named);
        let Some(kernel) = kernel else {
            if let Some(share) = scaling::of_workflow(scaling, ranks as usize, base as usize) {
                let keys = workflow_keys(options, None);
                for (place, value) in keys.values(share.key) {
                    options.workflow_values.push((place, share.of(&value)?));
                }
                keys.only_patterns().context("--scaling strong")?;
            }
            return Ok(());
        };
        if let Some(share) = scaling::of_kernel(scaling, kernel, ranks as usize, base as usize)? {
            let given = options.keys.iter().filter_map(|key| key.split_once('=')).find(|(name, _)| *name == share.key);
            let default = || kernel.keys.iter().find(|spec| spec.name == share.key).map_or("", |spec| spec.default);
            let scaled = share.of(given.map_or_else(default, |(_, value)| value))?;
            set_key(&mut options.keys, share.key, &scaled);
        }
        Ok(())
    }

    /// What results keep of a point: numbers as numbers, of axes that vary together the first. Axes that the stack does not
    /// have are left out.
    pub fn kept(&self, point: &SweepPoint, stack: &Stack) -> BTreeMap<String, serde_json::Value> {
        let has = |axis: &SweepAxis| match &axis.target {
            AxisTarget::StackOption { element, option } => {
                elements(stack).any(|one| has_option(one, element.as_deref(), option))
            }
            _ => true,
        };
        let value = |text: &str| text.parse::<u64>().map_or_else(|_| text.into(), serde_json::Value::from);
        // Of what varies together one says it all, and the others must not tell lines of a picture apart.
        let first = |axis: &SweepAxis| self.groups.iter().any(|group| group[0].name == axis.name);
        let kept = self.at(point).filter(|(axis, ..)| first(axis) && has(axis));
        kept.map(|(axis, text, _)| (axis.name.clone(), value(text))).collect()
    }
}

/// What can be varied.
struct Varied<'a> {
    kernel: Option<&'a Kernel>,
    workflow: WorkflowKeys,
    stacks: Vec<Stack>,
}

impl Varied<'_> {
    fn target(&self, name: &str) -> Result<AxisTarget> {
        let keys = || self.kernel.into_iter().flat_map(|kernel| kernel.keys.iter().map(|spec| spec.name));
        if keys().any(|key| key == name) {
            return Ok(AxisTarget::KernelKey);
        }
        if self.workflow.has(name) {
            return Ok(AxisTarget::WorkflowKey);
        }
        match name {
            "ranks" => return Ok(AxisTarget::Ranks),
            "transfers" => return Ok(AxisTarget::Transfers),
            _ => {}
        }
        let (element, option) = name.split_once('.').map_or((None, name), |(element, option)| (Some(element), option));
        if self.stacks.iter().any(|stack| elements(stack).any(|one| has_option(one, element, option))) {
            return Ok(AxisTarget::StackOption { element: element.map(str::to_owned), option: option.to_owned() });
        }
        let options = self.stacks.iter().flat_map(elements).flat_map(|one| options_of(&one.name)).map(|spec| spec.name);
        let workflow = self.workflow.names();
        let all: Vec<&str> = ["ranks", "transfers"]
            .into_iter()
            .chain(keys())
            .chain(workflow.iter().map(String::as_str))
            .chain(options)
            .collect();
        bail!("nothing here is called {name:?}; {}", suggest::hint(name, all.iter().copied()))
    }
}

/// 0 for the ends of an axis, 1 for the middle between them, 2 for the middles between those, and so on.
fn level(place: usize, length: usize) -> u32 {
    let (mut low, mut high, mut level) = (0, length - 1, 0);
    while place != low && place != high {
        let middle = low.midpoint(high);
        level += 1;
        match place {
            _ if place == middle => break,
            _ if place < middle => high = middle,
            _ => low = middle,
        }
    }
    level
}

/// Keys whose values may hold commas, such as lists of files.
fn takes_lists(spec: &OptionSpec) -> bool {
    spec.value.contains(',')
}

fn rank_number(text: &str) -> Result<u32> {
    let number = text.trim().parse::<u32>().ok().filter(|ranks| (1..=1 << 20).contains(ranks));
    number.with_context(|| format!("{text:?} is not a number of ranks from 1 to {}", 1 << 20))
}

fn set_key(keys: &mut Vec<String>, name: &str, value: &str) {
    keys.retain(|key| key.split_once('=').is_none_or(|(known, _)| known != name));
    keys.push(format!("{name}={value}"));
}

fn stacks(options: &BenchOptions) -> Result<Vec<Stack>> {
    Ok(parse_stacks(options.stacks_text())?)
}

fn workflow_keys(options: &BenchOptions, kernel: Option<&Kernel>) -> WorkflowKeys {
    match &options.config {
        Some(path) if kernel.is_none() => WorkflowKeys::of_file(path),
        _ => WorkflowKeys::default(),
    }
}

fn elements(stack: &Stack) -> impl Iterator<Item = &StackElement> {
    stack.layers.iter().chain([&stack.format])
}

fn options_of(name: &str) -> &'static [OptionSpec] {
    let layer = hyperslab_layers::layers().iter().find(|entry| entry.name == name).map(|entry| entry.options);
    let format = || hyperslab_formats::formats().iter().find(|entry| entry.name == name).map(|entry| entry.options);
    layer.or_else(format).unwrap_or_default()
}

fn has_option(one: &StackElement, element: Option<&str>, option: &str) -> bool {
    element.is_none_or(|name| name == one.name) && options_of(&one.name).iter().any(|spec| spec.name == option)
}

/// Sets the option wherever the stack has it; returns whether it does.
fn set_option(stack: &mut Stack, element: Option<&str>, option: &str, value: &str) -> bool {
    let mut found = false;
    for one in stack.layers.iter_mut().chain([&mut stack.format]) {
        if has_option(one, element, option) {
            one.options.retain(|(name, _)| name != option);
            one.options.push((option.to_owned(), value.to_owned()));
            found = true;
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Asked {
        #[command(flatten)]
        options: BenchOptions,
    }

    fn options(words: &[&str]) -> BenchOptions {
        Asked::try_parse_from(["bench"].iter().chain(words)).unwrap().options
    }

    fn planned(words: &[&str]) -> Vec<(Vec<String>, Option<u32>, String)> {
        let options = options(words);
        let sweep = ParameterSweep::asked(&options).unwrap();
        let points = sweep.points().unwrap();
        let at = points.iter().filter_map(|point| sweep.options(&options, point).unwrap());
        at.map(|o| (o.keys.clone(), o.ranks, o.stacks_text().to_owned())).collect()
    }

    #[test]
    fn groups_are_combined_and_what_is_in_a_group_goes_together() {
        let found = planned(&["flash", "blocks=8..32*2", "--ranks", "1,2", "--format", "posix"]);
        assert_eq!(found.len(), 6);
        assert_eq!(found[1], (vec!["blocks=16".into()], Some(1), "posix".into()));
        let found = planned(&["amrex", "--sweep", "ranks=1,8 cells=32,64", "--format", "posix"]);
        assert_eq!(
            found.iter().map(|one| (one.0[0].as_str(), one.1)).collect::<Vec<_>>(),
            [("cells=32", Some(1)), ("cells=64", Some(8))]
        );
    }

    #[test]
    fn a_stack_without_the_option_takes_part_once() {
        let found = planned(&["vpic", "--stack", "posix,zarr", "--sweep", "zarr.chunk=1024..4096*2"]);
        let stacks: Vec<&str> = found.iter().map(|one| one.2.as_str()).collect();
        assert_eq!(stacks, ["posix,zarr(chunk=1024)", "zarr(chunk=2048)", "zarr(chunk=4096)"]);
    }

    #[test]
    fn work_follows_ranks() {
        let keys = |words: &[&str]| planned(words).into_iter().map(|one| one.0.join(" ")).collect::<Vec<_>>();
        assert_eq!(
            keys(&["flash", "--ranks", "1..4*2", "--scaling", "strong", "--format", "posix"]),
            ["blocks=80", "blocks=40", "blocks=20"]
        );
        assert_eq!(
            keys(&["btio", "grid=8x8x8", "--ranks", "1,4", "--scaling", "weak", "--format", "posix"]),
            ["grid=8x8x8", "grid=32x8x8"]
        );
    }

    #[test]
    fn points_of_low_level_come_from_all_over() {
        assert_eq!((0..5).map(|place| level(place, 5)).collect::<Vec<_>>(), [0, 2, 1, 2, 0]);
        assert_eq!(level(0, 1), 0);
        let all: Vec<u32> = (0..100).map(|place| level(place, 100)).collect();
        assert!(all.iter().filter(|level| **level <= 3).count() == 9 && all.iter().max() < Some(&9));
    }

    #[test]
    fn what_cannot_be_varied_is_refused_with_a_way_out() {
        let said = |words: &[&str]| format!("{:#}", ParameterSweep::asked(&options(words)).unwrap_err());
        assert!(said(&["flash", "--sweep", "blokcs=1,2"]).contains("blocks"));
        assert!(said(&["flash", "--sweep", "blocks"]).contains("NAME=VALUES"));
        assert!(said(&["flash", "--sweep", "ranks=1,2 blocks=1,2,3"]).contains("together"));
        assert!(said(&["flash", "blocks=1,2", "--sweep", "blocks=3,4"]).contains("twice"));
        assert!(said(&["flash", "--scaling", "weak"]).contains("--ranks"));
        assert!(said(&["flash", "--budget", "1min"]).contains("--sweep"));
        assert!(said(&["flash", "--ranks", "4..1"]).contains("--ranks"));
    }
}
