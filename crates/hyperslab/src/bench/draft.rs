//! From a benchmark of a workflow to the workloads that it stands for, on any stack.

use crate::h5bench::{Benchmark, Mode, Pattern, PatternKind, What};
use anyhow::{Context, Result};
use hyperslab_core::workload::{Update, Workload};
use hyperslab_core::{Caps, Filter};
use hyperslab_kernels::Particles;
use std::collections::HashMap;
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
    appended: u64,
    overwritten: u64,
}

/// What is written in h5bench's forms when a case is done.
#[derive(Debug, Clone)]
pub enum Report {
    /// A block of results and a CSV file.
    Pattern(Arc<Pattern>),
    /// Nothing.
    None,
}

impl Report {
    /// The mode that the benchmark asks for, if it has any.
    pub fn mode(&self) -> Option<&'static str> {
        match self {
            Self::Pattern(pattern) => Some(match pattern.mode {
                Mode::Sync => "SYNC",
                Mode::Async => "ASYNC",
                Mode::Log => "LOG",
            }),
            Self::None => None,
        }
    }
}

/// A case before it meets a stack.
pub struct Draft {
    /// Kind of benchmark.
    pub label: String,
    /// The container.
    pub file: String,
    /// What happens to it.
    pub effect: Effect,
    /// Alignment of objects in the file, and from which size on.
    pub alignment: Option<(u64, u64)>,
    /// The layer that it asks for.
    pub layer: Option<&'static str>,
    /// What asks for the layer.
    pub layer_reason: &'static str,
    /// How often it runs unless the user says otherwise.
    pub repeat: u32,
    /// What is reported.
    pub report: Report,
    /// What to run, or why not.
    pub work: Result<DraftWork, String>,
}

/// What a draft runs.
pub struct DraftWork {
    /// What to do.
    pub workload: Workload,
    /// Bytes of one repetition, all ranks.
    pub bytes: u64,
    /// Bytes of buffers, all ranks.
    pub memory: u64,
}

impl DraftWork {
    /// What the workload needs and a format with `caps` has not.
    pub fn lacking(&self, caps: &Caps) -> Option<&'static str> {
        let has = |filter: &Filter| match filter {
            Filter::Deflate(_) => caps.deflate,
            Filter::Shuffle => caps.shuffle,
            Filter::Fletcher32 => caps.fletcher32,
            Filter::Zstd(_) => caps.zstd,
            Filter::Blosc(_) => caps.blosc,
        };
        let header = &self.workload.header;
        let created = header.files.iter().any(|file| file.created);
        let extended = header.files.iter().any(|file| file.update == Some(Update::Extend));
        let specs = || header.arrays.iter().map(|array| &array.spec);
        if (extended || created && specs().any(|spec| spec.max_shape.is_some())) && !caps.resize {
            Some("arrays that grow")
        } else if created && specs().any(|spec| !spec.filters.iter().all(has)) {
            Some("such filters")
        } else if created && specs().any(|spec| spec.chunk.is_some()) && !caps.chunks {
            Some("chunks")
        } else {
            None
        }
    }
}

/// The cases of one benchmark. `name` gives a file its name on the stack, `files` what became of files so far.
pub fn drafts(
    benchmark: &Benchmark,
    ranks: usize,
    name: &dyn Fn(&str) -> String,
    files: &mut HashMap<String, FileState>,
    notes: &mut Vec<String>,
) -> Result<Vec<Draft>> {
    match &benchmark.what {
        What::Pattern(pattern) => {
            let file = name(&pattern.particles.file);
            let state = files.entry(file.clone()).or_default();
            let draft = pattern_draft(pattern, ranks, file, state, notes).with_context(|| benchmark.place.clone())?;
            Ok(vec![draft])
        }
        What::Unavailable => Ok(vec![Draft {
            label: benchmark.name.clone(),
            file: String::new(),
            effect: Effect::Reads,
            alignment: None,
            layer: None,
            layer_reason: "",
            repeat: 1,
            report: Report::None,
            work: Err(format!("benchmark {:?} is not available in this build", benchmark.name)),
        }]),
    }
}

fn pattern_draft(
    pattern: &Pattern,
    ranks: usize,
    file: String,
    state: &mut FileState,
    notes: &mut Vec<String>,
) -> Result<Draft> {
    let mut particles = Particles { ranks, file: file.clone(), ..pattern.particles.clone() };
    let effect = match pattern.kind {
        PatternKind::Read => Effect::Reads,
        PatternKind::Overwrite => Effect::Overwrites,
        PatternKind::Append => Effect::Extends,
        _ => Effect::Creates,
    };
    let workload = match effect {
        Effect::Creates => {
            *state = FileState::default();
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
        Mode::Sync => (None, ""),
        Mode::Async => (Some("async"), "MODE=ASYNC"),
        Mode::Log => (Some("log"), "MODE=LOG"),
    };
    let memory = particles.buffer_bytes()?.saturating_mul(ranks as u64);
    let work = DraftWork { workload, bytes: particles.total_bytes()?, memory };
    Ok(Draft {
        label: pattern.kind.name().into(),
        file,
        effect,
        alignment: pattern.alignment,
        layer,
        layer_reason,
        repeat: 1,
        report: Report::Pattern(Arc::new(pattern.clone())),
        work: match &pattern.unavailable {
            Some(reason) => Err(reason.clone()),
            None => Ok(work),
        },
    })
}
