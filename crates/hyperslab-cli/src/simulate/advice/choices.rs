//! Settings that can be chosen, and what else each of them could be.

use super::facts::WorkFacts;
use hyperslab_core::units::exact_size;
use hyperslab_core::{Stack, StackElement, dims};
use hyperslab_formats::format;
use hyperslab_sim::System;

/// A choice of all settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Format and layers.
    pub stack: Stack,
    /// Targets of a file.
    pub stripe_count: u64,
    /// Bytes of a stripe.
    pub stripe_size: u64,
    /// Whether ranks make transfers together.
    pub collective: bool,
}

/// Something that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Targets of a file.
    StripeCount,
    /// Bytes of a stripe.
    StripeSize,
    /// Where objects begin in a file.
    Alignment,
    /// Extents of chunks, or none.
    Chunk,
    /// Whether ranks make transfers together.
    Collective,
    /// Whether few ranks write for all, and how many.
    Aggregators,
    /// Whether transfers go on while the program computes.
    Background,
    /// Whether writes go to a log first.
    Log,
    /// Whether a file is several.
    Subfiling,
}

const MIB: u64 = 1 << 20;

impl Setting {
    /// All, those of the file system first.
    pub const ALL: [Self; 9] = [
        Self::StripeCount,
        Self::StripeSize,
        Self::Alignment,
        Self::Collective,
        Self::Chunk,
        Self::Aggregators,
        Self::Background,
        Self::Log,
        Self::Subfiling,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::StripeCount => "stripe count",
            Self::StripeSize => "stripe size",
            Self::Alignment => "alignment",
            Self::Chunk => "chunk",
            Self::Collective => "transfers",
            Self::Aggregators => "aggregators",
            Self::Background => "background",
            Self::Log => "log",
            Self::Subfiling => "subfiling",
        }
    }

    /// What it is in a choice, in words.
    pub fn value(self, choice: &Choice) -> String {
        let option = |key: &str| choice.stack.format.get(key).map(str::to_owned);
        let layer = |name: &str| choice.stack.layers.iter().find(|layer| layer.name == name);
        let yes = |there: bool| if there { "yes".to_owned() } else { "no".to_owned() };
        match self {
            Self::StripeCount => choice.stripe_count.to_string(),
            Self::StripeSize => exact_size(choice.stripe_size),
            Self::Alignment => option("align").unwrap_or_else(|| "none".into()),
            Self::Chunk => option("chunk").unwrap_or_else(|| "as now".into()),
            Self::Collective => if choice.collective { "collective" } else { "independent" }.into(),
            Self::Aggregators => match layer("twophase") {
                Some(layer) => layer.get("aggregators").unwrap_or("2 per node").to_owned(),
                None => "none".into(),
            },
            Self::Background => yes(layer("async").is_some()),
            Self::Log => yes(layer("log").is_some()),
            Self::Subfiling => yes(option("driver").is_some()),
        }
    }

    /// The same choice with this setting as it is in `other`.
    pub fn taken_from(self, choice: &Choice, other: &Choice) -> Choice {
        let mut changed = choice.clone();
        let option = |key: &str, changed: &mut Choice| {
            set(&mut changed.stack.format, key, other.stack.format.get(key));
        };
        let layer = |name: &str, changed: &mut Choice| {
            changed.stack.layers.retain(|layer| layer.name != name);
            if let Some(at) = other.stack.layers.iter().position(|layer| layer.name == name) {
                changed.stack.layers.insert(at.min(changed.stack.layers.len()), other.stack.layers[at].clone());
            }
        };
        match self {
            Self::StripeCount => changed.stripe_count = other.stripe_count,
            Self::StripeSize => changed.stripe_size = other.stripe_size,
            Self::Alignment => option("align", &mut changed),
            Self::Chunk => option("chunk", &mut changed),
            Self::Collective => changed.collective = other.collective,
            Self::Aggregators => layer("twophase", &mut changed),
            Self::Background => layer("async", &mut changed),
            Self::Log => layer("log", &mut changed),
            Self::Subfiling => option("driver", &mut changed),
        }
        changed
    }

    /// The same choice with all other values of this setting that make sense.
    pub fn alternatives(self, now: &Choice, facts: &WorkFacts, system: &System) -> Vec<Choice> {
        let can = |option: &str| format(&now.stack.format.name).is_ok_and(|entry| entry.has_option(option));
        let with = |change: &dyn Fn(&mut Choice)| {
            let mut other = now.clone();
            change(&mut other);
            other
        };
        let mut all: Vec<Choice> = match self {
            Self::StripeCount => counts(system.targets(), facts.ranks as u64)
                .into_iter()
                .map(|count| with(&|one| one.stripe_count = count))
                .collect(),
            Self::StripeSize => sizes(facts.call).into_iter().map(|size| with(&|one| one.stripe_size = size)).collect(),
            Self::Alignment if can("align") => {
                let aligned = exact_size(now.stripe_size);
                [None, Some(aligned)]
                    .into_iter()
                    .map(|value| with(&|one| set(&mut one.stack.format, "align", value.as_deref())))
                    .collect()
            }
            Self::Chunk if can("chunk") => {
                let whole = facts.extents.as_ref().map(|extents| dims::display(extents));
                [None, whole]
                    .into_iter()
                    .map(|value| with(&|one| set(&mut one.stack.format, "chunk", value.as_deref())))
                    .collect()
            }
            Self::Collective if facts.ranks > 1 && facts.in_step => [false, true]
                .into_iter()
                .map(|collective| {
                    with(&|one| {
                        one.collective = collective;
                        if !collective {
                            one.stack.layers.retain(|layer| layer.name != "twophase");
                        }
                    })
                })
                .collect(),
            Self::Aggregators if facts.ranks > 1 && facts.in_step => {
                let nodes = facts.ranks.div_ceil(system.nodes.ranks.value.max(1.0) as usize) as u64;
                let numbers = [None, Some(nodes), Some(2 * nodes), Some(now.stripe_count), Some(2 * now.stripe_count)];
                let number = |number: Option<u64>| {
                    with(&|one| {
                        one.stack.layers.retain(|layer| layer.name != "twophase");
                        if let Some(number) = number.map(|number| number.clamp(1, facts.ranks as u64)) {
                            let mut layer = StackElement::plain("twophase");
                            layer.options.push(("aggregators".into(), number.to_string()));
                            one.stack.layers.push(layer);
                            one.collective = true;
                        }
                    })
                };
                numbers.into_iter().map(number).collect()
            }
            Self::Background if facts.computes => {
                [false, true].into_iter().map(|there| with(&|one| layer(one, "async", there))).collect()
            }
            // A log in memory would be lost with the node.
            Self::Log if facts.writes && (system.nodes.local_write_rate.is_some() || system.burst_buffer.is_some()) => {
                [false, true].into_iter().map(|there| with(&|one| layer(one, "log", there))).collect()
            }
            Self::Subfiling if can("driver") && facts.ranks > 1 => [None, Some("subfiling")]
                .into_iter()
                .map(|value| with(&|one| set(&mut one.stack.format, "driver", value)))
                .collect(),
            _ => Vec::new(),
        };
        // What is put off is one thing: a log, or a queue in memory. Subfiles have writers of their own.
        all.retain(|one| {
            let has = |name: &str| one.stack.layers.iter().any(|layer| layer.name == name);
            let subfiles = one.stack.format.get("driver").is_some();
            !(has("async") && has("log")) && !(subfiles && (has("twophase") || has("log")))
        });
        all.retain(|one| one != now);
        all
    }
}

fn set(element: &mut StackElement, key: &str, value: Option<&str>) {
    element.options.retain(|(known, _)| known != key);
    if let Some(value) = value {
        element.options.push((key.to_owned(), value.to_owned()));
    }
}

/// Layers that put things off come first.
fn layer(choice: &mut Choice, name: &str, there: bool) {
    choice.stack.layers.retain(|layer| layer.name != name);
    if there {
        choice.stack.layers.insert(0, StackElement::plain(name));
    }
}

/// Powers of two, all targets, and as many as there are ranks.
fn counts(targets: u64, ranks: u64) -> Vec<u64> {
    let mut all: Vec<u64> =
        (0..20).map(|power| 1 << power).chain([targets, ranks]).filter(|count| *count <= targets).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// From 1 to 64 MiB, and the size of a call.
fn sizes(call: u64) -> Vec<u64> {
    const GRAIN: u64 = 64 << 10;
    let own = (call.is_multiple_of(GRAIN) && (GRAIN..=256 * MIB).contains(&call)).then_some(call);
    let mut all: Vec<u64> = [1, 4, 16, 64].map(|size| size * MIB).into_iter().chain(own).collect();
    all.sort_unstable();
    all.dedup();
    all
}
