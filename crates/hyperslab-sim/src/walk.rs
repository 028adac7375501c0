//! From the steps of a workload to phases: what ranks do between one synchronisation and the next.

use crate::extent_locks::LockTables;
use crate::file_layout::{ArrayPlacement, FileLayout};
use crate::load::{CallKind, Load, RoundCall, Scene};
use crate::stripe_placement::StripePlacement;
use crate::system::System;
use hyperslab_core::workload::{Step, Steps, Workload};
use hyperslab_core::{Result, Selection, Stack, TransferMode};
use std::collections::HashMap;

/// How a run is placed on a system.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPlacement {
    /// Ranks of a node.
    pub ranks_per_node: usize,
    /// Bytes of a stripe.
    pub stripe_size: u64,
    /// Targets of a file.
    pub stripe_count: u64,
    /// Ranks that are looked at; the others are like them.
    pub most_ranks: usize,
}

impl RunPlacement {
    /// The system's own.
    pub fn of(system: &System) -> Self {
        Self {
            ranks_per_node: system.nodes.ranks.value as usize,
            stripe_size: system.storage.stripe_size.value as u64,
            stripe_count: (system.storage.stripe_count.value as u64).min(system.targets()),
            most_ranks: 512,
        }
    }
}

/// What happens from the beginning to the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Walked {
    /// Ranks of the run.
    pub ranks: usize,
    /// Nodes of the run.
    pub nodes: usize,
    /// Ranks that were looked at.
    pub looked_at: usize,
    /// In order; equal neighbours are folded.
    pub events: Vec<WalkEvent>,
    /// Bytes that are written, of all ranks.
    pub written: f64,
    /// Bytes that are read.
    pub read: f64,
    /// Steps that were walked through.
    pub steps: u64,
}

/// One of the things that happen.
#[derive(Debug, Clone, PartialEq)]
pub enum WalkEvent {
    /// Containers are opened or created: so many by one rank for all, or by each.
    Open {
        /// Files that metadata servers make or find.
        files: f64,
    },
    /// Everybody waits for all: a barrier, or a call that changes metadata.
    Barrier,
    /// Seconds of computation.
    Compute(f64),
    /// What was written has to be on storage.
    Flush,
    /// Calls without a synchronisation between, unless they are collective.
    Transfer(Vec<Load>),
}

/// Steps of all ranks that are looked at in one walk; beyond, fewer ranks are.
const MOST_STEPS: u64 = 24_000_000;
/// Ranges of a call that are listed.
const MOST_RANGES: usize = 1 << 16;
/// Pieces of calls on targets that are looked at in a round.
const MOST_PIECES: usize = 1 << 22;
/// Phases of one shape whose geometry is worked out; later ones are taken to be like these.
const MOST_ALIKE: usize = 6;

/// Walks through `workload` on the format of `stack`.
pub fn walk(workload: &Workload, stack: &Stack, system: &System, run: &RunPlacement) -> Result<Walked> {
    let ranks = workload.header.ranks;
    // Every call may reach every target of its file.
    let most = run.most_ranks.min(MOST_PIECES / run.stripe_count.clamp(1, system.targets()) as usize);
    let sampled = sample(ranks, run.ranks_per_node.max(1), most.max(1));
    let mut walker = Walker::new(workload, stack, system, run, sampled)?;
    walker.play()?;
    Ok(walker.found)
}

/// Whole nodes from the beginning, the middle and the end, so that neighbours stay neighbours.
fn sample(ranks: usize, per_node: usize, most: usize) -> Vec<usize> {
    if ranks <= most {
        return (0..ranks).collect();
    }
    let third = (most / 3 / per_node).max(1) * per_node;
    let third = third.min(most.max(1));
    let middle = (ranks / 2) / per_node * per_node;
    let last = ranks.saturating_sub(third);
    let mut all: Vec<usize> = (0..third).chain(middle..middle + third).chain(last..ranks).collect();
    all.retain(|rank| *rank < ranks);
    all.sort_unstable();
    all.dedup();
    all
}

struct Walker<'a> {
    workload: &'a Workload,
    system: &'a System,
    run: &'a RunPlacement,
    layout: FileLayout,
    sampled: Vec<usize>,
    cursors: Vec<Cursor<'a>>,
    files: HashMap<u32, FileLayout>,
    arrays: HashMap<u32, OpenedArray>,
    by_name: HashMap<(u32, String), ArrayPlacement>,
    gathering: Option<Gathering>,
    alike: HashMap<Signature, (usize, Vec<Load>)>,
    found: Walked,
}

