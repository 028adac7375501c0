//! Application kernels by name: which one was asked for, its phases as drafts, and what people can read about them.

use super::case_template::{CaseTemplate, Effect, TemplateWork};
use super::map_files::MapFiles;
use super::requirement::Requirement;
use crate::options::BenchOptions;
use anyhow::{Context, Result, bail};
use hyperslab_core::dims::byte_count;
use hyperslab_core::workload::{InputArray, Update, WorkloadSummary};
use hyperslab_core::{StackElement, suggest};
use hyperslab_h5bench::{Application, Workflow};
use hyperslab_kernels::{Kernel, Phase, kernels};
use hyperslab_report::table::{Align, Table};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The kernel of the command line, and the keys given to it.
pub struct Named<'a> {
    kernel: &'static Kernel,
    keys: &'a [String],
}

impl<'a> Named<'a> {
    /// The kernel that the first word names. A path with a slash or a dot is always a workflow's.
    pub fn asked(options: &'a BenchOptions) -> Result<Option<Self>> {
        let word = options.config.as_ref().and_then(|path| path.to_str());
        if let Some(kernel) = word.and_then(Kernel::named) {
            return Ok(Some(Self { kernel, keys: &options.keys }));
        }
        if let Some(word) = word.filter(|word| !word.contains(['/', '.']))
            && !PathBuf::from(word).exists()
        {
            let names = kernels().iter().map(|kernel| kernel.name);
            bail!("{word:?} is neither a kernel nor a file; {}", suggest::hint(word, names));
        }
        match options.keys.first() {
            Some(key) => bail!("{key:?}: keys are for kernels, such as: hyperslab bench {} {key}", kernels()[0].name),
            None => Ok(None),
        }
    }

    /// The workflow that has no benchmarks but this kernel.
    pub fn workflow(&self) -> Workflow {
        // What one wrote, the other reads.
        let name = if self.kernel.name == "bdcats" { "vpic" } else { self.kernel.name };
        Workflow {
            directory: PathBuf::from(format!("hyperslab-{name}")),
            ranks: Some(self.kernel.ranks),
            launcher: None,
            striping: None,
            notes: Vec::new(),
            benchmarks: Vec::new(),
        }
    }

    /// Its phases for `ranks` ranks, walked through.
    pub fn phases(&self, ranks: usize) -> Result<ValidatedPhases> {
        let phases = self.kernel.phases(self.keys, ranks, &MapFiles).with_context(|| {
            format!("{}; hyperslab bench {} --help has all keys", self.kernel.name, self.kernel.name)
        })?;
        ValidatedPhases::of(phases)
    }
}

/// The phases of a kernel and what running them takes.
pub struct ValidatedPhases(Vec<(Phase, WorkloadSummary)>);

impl ValidatedPhases {
    /// Walks through all of them. What an earlier one creates, later ones find.
    pub fn of(phases: Vec<Phase>) -> Result<Self> {
        let mut made: HashSet<String> = HashSet::new();
        let mut validated = Vec::with_capacity(phases.len());
        for phase in phases {
            let mut summary = phase.workload.validate().with_context(|| phase.label.clone())?;
            let files = &phase.workload.header.files;
            summary.inputs.retain(|input: &InputArray| !made.contains(&files[input.file as usize].name));
            made.extend(files.iter().filter(|file| file.created).map(|file| file.name.clone()));
            validated.push((phase, summary));
        }
        Ok(Self(validated))
    }

    /// The cases before they meet a stack; `name` gives files their names on it. With each, whether its data were read just
    /// before.
    pub fn drafts(&self, name: &dyn Fn(&str) -> String) -> Result<Vec<(CaseTemplate, bool)>> {
        self.0.iter().map(|(phase, summary)| Ok((draft(phase, summary, name)?, phase.revisits))).collect()
    }
}

