//! Where results come from: everything that is needed to understand them later, and to run them again.

use hyperslab_core::{OptionSpec, Stack, StackElement};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Variables that hold the number of the job of a batch system; the first that is set counts.
const JOB_VARIABLES: [&str; 6] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "JOB_ID"];
/// The longest input that is kept whole.
const MAX_INPUT: usize = 1 << 20;

/// What a results file says of its own origin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// The program that measured.
    pub build: Build,
    /// What was to be run: workflows and workloads whole, by their path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Value>,
    /// Every stack of the cases with all its options, defaults included: from the outermost layer to the format.
    pub stacks: BTreeMap<String, Vec<ResolvedElement>>,
    /// The job of a batch system, as `SLURM_JOB_ID=7`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Where the directory is mounted, with the options of the mount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// How the directory spreads files over servers, where it can be asked (Lustre).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub striping: Option<String>,
    /// Bytes of memory that were free for use at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_available: Option<u64>,
    /// Load averages of 1, 5 and 15 minutes at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_before: Option<[f64; 3]>,
    /// The same at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_after: Option<[f64; 3]>,
}

/// How a program was built.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Build {
    /// Its version.
    pub version: String,
    /// The commit that the sources were at, perhaps with changes on top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What was compiled in.
    pub features: Vec<String>,
    /// Whether it was optimised less, for development.
    pub debug: bool,
}

/// A layer or format with every option that it has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedElement {
    /// Its name.
    pub name: String,
    /// Every option, as given or else its default.
    pub options: BTreeMap<String, String>,
}

impl Provenance {
    /// What can be seen before a run on `directory`.
    pub fn begin(build: Build, directory: &Path) -> Self {
        let mount = mount(directory);
        let striping = mount.as_deref().filter(|mount| mount.contains(" lustre ")).and_then(|_| striping(directory));
        Self {
            build,
            job: JOB_VARIABLES
                .iter()
                .find_map(|name| std::env::var(name).ok().filter(|id| !id.is_empty()).map(|id| format!("{name}={id}"))),
            mount,
            striping,
            memory_available: crate::memory_available(),
            load_before: load_averages(),
            ..Self::default()
        }
    }

    /// Keeps an input whole: as JSON if it is, otherwise as text. Of one over 1 MiB only how long it is.
    pub fn keep_input(&mut self, path: &Path, text: &[u8]) {
        let kept = if text.len() > MAX_INPUT {
            serde_json::json!({"bytes": text.len(), "kept": false})
        } else {
            serde_json::from_slice(text).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(text).into_owned()))
        };
        self.inputs.insert(path.display().to_string(), kept);
    }

    /// Keeps a stack with all its options.
    pub fn keep_stack(&mut self, stack: &Stack) {
        let layers = stack.layers.iter().map(|element| resolved(element, layer_options(&element.name)));
        let format = hyperslab_formats::formats().iter().find(|entry| entry.name == stack.format.name);
        let elements = layers.chain([resolved(&stack.format, format.map_or(&[], |entry| entry.options))]).collect();
        self.stacks.insert(stack.to_string(), elements);
    }

    /// What can be seen after it.
    pub fn end(&mut self) {
        self.load_after = load_averages();
    }
}

fn layer_options(name: &str) -> &'static [OptionSpec] {
    hyperslab_layers::layers().iter().find(|entry| entry.name == name).map_or(&[], |entry| entry.options)
}

fn resolved(element: &StackElement, known: &[OptionSpec]) -> ResolvedElement {
    let mut options: BTreeMap<String, String> =
        known.iter().map(|option| (option.name.to_owned(), option.default.to_owned())).collect();
    options.extend(element.options.iter().cloned());
    ResolvedElement { name: element.name.clone(), options }
}

/// The load averages of this machine; `None` where it does not tell.
pub fn load_averages() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    let mut next = || numbers.next().flatten();
    Some([next()?, next()?, next()?])
}

/// The line of the mounts that `directory` is on: device, place, type and options.
fn mount(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let places = mounts.lines().filter_map(|line| {
        let place = line.split_whitespace().nth(1)?.replace("\\040", " ");
        directory.starts_with(&place).then_some((place.len(), line))
    });
    let (_, line) = places.max_by_key(|(length, _)| *length)?;
    Some(line.trim_end_matches(" 0 0").to_owned())
}

/// What Lustre says of a directory, in one line.
fn striping(directory: &Path) -> Option<String> {
    let output = Command::new("lfs").args(["getstripe", "-d"]).arg(directory).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.success() && !text.is_empty()).then(|| text.chars().take(1000).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_kept_with_their_defaults() {
        let mut provenance = Provenance::begin(Build::default(), Path::new("."));
        let stack: Stack = "twophase(aggregators=2)/posix".parse().unwrap_or_else(|e| panic!("{e}"));
        provenance.keep_stack(&stack);
        let kept = &provenance.stacks["twophase(aggregators=2)/posix"];
        assert_eq!(kept.iter().map(|element| element.name.as_str()).collect::<Vec<_>>(), ["twophase", "posix"]);
        assert_eq!(kept[0].options["aggregators"], "2");
        assert!(kept.iter().all(|element| element.options.len() > 1), "{kept:?}");
        assert!(provenance.load_before.is_some_and(|load| load[0] >= 0.0) && provenance.mount.is_some());
    }

    #[test]
    fn inputs_are_kept_whole_unless_they_are_huge() {
        let mut provenance = Provenance::default();
        provenance.keep_input(Path::new("w.json"), b"{\"a\": 1}");
        provenance.keep_input(Path::new("w.jsonl"), b"{}\n{}\n");
        provenance.keep_input(Path::new("huge"), &vec![b' '; MAX_INPUT + 1]);
        assert_eq!(provenance.inputs["w.json"]["a"], 1);
        assert_eq!(provenance.inputs["w.jsonl"], "{}\n{}\n");
        assert_eq!(provenance.inputs["huge"]["kept"], false);
    }
}
