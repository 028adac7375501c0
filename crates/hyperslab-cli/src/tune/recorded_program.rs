//! What a program did to all its files: the recordings of all its processes, joined by files and datasets.

use anyhow::{Context, Result};
use hyperslab_core::workload::{JsonLines, Step, StepSource, Steps, TimedSteps, Workload};
use hyperslab_core::{ArraySpec, Dims, dims};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Steps of each recording that are kept: the first ones.
const MOST_STEPS: usize = 400_000;

/// All recordings of a program.
#[derive(Debug)]
pub struct RecordedProgram {
    /// One for each opening of a file.
    pub workloads: Vec<Workload>,
    /// Datasets that are stored alike, those that most bytes are moved of first.
    pub groups: Vec<ArrayGroup>,
    /// Names of files that it creates.
    pub created: BTreeSet<String>,
    /// Names of files that it changes.
    pub updated: BTreeSet<String>,
    /// Recorded seconds of writes and what else makes, and of reads.
    pub took: Took,
    /// Calls and bytes, by direction.
    pub written: Moved,
    /// The same of reads.
    pub read: Moved,
    /// Whether only the beginning of a recording was kept.
    pub partial: bool,
}

/// Recorded seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Took {
    /// In write calls.
    pub writing: f64,
    /// In read calls.
    pub reading: f64,
}

/// Transfers of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Calls.
    pub calls: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Datasets that the program stores alike.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayGroup {
    /// File and path of each.
    pub datasets: BTreeSet<(String, String)>,
    /// How it is declared, with the largest extents that it reaches.
    pub spec: ArraySpec,
    /// Whether the program creates them.
    pub created: bool,
    /// Bytes that are moved.
    pub bytes: u64,
    /// Numbers of workloads, and of the declarations in them.
    pub places: BTreeSet<(usize, usize)>,
}

impl RecordedProgram {
    /// Reads recordings.
    pub fn load<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Self> {
        let mut program = Self {
            workloads: Vec::new(),
            groups: Vec::new(),
            created: BTreeSet::new(),
            updated: BTreeSet::new(),
            took: Took::default(),
            written: Moved::default(),
            read: Moved::default(),
            partial: false,
        };
        let mut uses = Uses::default();
        for path in paths {
            program.add(path, &mut uses).with_context(|| path.display().to_string())?;
        }
        program.groups = uses.groups(&program.workloads);
        Ok(program)
    }

    fn add(&mut self, path: &Path, uses: &mut Uses) -> Result<()> {
        let again = path.to_owned();
        let lines = JsonLines::workload(Box::new(move || Ok(Box::new(BufReader::new(File::open(&again)?)))))?;
        let header = lines.header.clone();
        for file in &header.files {
            if file.created {
                self.created.insert(file.name.clone());
            } else if file.update.is_some() {
                self.updated.insert(file.name.clone());
            }
        }
        let (number, mut kept, mut open, mut wrote) = (self.workloads.len(), Vec::new(), BTreeMap::new(), false);
        for step in lines.timed_steps(0)? {
            let (step, took) = step?;
            let seconds = took.unwrap_or(0) as f64 / 1e9;
            match &step {
                Step::Create { slot, file, array, name } | Step::Open { slot, file, array, name } => {
                    let created = matches!(step, Step::Create { .. });
                    let file = header.files.get(*file as usize).map(|file| file.name.clone()).unwrap_or_default();
                    let key = (file, name.trim_matches('/').to_owned());
                    open.insert(*slot, uses.declared(number, *array as usize, key, created));
                }
                Step::Resize { slot, shape } => {
                    open.get(slot).into_iter().for_each(|place| uses.reaches(*place, shape));
                }
                Step::Write { slot, selection, .. } | Step::Read { slot, selection, .. } => {
                    let Some(place) = open.get(slot) else { continue };
                    let element = header.arrays.get(place.1).map_or(1, |array| array.spec.dtype.size());
                    let bytes = selection.len().saturating_mul(element);
                    uses.moved(*place, bytes);
                    if let Some((_, high)) = selection.bounds() {
                        uses.reaches(*place, &high);
                    }
                    let side = if matches!(step, Step::Write { .. }) {
                        self.took.writing += seconds;
                        wrote = true;
                        &mut self.written
                    } else {
                        self.took.reading += seconds;
                        &mut self.read
                    };
                    side.calls += 1;
                    side.bytes = side.bytes.saturating_add(bytes);
                }
                // What waited in caches is written now.
                Step::CloseArray { .. } | Step::CloseFile { .. } | Step::Flush { .. } if wrote => {
                    self.took.writing += seconds;
                }
                _ => {}
            }
            if kept.len() < MOST_STEPS {
                kept.push((step, took));
            } else {
                self.partial = true;
            }
        }
        self.workloads.push(Workload::new(header, Arc::new(KeptSteps(kept)))?);
        Ok(())
    }