#[derive(Debug, Clone)]
struct OpenedArray {
    file: u32,
    array: u32,
    placement: ArrayPlacement,
}

struct Cursor<'a> {
    steps: Steps<'a>,
    next: Option<Step>,
}

/// What makes phases alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Signature {
    kind: CallKind,
    array: u32,
    first: u64,
}

/// Rounds of a phase that are being collected.
struct Gathering {
    signature: Signature,
    slot: u32,
    rounds: u64,
    /// Calls of the window that is open.
    window: Vec<RoundCall>,
    window_rounds: usize,
    window_bytes: f64,
    /// The next window that is looked at.
    number: u64,
    wanted: u64,
    loads: Vec<Load>,
    locks: LockTables,
    skips: bool,
    skipped: u64,
}

impl<'a> Cursor<'a> {
    fn pull(&mut self) -> Result<()> {
        self.next = self.steps.next().transpose()?;
        Ok(())
    }
}

fn is_transfer(step: &Step) -> bool {
    matches!(step, Step::Write { .. } | Step::Read { .. })
}

impl<'a> Walker<'a> {
    fn new(
        workload: &'a Workload,
        stack: &Stack,
        system: &'a System,
        run: &'a RunPlacement,
        sampled: Vec<usize>,
    ) -> Result<Self> {
        let ranks = workload.header.ranks;
        let cursor = |rank: &usize| Ok(Cursor { steps: workload.steps(*rank)?, next: None });
        let cursors = sampled.iter().map(cursor).collect::<Result<Vec<_>>>()?;
        let nodes = ranks.div_ceil(run.ranks_per_node.max(1));
        let found = Walked { ranks, nodes, looked_at: sampled.len(), ..Walked::default() };
        Ok(Self {
            workload,
            system,
            run,
            layout: FileLayout::of(stack)?,
            sampled,
            cursors,
            files: HashMap::new(),
            arrays: HashMap::new(),
            by_name: HashMap::new(),
            gathering: None,
            alike: HashMap::new(),
            found,
        })
    }

    fn scale(&self) -> f64 {
        self.found.ranks as f64 / self.sampled.len().max(1) as f64
    }

    fn play(&mut self) -> Result<()> {
        for at in 0..self.cursors.len() {
            self.cursors[at].pull()?;
        }
        loop {
            if self.found.steps > MOST_STEPS && self.cursors.len() > 16 {
                self.drop_ranks();
            }
            let leads = |step: &Option<Step>| step.as_ref().is_some_and(is_transfer);
            if self.cursors.iter().any(|cursor| leads(&cursor.next)) {
                self.round()?;
                continue;
            }
            let Some(at) = self.cursors.iter().position(|cursor| cursor.next.is_some()) else { break };
            let step = self.cursors[at].next.clone();
            for cursor in at..self.cursors.len() {
                if self.cursors[cursor].next.is_some() {
                    self.found.steps += 1;
                    self.cursors[cursor].pull()?;
                }
            }
            if let Some(step) = step {
                self.together(step)?;
            }
        }
        self.finish();
        Ok(())
    }

    /// Goes on with every second rank: what is walked through is enough to know them.
    fn drop_ranks(&mut self) {
        self.finish();
        let half = self.cursors.len() / 2;
        self.cursors.truncate(half);
        self.sampled.truncate(half);
        self.found.steps = 0;
    }

