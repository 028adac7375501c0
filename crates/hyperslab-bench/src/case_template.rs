//! From a benchmark of a workflow to the workloads that it stands for, on any stack.

use super::requirement::Requirement;
use anyhow::{Context, Result};
use hyperslab_core::dims::byte_count;
use hyperslab_core::units::exact_size;
use hyperslab_core::workload::{InputArray, Update, Workload};
use hyperslab_core::{Caps, StackElement, TransferMode};
use hyperslab_h5bench::{Asked, Benchmark, BenchmarkKind, Exerciser, Metadata, Mode, Pattern, PatternKind};
use hyperslab_kernels::{Particles, Sweep, Tiles};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// What a case does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Makes it.
    Creates,
    /// Needs it.
    Reads,
    /// Needs it and replaces data.
    Overwrites,
    /// Needs it and adds data.
    Extends,
}

/// What earlier benchmarks of the workflow did to a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileState {
    /// One of them makes it.
    made: bool,
    /// What makes it is in MODE=LOG, so that without the layer its data are not at their places.
    in_log_layout: bool,
    appended: u64,
    overwritten: u64,
}

/// What is written in h5bench's forms when a case is done.
#[derive(Debug, Clone)]
pub enum CaseReport {
    /// A block of results and a CSV file.
    Pattern(Arc<Pattern>),
    /// A row of the figures of this case and the one before it.
    Metadata(Arc<Tiles>, Option<String>),
    /// A table of this case and those before it, a write and a read for each size; then the file may go.
    Exerciser(Arc<Vec<Sweep>>, KeepFile),
    /// Nothing.
    None,
}

/// Whether the last case of a benchmark leaves its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepFile {
    /// It stays.
    Yes,
    /// It is removed.
    No,
}

impl CaseReport {
    /// The same of a run whose transfers were all made this way.
    pub fn with_transfers(self, transfer: TransferMode) -> Self {
        match self {
            Self::Pattern(pattern) => {
                let asked = Asked { collective_data: transfer == TransferMode::Collective, ..pattern.asked.clone() };
                Self::Pattern(Arc::new(Pattern { asked, ..(*pattern).clone() }))
            }
            Self::Metadata(tiles, name) => Self::Metadata(Arc::new(Tiles { transfer, ..(*tiles).clone() }), name),
            Self::Exerciser(sweeps, keep) => {
                let sweeps = sweeps.iter().map(|sweep| Sweep { transfer, ..sweep.clone() });
                Self::Exerciser(Arc::new(sweeps.collect()), keep)
            }
            Self::None => Self::None,
        }
    }

    /// The mode that the benchmark asks for, if it has any.
    pub fn mode(&self) -> Option<&'static str> {
        match self {
            Self::Pattern(pattern) => Some(match pattern.mode {
                Mode::Sync => "SYNC",
                Mode::Async => "ASYNC",
                Mode::Log => "LOG",
            }),
            Self::Metadata(..) | Self::Exerciser(..) | Self::None => None,
        }
    }
}

/// A case before it meets a stack.
pub struct CaseTemplate {
    /// Kind of benchmark.
    pub label: String,
    /// The container.
    pub file: String,
    /// What happens to it.
    pub effect: Effect,
    /// What it asks of the format.
    pub wishes: Vec<Requirement>,
    /// The layer that it asks for.
    pub layer: Option<StackElement>,
    /// What asks for the layer.
    pub layer_reason: &'static str,
    /// How often it runs unless the user says otherwise.
    pub repeat: u32,
    /// Whether data are compared though the user did not ask.
    pub verify: bool,
    /// What is reported.
    pub report: CaseReport,
    /// What to run, or why not.
    pub work: Result<TemplateWork, String>,
}

/// What a draft runs.
pub struct TemplateWork {
    /// What to do.
    pub workload: Workload,
    /// Bytes of one repetition, all ranks.
    pub bytes: u64,
    /// Bytes of buffers, all ranks.
    pub memory: u64,
    /// Bytes that its files need.
    pub room: u64,
    /// Arrays that must be there before.
    pub inputs: Vec<InputArray>,
    /// Formats without chunks may leave the chunks of arrays without filters out.
    pub chunks_are_advice: bool,
}

impl TemplateWork {
    /// One whose files hold what it transfers, and that finds its inputs.
    pub fn new(workload: Workload, bytes: u64, memory: u64) -> Self {
        Self { workload, bytes, memory, room: bytes, inputs: Vec::new(), chunks_are_advice: false }
    }

    /// Whether ranks meet in a file.
    pub fn shares_files(&self) -> bool {
        self.workload.header.files.iter().any(|file| !file.per_rank)
    }