    /// Names of all its files.
    pub fn files(&self) -> BTreeSet<&str> {
        let all = self.workloads.iter().flat_map(|one| one.header.files.iter());
        all.map(|file| file.name.as_str()).collect()
    }

    /// Names of files that it writes.
    pub fn outputs(&self) -> BTreeSet<&str> {
        self.created.iter().chain(&self.updated).map(String::as_str).collect()
    }
}

/// What is known of declared arrays on the way.
#[derive(Debug, Default)]
struct Uses {
    /// By workload and declaration.
    declarations: BTreeMap<(usize, usize), DeclaredUse>,
}

#[derive(Debug, Default)]
struct DeclaredUse {
    datasets: BTreeSet<(String, String)>,
    created: bool,
    bytes: u64,
    reached: Dims,
}

impl Uses {
    fn declared(&mut self, workload: usize, array: usize, key: (String, String), created: bool) -> (usize, usize) {
        let known = self.declarations.entry((workload, array)).or_default();
        known.datasets.insert(key);
        known.created |= created;
        (workload, array)
    }

    fn moved(&mut self, place: (usize, usize), bytes: u64) {
        let known = self.declarations.entry(place).or_default();
        known.bytes = known.bytes.saturating_add(bytes);
    }

    fn reaches(&mut self, place: (usize, usize), extents: &[u64]) {
        let known = &mut self.declarations.entry(place).or_default().reached;
        known.resize(known.len().max(extents.len()), 0);
        known.iter_mut().zip(extents).for_each(|(known, extent)| *known = (*known).max(*extent));
    }

    /// Declarations that have a dataset in common belong together.
    fn groups(self, workloads: &[Workload]) -> Vec<ArrayGroup> {
        let mut groups: Vec<ArrayGroup> = Vec::new();
        for ((workload, array), used) in self.declarations {
            let Some(declared) = workloads.get(workload).and_then(|one| one.header.arrays.get(array)) else { continue };
            let mut spec = declared.spec.clone();
            spec.shape.iter_mut().zip(&used.reached).for_each(|(extent, reached)| *extent = (*extent).max(*reached));
            let mut new = ArrayGroup {
                datasets: used.datasets,
                spec,
                created: used.created,
                bytes: used.bytes,
                places: [(workload, array)].into(),
            };
            let (same, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|known| {
                known.spec.shape.len() == new.spec.shape.len() && !known.datasets.is_disjoint(&new.datasets)
            });
            for known in same {
                new.join(known);
            }
            groups = others;
            groups.push(new);
        }
        groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.datasets.cmp(&b.datasets)));
        groups
    }
}

impl ArrayGroup {
    fn join(&mut self, other: Self) {
        // How it is stored is decided where it is created.
        let (mut spec, more) =
            if other.created || !self.created { (other.spec, &self.spec) } else { (self.spec.clone(), &other.spec) };
        spec.shape.iter_mut().zip(&more.shape).for_each(|(extent, reached)| *extent = (*extent).max(*reached));
        self.spec = spec;
        self.datasets.extend(other.datasets);
        self.places.extend(other.places);
        self.created |= other.created;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Bytes of one of them.
    pub fn size(&self) -> u64 {
        dims::byte_count(&self.spec.shape, self.spec.dtype.size()).unwrap_or(u64::MAX)
    }
}

/// Steps in memory.
#[derive(Debug)]
struct KeptSteps(Vec<(Step, Option<u64>)>);

impl StepSource for KeptSteps {
    fn steps(&self, rank: usize) -> hyperslab_core::Result<Steps<'_>> {
        let steps = if rank == 0 { self.0.as_slice() } else { &[] };
        Ok(Box::new(steps.iter().map(|(step, _)| Ok(step.clone()))))
    }

    fn timed_steps(&self, rank: usize) -> hyperslab_core::Result<TimedSteps<'_>> {
        let steps = if rank == 0 { self.0.as_slice() } else { &[] };
        Ok(Box::new(steps.iter().cloned().map(Ok)))
    }
}