    /// One call of every rank that has one.
    fn round(&mut self) -> Result<()> {
        let lead = self.cursors.iter().find_map(|cursor| match &cursor.next {
            Some(Step::Write { slot, transfer, .. }) => Some((*slot, true, *transfer)),
            Some(Step::Read { slot, transfer, .. }) => Some((*slot, false, *transfer)),
            _ => None,
        });
        let Some((slot, writes, transfer)) = lead else { return Ok(()) };
        let Some(open) = self.arrays.get(&slot).cloned() else {
            return self.skip_round();
        };
        let kind = CallKind {
            writes,
            collective: transfer == TransferMode::Collective,
            library: self.layout.library,
            posix: self.layout.posix,
            chunked: open.placement.is_chunked(),
        };
        self.gather(slot, kind, &open);
        let looked = self.gathering.as_ref().is_some_and(|gathering| !gathering.skips);
        let per_rank = self.workload.header.files.get(open.file as usize).is_some_and(|file| file.per_rank);
        let (mut bytes, mut calls) = (0.0, Vec::new());
        let most = (MOST_RANGES * 8 / self.cursors.len().max(1)).clamp(64, MOST_RANGES);
        for at in 0..self.cursors.len() {
            let cursor = &mut self.cursors[at];
            let same = match &cursor.next {
                Some(Step::Write { slot: other, .. }) => writes && *other == slot,
                Some(Step::Read { slot: other, .. }) => !writes && *other == slot,
                _ => false,
            };
            if !same {
                continue;
            }
            let Some(Step::Write { selection, .. } | Step::Read { selection, .. }) = cursor.next.take() else {
                continue;
            };
            cursor.pull()?;
            self.found.steps += 1;
            let moved = selection.len() as f64 * self.element(open.array);
            bytes += moved;
            if looked {
                let rank = self.sampled[at];
                let file = u64::from(open.file) + if per_rank { 1 + rank as u64 } else { 0 };
                calls.push(self.call(&selection, &open, rank, file, most)?);
            }
        }
        let all = bytes * self.scale();
        if writes {
            self.found.written += all
        } else {
            self.found.read += all
        }
        self.add_round(calls, bytes);
        Ok(())
    }

    /// A transfer of an array that nothing has opened: hostile or cut off; it is left out.
    fn skip_round(&mut self) -> Result<()> {
        for cursor in &mut self.cursors {
            if cursor.next.as_ref().is_some_and(is_transfer) {
                cursor.pull()?;
            }
        }
        Ok(())
    }

    fn element(&self, array: u32) -> f64 {
        self.workload.header.arrays.get(array as usize).map_or(1.0, |array| array.spec.dtype.size() as f64)
    }

    fn call(
        &self,
        selection: &Selection,
        open: &OpenedArray,
        rank: usize,
        file: u64,
        most: usize,
    ) -> Result<RoundCall> {
        let ranges = open.placement.ranges(selection, most)?;
        let round = self.gathering.as_ref().map_or(0, |gathering| gathering.window_rounds);
        Ok(RoundCall { round, node: rank / self.run.ranks_per_node.max(1), file, ranges })
    }

    /// Begins a phase, unless the round belongs to the one that is going on.
    fn gather(&mut self, slot: u32, kind: CallKind, open: &OpenedArray) {
        if self.gathering.as_ref().is_some_and(|now| now.slot == slot && now.signature.kind == kind) {
            return;
        }
        self.finish();
        let first = match self.cursors.first().and_then(|cursor| cursor.next.as_ref()) {
            Some(Step::Write { selection, .. } | Step::Read { selection, .. }) => selection.len(),
            _ => 0,
        };
        let signature = Signature { kind, array: open.array, first };
        let skips = self.alike.get(&signature).is_some_and(|(seen, _)| *seen >= MOST_ALIKE);
        self.gathering = Some(Gathering {
            signature,
            slot,
            rounds: 0,
            window: Vec::new(),
            window_rounds: 0,
            window_bytes: 0.0,
            number: 0,
            wanted: 0,
            loads: Vec::new(),
            locks: LockTables::default(),
            skips,
            skipped: 0,
        });
    }

    /// Adds a round to the window; a window is as long as the clients' caches are, since these smooth what is inside.
    fn add_round(&mut self, calls: Vec<RoundCall>, bytes: f64) {
        let nodes = (self.sampled.len() as f64 / self.run.ranks_per_node.max(1) as f64).max(1.0);
        let cache = self.system.nodes.client_cache.value * nodes;
        let cycle = (self.run.stripe_size as f64 * self.run.stripe_count as f64).max(1.0) * nodes;
        let Some(gathering) = &mut self.gathering else { return };
        gathering.rounds += 1;
        gathering.window_rounds += 1;
        gathering.window_bytes += bytes;
        if gathering.skips {
            gathering.skipped += 1;
            return;
        }
        if gathering.number >= gathering.wanted {
            gathering.window.extend(calls);
        }
        // Whole cycles of stripes, so that the end of a window loads no target more than the others.
        let whole = gathering.window_bytes.rem_euclid(cycle) < 1.0 || gathering.window_bytes >= 16.0 * cache.max(cycle);
        let full = gathering.window_bytes >= cache && gathering.window_rounds >= 2 && whole;
        if full || gathering.window_rounds >= 4096 {
            self.close_window();
        }
    }