    /// The same without chunks that a format with `caps` lacks, if they are only advice.
    pub fn fitted_to(mut self, caps: &Caps) -> hyperslab_core::Result<Self> {
        if self.chunks_are_advice && !caps.data.chunks {
            let mut header = self.workload.header.clone();
            header
                .arrays
                .iter_mut()
                .filter(|array| array.spec.filters.is_empty())
                .for_each(|array| array.spec.chunk = None);
            self.workload = self.workload.with_header(header)?;
        }
        Ok(self)
    }

    /// What the workload needs and a format with `caps` has not.
    pub fn lacking(&self, caps: &Caps) -> Option<&'static str> {
        let header = &self.workload.header;
        let created = !self.inputs.is_empty() || header.files.iter().any(|file| file.created);
        let extended = header.files.iter().any(|file| file.update == Some(Update::Extend));
        let specs = || header.arrays.iter().map(|array| &array.spec);
        if (extended || created && specs().any(|spec| spec.max_shape.is_some())) && !caps.data.resize {
            Some("arrays that grow")
        } else if created && specs().any(|spec| !spec.filters.iter().all(|filter| caps.has(filter))) {
            Some("such filters")
        } else if created && specs().any(|spec| spec.chunk.is_some()) && !caps.data.chunks {
            Some("chunks")
        } else {
            None
        }
    }
}

/// The cases of one benchmark. `name` gives a file its name on the stack, `files` what became of files so far; data lie in
/// `directory`.
pub fn drafts(
    benchmark: &Benchmark,
    ranks: usize,
    directory: &Path,
    name: &dyn Fn(&str) -> String,
    files: &mut HashMap<String, FileState>,
    notes: &mut Vec<String>,
) -> Result<Vec<CaseTemplate>> {
    match &benchmark.what {
        BenchmarkKind::Pattern(pattern) => {
            let file = name(&pattern.particles.file);
            let state = files.entry(file.clone()).or_default();
            let draft = pattern_draft(pattern, ranks, directory, file, state, notes)
                .with_context(|| benchmark.place.clone())?;
            Ok(vec![draft])
        }
        BenchmarkKind::Metadata(metadata) => {
            metadata_drafts(metadata, ranks, name).with_context(|| benchmark.place.clone())
        }
        BenchmarkKind::Exerciser(exerciser) => {
            exerciser_drafts(exerciser, ranks, name, notes).with_context(|| benchmark.place.clone())
        }
        BenchmarkKind::Application(application) => {
            super::kernels::application_drafts(application, ranks, directory, name, notes)
                .with_context(|| benchmark.place.clone())
        }
    }
}

impl CaseTemplate {
    /// Without layers, wishes or reports.
    pub fn plain(label: String, file: String, effect: Effect, work: Result<TemplateWork, String>) -> Self {
        Self {
            label,
            file,
            effect,
            wishes: Vec::new(),
            layer: None,
            layer_reason: "",
            repeat: 1,
            verify: false,
            report: CaseReport::None,
            work,
        }
    }
}

fn metadata_drafts(metadata: &Metadata, ranks: usize, name: &dyn Fn(&str) -> String) -> Result<Vec<CaseTemplate>> {
    let file = name(&metadata.tiles.file);
    let tiles = metadata.kernel(ranks, &file)?;
    let work = |workload| -> Result<TemplateWork> {
        let memory = tiles.buffer_bytes()?.saturating_mul(ranks as u64);
        Ok(TemplateWork::new(workload, tiles.total_bytes()?, memory))
    };
    let (write, read) = (work(tiles.write()?)?, work(tiles.read()?)?);
    let mut read = CaseTemplate::plain("metadata read".into(), file.clone(), Effect::Reads, Ok(read));
    read.report = CaseReport::Metadata(Arc::new(tiles.clone()), metadata.csv_file.clone());
    Ok(vec![CaseTemplate::plain("metadata write".into(), file, Effect::Creates, Ok(write)), read])
}

fn exerciser_drafts(
    exerciser: &Exerciser,
    ranks: usize,
    name: &dyn Fn(&str) -> String,
    notes: &mut Vec<String>,
) -> Result<Vec<CaseTemplate>> {
    let file = name(&exerciser.sweep.file);
    let (kernels, more) = exerciser.kernels(ranks, &file)?;
    notes.extend(more);
    let mut drafts = Vec::with_capacity(2 * kernels.len());
    for kernel in &kernels {
        let memory = kernel.buffer_bytes()?.saturating_mul(ranks as u64);
        let write = TemplateWork::new(kernel.write()?, kernel.total_bytes()?, memory);
        let read = TemplateWork::new(kernel.read()?, kernel.read_bytes()?, memory);
        for (label, effect, work) in [("write", Effect::Creates, write), ("read", Effect::Reads, read)] {
            let mut draft = CaseTemplate::plain(format!("exerciser {label}"), file.clone(), effect, Ok(work));
            draft.repeat = Exerciser::REPETITIONS as u32;
            draft.verify = exerciser.checks(kernel)?;
            drafts.push(draft);
        }
    }
    if let Some(last) = drafts.last_mut() {
        let keep = if exerciser.keep_file { KeepFile::Yes } else { KeepFile::No };
        last.report = CaseReport::Exerciser(Arc::new(kernels), keep);
    }
    Ok(drafts)
}

