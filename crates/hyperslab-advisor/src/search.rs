//! Comparing many stacks: first formats and shapes of chunks, then other ways to use the best of them.

use super::candidates;
use super::compressibility::Compressibility;
use super::inputs::{Input, LEAST_MEMORY, SearchSpace, check_ranks};
use super::scored_stack::{ScoredStack, ScoredWorkload};
use super::variants::{self, Traits};
use anyhow::{Result, bail};
use hyperslab_core::Stack;
use hyperslab_core::workload::Workload;
use hyperslab_model::{Conditions, Count, Profile, count, predict};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Nothing new is begun after this, so that answers come soon; a stage always compares some.
const STAGES: [Duration; 3] = [Duration::from_millis(600), Duration::from_millis(1000), Duration::from_millis(1300)];
/// Stacks that a stage compares however long that takes.
const AT_LEAST: usize = 3;
/// Stacks of the first stage whose codecs, caches and alignment are tried, and of all whose layers are.
const TRIED: usize = 4;
/// A variant that is not faster by this part than what it varies costs something for nothing.
const WORTH: f64 = 0.02;
/// What visits more chunks than this, and than so many for each request, is not looked at to its end: it is slow.
const MOST_VISITS: u64 = 200_000;
const MOST_VISITS_OF_A_REQUEST: u64 = 8;

/// What is compared, and with what.
pub struct Search<'a> {
    input: &'a Input,
    profile: &'a Profile,
    /// Of the present stack, and so of all.
    conditions: Conditions,
    /// What codecs leave.
    pub data: Compressibility,
    /// What is tried that the input does not say.
    pub freedom: SearchSpace,
    begin: Instant,
    most_visits: u64,
    /// Whether collective transfers are tried.
    pub collective: bool,
    /// Stacks that were not compared for lack of time.
    pub left: usize,
    /// Stacks that were.
    pub compared: usize,
}

impl<'a> Search<'a> {
    /// Begins with the present stack, with layers as the workflow asks for them; if all its benchmarks ask for the same, the
    /// stack says so from then on.
    pub fn new(input: &'a Input, profile: &'a Profile, stack: &Stack) -> Result<(Self, ScoredStack)> {
        let begin = Instant::now();
        let plan = input.plan(&[stack.to_string()], SearchSpace::default())?;
        let conditions = input.conditions(&plan, profile);
        let cases: Vec<_> = plan.cases.iter().filter(|case| case.work.is_ok()).collect();
        let Some(first) = cases.first() else { bail!("there is nothing in it that this build can run") };
        let own_layers = cases.iter().all(|case| case.stack.layers == first.stack.layers);
        let mut present = stack.clone();
        if own_layers {
            present.layers = first.stack.layers.clone();
        }
        let (mut works, mut data) = (Vec::new(), Compressibility::new(input.ratio));
        for case in cases {
            let Ok(work) = &case.work else { continue };
            check_ranks(work.workload.header.ranks, profile)?;
            let configuration = hyperslab::configuration(&case.stack)?.stored(data.shares(&work.workload, &case.stack));
            let costs = count(&work.workload, &configuration)?;
            let prediction = predict(&costs, configuration.class(), profile, conditions)?;
            works.push(ScoredWorkload { workload: work.workload.clone(), configuration, costs, prediction });
        }
        let most_visits = u64::MAX;
        let freedom = SearchSpace { own_layers, exchanges: false };
        let search = Self {
            input,
            profile,
            conditions,
            data,
            freedom,
            collective: false,
            begin,
            most_visits,
            left: 0,
            compared: 1,
        };
        Ok((search, ScoredStack::new(present, works)))
    }

    /// Everything that is worth comparing, the fastest first, the present one among them.
    pub fn all(&mut self, present: ScoredStack, formats: &[String], log: Option<&PathBuf>) -> Result<Vec<ScoredStack>> {
        let workloads: Vec<Workload> = present.works.iter().map(|work| work.workload.clone()).collect();
        let workloads: Vec<&Workload> = workloads.iter().collect();
        let mut traits = Traits::of(&workloads, self.profile.machine.memory);
        if traits.ranks > 1 && !traits.collective && self.input.transfers.is_none() {
            traits.collective = self.could_exchange();
        }
        self.collective = traits.collective;
        let cases = workloads.len();
        let plain = candidates::stacks(&workloads, formats).iter().filter_map(|text| text.parse().ok()).collect();
        self.most_visits = MOST_VISITS.max(MOST_VISITS_OF_A_REQUEST.saturating_mul(present.count(Count::Requests)));
        let mut ranked = vec![present];
        self.stage(0, plain, cases, &mut ranked)?;
        let best = fastest(&ranked, |stack| stack.layers.is_empty());
        let sizes: Vec<u64> = self.profile.alignment.iter().map(|known| known.bytes).collect();
        let mut more = Vec::new();
        for stack in &best {
            more.extend(variants::coded(stack, &traits));
            more.extend(variants::cached(stack, &traits));
            more.extend(variants::aligned(stack, &sizes));
        }
        let caches = more.iter().flat_map(|stack| match stack.format.get("deflate") {
            Some(_) => variants::cached(stack, &traits),
            None => Vec::new(),
        });
        let caches: Vec<Stack> = caches.collect();
        more.extend(caches);
        self.stage(1, more, cases, &mut ranked)?;
        if self.freedom.own_layers {
            let best = fastest(&ranked, |stack| stack.layers.is_empty());
            let layered = best.iter().flat_map(|stack| variants::layered(stack, &traits, log)).collect();
            self.stage(2, layered, cases, &mut ranked)?;
        }
        // What does not fit into memory cannot be had.
        let memory = self.profile.machine.memory / 2;
        let known = self.profile.machine.memory >= LEAST_MEMORY;
        let fits = |one: &ScoredStack| !known || one.sizes().map_or(true, |sizes| sizes.memory <= memory);
        let kept = ranked.split_off(1).into_iter().filter(fits).collect::<Vec<_>>();
        ranked.extend(kept);
        Ok(ranked)
    }