    fn scene(&self, kind: CallKind) -> Scene {
        let targets = self.system.targets();
        let stripes = StripePlacement {
            size: self.run.stripe_size.max(1),
            count: self.run.stripe_count.clamp(1, targets),
            first: 0,
            targets,
        };
        let targets_per_server = self.system.storage.targets.value as u64;
        Scene { kind, scale: self.scale(), targets_per_server, stripes }
    }

    /// Works out the window, if it is one of those that are looked at; the others are counted to the last of these.
    fn close_window(&mut self) {
        let Some(kind) = self.gathering.as_ref().map(|gathering| gathering.signature.kind) else { return };
        let scene = self.scene(kind);
        let Some(gathering) = &mut self.gathering else { return };
        let rounds = std::mem::take(&mut gathering.window_rounds);
        gathering.window_bytes = 0.0;
        if rounds == 0 {
            return;
        }
        if gathering.number >= gathering.wanted {
            let calls = std::mem::take(&mut gathering.window);
            let load = scene.load(&calls, rounds, &mut gathering.locks);
            match gathering.loads.last_mut() {
                Some(last) if last.is_like(&load) => last.rounds += load.rounds,
                _ => gathering.loads.push(load),
            }
            gathering.wanted = gathering.number + 1 + gathering.number / 8;
        } else if let Some(last) = gathering.loads.last_mut() {
            last.rounds += rounds as f64;
        }
        gathering.number += 1;
    }

    /// Ends the phase.
    fn finish(&mut self) {
        self.close_window();
        let Some(gathering) = self.gathering.take() else { return };
        let alike = self.alike.entry(gathering.signature).or_insert_with(|| (0, Vec::new()));
        let loads = if gathering.skips {
            // Like those before, as often as there are rounds now.
            let known: f64 = alike.1.iter().map(|load| load.rounds).sum();
            let times = gathering.skipped as f64 / known.max(1.0);
            alike.1.iter().map(|load| Load { rounds: load.rounds * times, ..load.clone() }).collect()
        } else {
            alike.0 += 1;
            alike.1.clone_from(&gathering.loads);
            gathering.loads
        };
        if !loads.is_empty() {
            self.found.events.push(WalkEvent::Transfer(loads));
        }
    }

    /// A step that is no transfer.
    fn together(&mut self, step: Step) -> Result<()> {
        let header = &self.workload.header;
        match step {
            Step::OpenFile { file, .. } => {
                self.finish();
                let per_rank = header.files.get(file as usize).is_some_and(|file| file.per_rank);
                let files = if per_rank { self.found.ranks as f64 } else { 1.0 };
                self.files.insert(file, self.layout.emptied());
                self.found.events.push(WalkEvent::Open { files });
            }
            Step::Create { slot, file, array, name } | Step::Open { slot, file, array, name } => {
                self.finish();
                let spec = header.arrays.get(array as usize).map(|array| array.spec.clone());
                let key = (file, name.to_string());
                let placement = match (self.by_name.get(&key), spec) {
                    (Some(known), _) => known.clone(),
                    (None, Some(spec)) => {
                        let layout = self.files.entry(file).or_insert_with(|| self.layout.emptied());
                        layout.place(&spec)?
                    }
                    (None, None) => return Ok(()),
                };
                if self.by_name.len() < 1 << 16 {
                    self.by_name.insert(key, placement.clone());
                }
                self.arrays.insert(slot, OpenedArray { file, array, placement });
                self.found.events.push(WalkEvent::Barrier);
            }
            Step::Resize { slot, shape } => {
                if let Some(open) = self.arrays.get_mut(&slot) {
                    open.placement = open.placement.resized(&shape)?;
                }
                self.found.events.push(WalkEvent::Barrier);
            }
            Step::Compute { nanoseconds } => {
                self.finish();
                self.found.events.push(WalkEvent::Compute(nanoseconds as f64 * 1e-9));
            }
            Step::Flush { .. } | Step::CloseFile { .. } => {
                self.finish();
                self.found.events.push(WalkEvent::Flush);
            }
            Step::Barrier | Step::Group { .. } | Step::Attribute { .. } => {
                self.finish();
                self.found.events.push(WalkEvent::Barrier);
            }
            Step::CloseArray { .. } => self.finish(),
            Step::Epoch { .. } | Step::Write { .. } | Step::Read { .. } => {}
        }
        Ok(())
    }
}