fn pattern_draft(
    pattern: &Pattern,
    ranks: usize,
    directory: &Path,
    file: String,
    state: &mut FileState,
    notes: &mut Vec<String>,
) -> Result<CaseTemplate> {
    let mut particles = Particles { ranks, file: file.clone(), ..pattern.particles.clone() };
    let effect = match pattern.kind {
        PatternKind::Read => Effect::Reads,
        PatternKind::Overwrite => Effect::Overwrites,
        PatternKind::Append => Effect::Extends,
        _ => Effect::Creates,
    };
    let workload = match effect {
        Effect::Creates => {
            *state = FileState { made: true, in_log_layout: pattern.mode == Mode::Log, ..FileState::default() };
            particles.write()?
        }
        Effect::Reads => particles.read()?,
        Effect::Overwrites => {
            // Other data than before, so that a lost overwrite is seen.
            state.overwritten += 1;
            particles.seed += state.overwritten;
            particles.appended = state.appended;
            particles.overwrite()?
        }
        Effect::Extends => {
            particles.appended = state.appended;
            state.appended += 1;
            if ranks > 1 {
                let note = "append: every rank adds DIM_1 of its own; h5bench grows arrays to 2 x DIM_1 whatever the ranks, \
                            and all ranks write the same part";
                if !notes.iter().any(|n| n == note) {
                    notes.push(note.into());
                }
            }
            particles.append()?
        }
    };
    let (layer, layer_reason) = match pattern.mode {
        Mode::Sync | Mode::Async if effect != Effect::Creates && state.in_log_layout => {
            let kind = pattern.kind.name();
            notes.push(format!(
                "{kind}: {file} was written in MODE=LOG, so that it is opened through the layer loglayout"
            ));
            (Some(StackElement::plain("loglayout")), "the layout of its file")
        }
        Mode::Sync => (None, ""),
        Mode::Async => {
            // h5bench waits for what is staged when so much of it has gathered.
            let memory = pattern.memory_limit.map(|bytes| ("memory".to_owned(), exact_size(bytes)));
            (Some(StackElement { name: "async".into(), options: memory.into_iter().collect() }), "MODE=ASYNC")
        }
        Mode::Log => (Some(StackElement::plain("loglayout")), "MODE=LOG"),
    };
    let memory = particles.buffer_bytes()?.saturating_mul(ranks as u64);
    let mut work = TemplateWork::new(workload, particles.total_bytes()?, memory);
    let shared = work.shares_files();
    // Finding out what it reads means to walk through all of its steps, which takes long for large ones: these need their file.
    let is_small = work.bytes <= 1 << 30 && (ranks as u64).saturating_mul(particles.time_steps) <= 10_000;
    if effect != Effect::Creates && !state.made && shared && is_small && !directory.join(&file).exists() {
        notes.push(format!(
            "{}: there is no file {file}; one is made first, not measured, and removed afterwards",
            pattern.kind.name()
        ));
        work.inputs = work.workload.validate()?.inputs;
        let spec = |input: &InputArray| &work.workload.header.arrays[input.array as usize].spec;
        let bytes = work.inputs.iter().map(|input| byte_count(&spec(input).shape, spec(input).dtype.size()));
        work.room = bytes.sum::<hyperslab_core::Result<u64>>()?.saturating_add(work.room);
    }
    let work = match &pattern.unavailable {
        Some(reason) => Err(reason.clone()),
        None => Ok(work),
    };
    Ok(CaseTemplate {
        wishes: wishes(pattern),
        layer,
        layer_reason,
        report: CaseReport::Pattern(Arc::new(pattern.clone())),
        ..CaseTemplate::plain(pattern.kind.name().into(), file, effect, work)
    })
}

fn wishes(pattern: &Pattern) -> Vec<Requirement> {
    let mut wishes = Vec::new();
    let mut wish = |key, options, processes, vital| wishes.push(Requirement { key, options, processes, vital });
    if let Some((length, threshold)) = pattern.alignment {
        let options = vec![("align", exact_size(length)), ("align_threshold", exact_size(threshold))];
        wish("ALIGN", options, false, false);
    }
    if pattern.asked.collective_metadata {
        wish("COLLECTIVE_METADATA", vec![("collective_metadata", "yes".into())], true, false);
    }
    if pattern.asked.subfiling {
        wish("SUBFILING=YES", vec![("driver", "subfiling".into())], true, true);
    }
    wishes
}
