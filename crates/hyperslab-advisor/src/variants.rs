//! Other ways to use a format: codecs, cache sizes, alignment, and layers.

use hyperslab_core::units::exact_size;
use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{Stack, StackElement, TransferMode};
use hyperslab_formats::Advice;
use std::path::PathBuf;

/// Steps that are looked at to learn what a workload does.
const STEPS_LOOKED_AT: usize = 4096;
/// Sizes of chunk caches that are tried.
const CACHES: [u64; 2] = [64 << 20, 256 << 20];

/// What of the workloads decides which variants make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traits {
    /// Something is written.
    pub writes: bool,
    /// Something is read.
    pub reads: bool,
    /// Ranks compute in between.
    pub computes: bool,
    /// Several ranks make collective transfers.
    pub collective: bool,
    /// The most ranks.
    pub ranks: usize,
    /// Arrays ask for filters of their own.
    pub filters: bool,
    /// Bytes of memory that a cache may have.
    pub memory: u64,
}

impl Traits {
    /// Looks at the first steps of the first rank.
    pub fn of(workloads: &[&Workload], memory: u64) -> Self {
        let mut found = Self { memory, ..Self::default() };
        for workload in workloads {
            found.ranks = found.ranks.max(workload.header.ranks);
            found.filters |= workload.header.arrays.iter().any(|array| !array.spec.filters.is_empty());
            let Ok(steps) = workload.steps(0) else { continue };
            for step in steps.take(STEPS_LOOKED_AT).flatten() {
                match step {
                    Step::Write { transfer, .. } => {
                        found.writes = true;
                        found.collective |= transfer == TransferMode::Collective && workload.header.ranks > 1;
                    }
                    Step::Read { transfer, .. } => {
                        found.reads = true;
                        found.collective |= transfer == TransferMode::Collective && workload.header.ranks > 1;
                    }
                    Step::Compute { nanoseconds } => found.computes |= nanoseconds > 0,
                    _ => {}
                }
            }
        }
        found
    }
}

fn advice(stack: &Stack) -> Advice {
    hyperslab_formats::format(&stack.format.name).map_or(Advice::NONE, |entry| entry.advice)
}

/// The same format with a codec.
pub fn coded(stack: &Stack, traits: &Traits) -> Vec<Stack> {
    let codecs = if traits.filters { &[] } else { advice(stack).codecs };
    codecs.iter().map(|options| with_options(stack, options)).collect()
}

/// The same format with another chunk cache.
pub fn cached(stack: &Stack, traits: &Traits) -> Vec<Stack> {
    let useful = (advice(stack).cache_matters)(&stack.format, traits.filters);
    let sizes = CACHES.iter().filter(|size| useful && **size <= traits.memory / 4);
    sizes.map(|size| with_options(stack, &[("cache", exact_size(*size).as_str())])).collect()
}

/// The same format with its objects at multiples of these sizes.
pub fn aligned(stack: &Stack, sizes: &[u64]) -> Vec<Stack> {
    let can_align = hyperslab_formats::format(&stack.format.name).is_ok_and(|entry| entry.has_option("align"));
    let sizes = sizes.iter().filter(|_| can_align && stack.format.get("align").is_none());
    sizes.map(|size| with_options(stack, &[("align", exact_size(*size).as_str())])).collect()
}

/// The same stack below layers, each together with those that may stand above it.
pub fn layered(stack: &Stack, traits: &Traits, log: Option<&PathBuf>) -> Vec<Stack> {
    let mut found = Vec::new();
    let element = |name: &str, options: &[(&str, String)]| StackElement {
        name: name.into(),
        options: options.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
    };
    let mut add = |layers: Vec<StackElement>| {
        if stack.layers.is_empty() {
            found.push(Stack { layers, format: stack.format.clone() });
        }
    };
    let behind = element("async", &[]);
    if traits.computes {
        add(vec![behind.clone()]);
    }
    if traits.writes {
        let place = log.map(|log| ("dir", log.display().to_string()));
        add(vec![element("log", place.as_slice())]);
    }
    if traits.reads {
        add(vec![element("cache", &[("memory", exact_size((traits.memory / 4).next_multiple_of(1 << 20)))])]);
    }
    if traits.collective {
        for aggregators in [1, 2, 4, 8, 16].into_iter().filter(|n| *n <= traits.ranks) {
            let exchange = element("twophase", &[("aggregators", aggregators.to_string())]);
            add(vec![exchange.clone()]);
            if traits.computes {
                add(vec![behind.clone(), exchange]);
            }
        }
    }
    found
}

fn with_options(stack: &Stack, options: &[(&str, &str)]) -> Stack {
    let mut new = stack.clone();
    for (key, value) in options {
        new.format.options.retain(|(known, _)| known != key);
        new.format.options.push(((*key).to_owned(), (*value).to_owned()));
    }
    new
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const ALL: Traits = Traits {
        writes: true,
        reads: true,
        computes: true,
        collective: true,
        ranks: 3,
        filters: false,
        memory: 4 << 30,
    };

    #[test]
    fn every_variant_can_be_built_and_modelled() {
        let bases = ["hdf5", "hdf5(chunk=16x16)", "hdf5(chunk=16x16,plane=on)", "zarr(chunk=8x8,shard=16x16)", "posix"];
        for base in bases.map(|base| base.parse::<Stack>().unwrap()) {
            let mut all = coded(&base, &ALL);
            all.extend(cached(&base, &ALL));
            all.extend(aligned(&base, &[4096]));
            let below: Vec<Stack> = all.clone();
            all.extend(below.iter().chain([&base]).flat_map(|base| layered(base, &ALL, Some(&"/tmp".into()))));
            assert!(all.len() >= 6, "{base}");
            for stack in all {
                assert_eq!(stack.to_string().parse::<Stack>().unwrap(), stack);
                hyperslab::configuration(&stack).unwrap();
                if hyperslab_run::open_stack(&base).is_ok() {
                    hyperslab_run::open_stack(&stack).unwrap();
                }
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_not_tried() {
        let stack: Stack = "hdf5(chunk=16)".parse().unwrap();
        let alone = Traits { ranks: 1, collective: false, computes: false, writes: false, filters: true, ..ALL };
        let found: Vec<String> =
            layered(&stack, &alone, None).iter().map(|stack| stack.layers[0].name.clone()).collect();
        assert_eq!(found, ["cache"]);
        assert!(coded(&stack, &alone).is_empty());
        assert!(cached(&stack, &Traits { memory: 64 << 20, ..ALL }).is_empty());
        let names: Vec<String> = layered(&stack, &ALL, None).iter().map(ToString::to_string).collect();
        assert!(names.contains(&"async/twophase(aggregators=2)/hdf5(chunk=16)".into()), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("aggregators=4")), "{names:?}");
    }
}