/// The cases of an application kernel of a workflow.
pub fn application_drafts(
    application: &Application,
    ranks: usize,
    directory: &Path,
    name: &dyn Fn(&str) -> String,
    notes: &mut Vec<String>,
) -> Result<Vec<CaseTemplate>> {
    let (phases, more) = application.phases(ranks, directory, &MapFiles)?;
    for note in more {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let mut drafts = Vec::new();
    for (mut draft, _) in ValidatedPhases::of(phases)?.drafts(name)? {
        if let Some(layer) = application.layer {
            draft.layer = Some(StackElement::plain(layer));
            draft.layer_reason = application.layer_reason;
        }
        let wish = |(option, value): &(&'static str, String)| Requirement {
            key: option,
            options: vec![(option, value.clone())],
            processes: *option == "collective_metadata",
            vital: false,
        };
        draft.wishes = application.options.iter().map(wish).collect();
        drafts.push(draft);
    }
    Ok(drafts)
}

fn draft(phase: &Phase, summary: &WorkloadSummary, name: &dyn Fn(&str) -> String) -> Result<CaseTemplate> {
    let mut header = phase.workload.header.clone();
    for file in &mut header.files {
        file.name = name(&file.name);
    }
    let any = |wanted: Option<Update>| header.files.iter().any(|file| file.update == wanted);
    let effect = match () {
        () if header.files.iter().any(|file| file.created) => Effect::Creates,
        () if any(Some(Update::Extend)) => Effect::Extends,
        () if any(Some(Update::Overwrite)) => Effect::Overwrites,
        () => Effect::Reads,
    };
    let file = header.files.first().map(|file| file.name.clone()).unwrap_or_default();
    let mut room = summary.created_bytes;
    for input in &summary.inputs {
        let spec = &header.arrays[input.array as usize].spec;
        room = room.saturating_add(byte_count(&spec.shape, spec.dtype.size())?);
    }
    let work = TemplateWork {
        workload: phase.workload.with_header(header)?,
        bytes: summary.bytes_written.saturating_add(summary.bytes_read),
        memory: summary.buffers,
        room,
        inputs: summary.inputs.clone(),
        chunks_are_advice: true,
    };
    let mut draft = CaseTemplate::plain(phase.label.clone(), file, effect, Ok(work));
    if let Some(layer) = phase.layer {
        draft.layer = Some(StackElement::plain(layer));
        draft.layer_reason = layer;
    }
    Ok(draft)
}

/// All kernels, for `--list`.
pub fn list() -> String {
    let mut table =
        Table::new(&[("kernel", Align::Left), ("ranks", Align::Right), ("what it stands for", Align::Left)]);
    for kernel in kernels() {
        table.row(vec![kernel.name.into(), kernel.ranks.to_string(), kernel.about.into()]);
    }
    format!("{}\nhyperslab bench NAME --help tells more of one, and its keys.", table.render())
}

/// The page of the kernel that a command line asks help for.
pub fn help_asked(arguments: &[String]) -> Option<String> {
    let [command, rest @ ..] = arguments.get(1..)? else { return None };
    let asks = rest.iter().any(|word| word == "--help" || word == "-h");
    let named = rest.iter().find(|word| !word.starts_with('-'))?;
    Kernel::named(named).filter(|_| command == "bench" && asks).map(page)
}

fn page(kernel: &Kernel) -> String {
    let mut text = format!("{}: {}\n\n{}\n\n", kernel.name, kernel.about, wrapped(kernel.stands_for, 100));
    let _ = writeln!(text, "Usage: hyperslab bench {} [KEY=VALUE...] [OPTIONS of bench]\n", kernel.name);
    let _ = writeln!(
        text,
        "It runs on {} ranks unless --ranks says otherwise, and on hdf5 unless --format or --stack does.\n",
        kernel.ranks
    );
    let mut table =
        Table::new(&[("key", Align::Left), ("values", Align::Left), ("default", Align::Left), ("", Align::Left)]);
    for key in kernel.keys {
        table.row(vec![key.name.into(), key.value.into(), key.default.into(), key.about.into()]);
    }
    text.push_str(&table.render());
    text
}

/// The words in lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