    /// Whether all ranks make the same transfers, so that they could make them together; that is tried from then on.
    fn could_exchange(&mut self) -> bool {
        let together = SearchSpace { exchanges: true, ..self.freedom };
        if self.input.plan(&["hdf5".to_owned()], together).is_ok() {
            self.freedom = together;
        }
        self.freedom.exchanges
    }

    /// Compares stacks that are not compared yet and can hold all `cases`, as long as the stage has time, and keeps what is
    /// worth something. The first of `ranked` stays.
    fn stage(&mut self, stage: usize, stacks: Vec<Stack>, cases: usize, ranked: &mut Vec<ScoredStack>) -> Result<()> {
        let mut new: Vec<Stack> = Vec::new();
        for stack in stacks {
            let known = ranked.iter().any(|one| one.stack == stack) || new.contains(&stack);
            if !known && hyperslab_run::open_stack(&stack).is_ok() && hyperslab::configuration(&stack).is_ok() {
                new.push(stack);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = new.iter().map(Stack::to_string).collect();
        let plan = self.input.plan(&texts, self.freedom)?;
        let of_each = plan.cases.len() / new.len();
        let mut tasks = Vec::new();
        for (stack, planned) in new.iter().zip(plan.cases.chunks(of_each.max(1))) {
            let works = planned.iter().filter_map(|case| Some((&case.stack, &case.work.as_ref().ok()?.workload)));
            let works: Vec<_> =
                works.map(|(stack, workload)| (stack, workload, self.data.shares(workload, stack))).collect();
            // What cannot hold everything is no candidate.
            if works.len() == cases {
                tasks.push((stack, works));
            }
        }
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let (begin, profile, conditions, most) = (self.begin, self.profile, self.conditions, self.most_visits);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some((stack, works)) = tasks.get(number) else { return };
                if number >= AT_LEAST && begin.elapsed() > STAGES[stage] {
                    continue;
                }
                let subjects =
                    works.iter().map(|(stack, workload, shares)| -> hyperslab_core::Result<ScoredWorkload> {
                        let configuration = hyperslab::configuration(stack)?.stored(shares.clone()).at_most(most);
                        let costs = count(workload, &configuration)?;
                        let prediction = predict(&costs, configuration.class(), profile, conditions)?;
                        Ok(ScoredWorkload { workload: (*workload).clone(), configuration, costs, prediction })
                    });
                // What was never measured, or refuses the arrays, is no candidate either.
                let one = subjects.collect::<hyperslab_core::Result<Vec<_>>>().ok();
                let one = one.map(|subjects| ScoredStack::new((*stack).clone(), subjects));
                found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, one));
            }
        };
        std::thread::scope(|scope| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from).min(tasks.len().max(1));
            (1..threads).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
        let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        found.sort_by_key(|(number, _)| *number);
        self.left += tasks.len() - found.len();
        self.compared += found.len();
        let found: Vec<ScoredStack> = found.into_iter().filter_map(|(_, one)| one).collect();
        let known: Vec<(Stack, f64)> =
            ranked.iter().chain(&found).map(|one| (one.stack.clone(), one.seconds)).collect();
        let worth = |one: &ScoredStack| {
            let base = base(&one.stack);
            let varied = known.iter().find(|(stack, _)| *stack == base && *stack != one.stack);
            varied.is_none_or(|(_, seconds)| one.seconds < (1.0 - WORTH) * seconds)
        };
        ranked.extend(found.into_iter().filter(worth));
        Ok(())
    }
}

/// What a stack is a variant of: the same without layers, or without the options that cost something and store the same.
fn base(stack: &Stack) -> Stack {
    let mut base = stack.clone();
    if base.layers.is_empty() {
        base.format.options.retain(|(key, _)| key != "cache" && key != "align");
    }
    base.layers.clear();
    base
}

/// The fastest stacks of a kind, not more than some, and the fastest of each other format.
fn fastest(ranked: &[ScoredStack], kind: impl Fn(&Stack) -> bool) -> Vec<Stack> {
    let mut some: Vec<&ScoredStack> = ranked.iter().filter(|one| kind(&one.stack)).collect();
    some.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let mut chosen: Vec<Stack> = Vec::new();
    for stack in some.into_iter().map(|one| &one.stack) {
        if chosen.len() < TRIED || chosen.iter().all(|known| known.format.name != stack.format.name) {
            chosen.push(stack.clone());
        }
    }
    chosen
}
