//! What the user may say.

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use hyperslab_bench::BenchOptions;
use std::path::PathBuf;

/// A benchmark failed, or data were wrong.
pub const EXIT_FAILED: u8 = 1;
/// All that could run went well, but some cases are not available in this build.
pub const EXIT_SKIPPED: u8 = 3;
/// The command line, the configuration or the machine does not allow the run; nothing was started.
pub const EXIT_BAD_INPUT: u8 = 2;
pub use hyperslab_bench::EXIT_INTERRUPTED;

const EXIT_CODES: &str = "\
Exit codes:
  0    everything asked for was done, and verified if asked
  1    a benchmark failed or its data were wrong
  2    the command line or configuration is wrong, or the machine cannot hold
       the run; nothing was started
  3    nothing failed, but cases were skipped because this build or the format
       cannot run them
  130  stopped by Ctrl-C; the results so far are kept";

/// The help of the program, with its commands by what they are for.
const GROUPED: &str = "\
{about-with-newline}
{usage-heading} {usage}

Measure:
  bench        Run a workflow, a kernel or a recorded workload: a table
  ior, mdtest  Run IOR's and mdtest's tests, by their flags, on any stack
  compare      Compare results case by case, and fail if something became slower
  report       Show results as a page with pictures, or as tables
  reproduce    Run published figures as small studies: which claims hold here
  demo         Show with pictures what a layer does, on this machine

Accelerate and keep safe:
  tune         Say what would make a program faster, measured by running it
  run          Run a program with its HDF5 calls accelerated
  trace        Record the HDF5 calls of a program as workloads
  recover      Bring what a crashed job left in logs into its files
  convert      Copy a file or store to another, perhaps in another format

Know in advance:
  train        Measure this machine, for predict and advise
  predict      Say what a workload would take on stacks, without running it
  advise       Say on which stack it would be fastest, how sure that is, and why
  simulate     Say what it would take on a parallel file system you do not have

Look around:
  show         Show what a file holds, and what moving some of it would do
  layout       Show where the bytes of a file lie, and on which storage targets
  formats      List formats and layers with their options, or all about one
  doctor       Say what works here, what is missing, and what provides it
  completions, manual
               Completions for shells; man pages
MORE
Options:
{options}{after-help}

hyperslab COMMAND --help says more about a command.
";

/// The command line, with its commands in groups; one that is in none is listed below the others.
pub fn command() -> clap::Command {
    let command = Arguments::command();
    let known = |name: &str| GROUPED.split([' ', ',', '\n']).any(|word| word == name);
    let others = command.get_subcommands().filter(|one| !one.is_hide_set() && !known(one.get_name()));
    let line = |one: &clap::Command| {
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {:<12} {about}\n", one.get_name())
    };
    let others: String = others.map(line).collect();
    let more = if others.is_empty() { String::new() } else { format!("\nMore:\n{others}") };
    let help = GROUPED.replace("MORE\n", &format!("{more}\n"));
    command.help_template(help)
}

/// Measures scientific array I/O over POSIX files, HDF5 and Zarr.
#[derive(Debug, Parser)]
#[command(name = "hyperslab", version, about, after_help = EXIT_CODES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say on which stack a workload or workflow would be fastest, how sure that is, and why
    #[command(after_help = crate::advisor::ADVISE_EXAMPLES, after_long_help = crate::advisor::ADVISE_EXAMPLES)]
    Advise(crate::advisor::AdviseOptions),
    /// Run an h5bench workflow or an application kernel, or replay a recorded workload, and print a table
    #[command(after_help = BENCH_EXAMPLES, after_long_help = BENCH_EXAMPLES)]
    Bench(Box<BenchOptions>),
    /// Compare two results files case by case, and fail if something became slower
    #[command(after_help = COMPARE_EXAMPLES, after_long_help = COMPARE_EXAMPLES)]
    Compare(CompareOptions),
    /// Copy a file, store or directory to another, in its usual layout and perhaps in another format
    #[command(after_help = crate::convert::EXAMPLES, after_long_help = crate::convert::EXAMPLES)]
    Convert(crate::convert::ConvertOptions),
    /// Show with pictures what a layer does, on this machine
    #[command(subcommand)]
    Demo(crate::demo::Demo),
    /// Show where the bytes of a file lie, and which storage targets they and a workload's calls touch
    #[command(after_help = crate::layout::EXAMPLES, after_long_help = crate::layout::EXAMPLES)]
    Layout(crate::layout::LayoutOptions),
    /// Run IOR's tests, by its flags and scripts, on any stack
    Ior(crate::ior::IorOptions),
    /// Run mdtest's tests of directories and files, plain or of any format
    Mdtest(crate::ior::IorOptions),
    /// Say what a workload or workflow would take on stacks, without running it
    #[command(after_help = crate::advisor::PREDICT_EXAMPLES, after_long_help = crate::advisor::PREDICT_EXAMPLES)]
    Predict(crate::advisor::PredictOptions),
    /// Bring what a crashed job left in logs into its files
    #[command(after_help = crate::recover::EXAMPLES, after_long_help = crate::recover::EXAMPLES)]
    Recover(crate::recover::RecoverOptions),
    /// Show results as a page with pictures, or as tables
    #[command(after_help = crate::report::EXAMPLES, after_long_help = crate::report::EXAMPLES)]
    Report(crate::report::ReportOptions),
    /// Run published figures as small studies, and say which claims hold on this machine
    #[command(after_help = crate::reproduce::EXAMPLES, after_long_help = crate::reproduce::EXAMPLES)]
    Reproduce(crate::reproduce::ReproduceOptions),
    /// Run a program with its HDF5 calls accelerated, and say what was gained
    #[command(after_help = crate::run::EXAMPLES, after_long_help = crate::run::EXAMPLES)]
    Run(crate::run::RunOptions),
    /// Show what a file holds, and explain what moving some of it would do
    #[command(after_help = crate::show::EXAMPLES, after_long_help = crate::show::EXAMPLES)]
    Show(crate::show::ShowOptions),
    /// Play a workload on a described system with a striped parallel file system, up to a million ranks
    #[command(after_help = crate::simulate::EXAMPLES, after_long_help = crate::simulate::EXAMPLES)]
    Simulate(Box<crate::simulate::SimulateOptions>),
    /// Record the HDF5 calls of a program as workloads that can be played again
    #[command(after_help = crate::trace::EXAMPLES, after_long_help = crate::trace::EXAMPLES)]
    Trace(crate::trace::TraceOptions),
    /// Measure this machine, for predict and advise
    #[command(after_help = crate::advisor::TRAIN_EXAMPLES, after_long_help = crate::advisor::TRAIN_EXAMPLES)]
    Train(crate::advisor::TrainOptions),
    /// Say what would make a program faster, measured by running it again
    #[command(after_help = crate::tune::EXAMPLES, after_long_help = crate::tune::EXAMPLES)]
    Tune(crate::tune::TuneOptions),
    /// List the formats, their options, and whether they are compiled in
    Formats(crate::formats::FormatsOptions),
    /// Say what works here, what is missing, and what provides it; or whether a program can use the HDF5 connector
    #[command(after_help = crate::doctor::EXAMPLES, after_long_help = crate::doctor::EXAMPLES)]
    Doctor(DoctorOptions),
    /// Print completions for a shell: hyperslab completions bash > FILE
    Completions(crate::manual::CompletionsOptions),
    /// Write the man pages into a folder
    Manual(crate::manual::ManualOptions),
    /// Two ranks that greet each other, for doctor
    #[command(hide = true)]
    MpiHello,
    /// One rank of a run, started by another process of this program
    #[command(hide = true)]
    MpiRank {
        /// The run
        folder: PathBuf,
    },
}

const BENCH_EXAMPLES: &str = "\
Examples:
  hyperslab bench
      a small built-in workflow in ./hyperslab-bench
  hyperslab bench workflow.json --verify
      an h5bench file, every byte checked
  hyperslab bench workflow.json --format posix,hdf5,zarr --warm --cold
  hyperslab bench workflow.json --stack 'hdf5(align=1MiB),zarr' --repeat 5
  hyperslab bench workflow.json --launcher mpi --ranks 4
      MPI ranks, started by mpirun
  srun -n 512 hyperslab bench workflow.json
      inside a job that is running
  hyperslab bench workflow.json --stack 'trace(file=out.jsonl)/hdf5'
      record what is done
  hyperslab bench --workload out.jsonl --stack posix,zarr --compute none
      do it again elsewhere
  hyperslab bench --list
      application kernels: flash, btio, e3sm-f, ...
  hyperslab bench flash blocks=20 --format posix,hdf5,zarr --verify
  hyperslab bench flash --ranks 1,2,4,8 --scaling strong
  hyperslab bench vpic --stack hdf5 --sweep chunk=64KiB..1MiB*2 --budget 2min
      a sweep: what is planned is shown first

Exit codes: 0 done, 1 a benchmark failed or data were wrong, 2 bad input and
nothing started, 3 nothing failed but cases were skipped, 130 stopped.";

const COMPARE_EXAMPLES: &str = "\
Example:
  hyperslab bench workflow.json --repeat 10 --out before
  (change something)
  hyperslab bench workflow.json --repeat 10 --out after --overwrite
  hyperslab compare before after --threshold 5
  hyperslab compare monday tuesday wednesday
      each against the first
  hyperslab compare posix hdf5 --match benchmark,workload,ranks,cache
  hyperslab compare before after --format junit > slower.xml

A case is slower when its rate fell by more than the threshold and, with three
repetitions or more on both sides, the 95 % interval of the ratio lies below 1.
Cases that did not succeed in both files are listed; one that succeeded in the
first and failed in the second counts like one that is slower.

Exit codes: 0 nothing is slower, 1 a case is slower or fails now,
2 bad input or nothing to compare.";

/// Which figure to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Metric {
    /// Bytes per second of all I/O, from opening to closing.
    Observed,
    /// Bytes per second of the transfer calls alone.
    Raw,
}

impl Metric {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Raw => "raw",
        }
    }
}

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct CompareOptions {
    /// Results to compare with, and then those to judge, each against the first: files, or their folders
    #[arg(value_name = "RESULTS", required = true, num_args = 2..)]
    pub results: Vec<PathBuf>,
    /// What must agree for cases to be the same; without stack, different stacks are set against each other
    #[arg(
        long = "match",
        value_name = "LIST",
        value_enum,
        value_delimiter = ',',
        default_value = "benchmark,workload,stack,ranks,cache"
    )]
    pub matched: Vec<Matched>,
    /// Differences up to this are none
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    pub threshold: f64,
    /// The figure to compare
    #[arg(long, value_enum, default_value = "observed")]
    pub metric: Metric,
    /// Print JSON instead of a table
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// How to print it: junit and github are for CI
    #[arg(long, value_enum, default_value = "table")]
    pub format: CompareForm,
}

/// What identifies a case in several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Matched {
    /// Kind of benchmark
    Benchmark,
    /// What it does, in words
    Workload,
    /// Formats and layers
    Stack,
    /// Number of ranks
    Ranks,
    /// Warm or cold
    Cache,
}

/// How a comparison is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareForm {
    /// A table
    Table,
    /// An object; of more than two files one in a line for each pair
    Json,
    /// JUnit's XML, in which a slower case is a failure
    Junit,
    /// Annotations of GitHub's workflows
    Github,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorOptions {
    /// Only say whether these load the HDF5 connector: Pythons, or compiled programs, which are read and not run
    #[arg(value_name = "PROGRAM")]
    pub programs: Vec<PathBuf>,
    /// The directory that benchmarks would use
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
}

fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text.trim_end_matches('%').parse().map_err(|_| "use a number such as 5 or 2.5".to_owned())?;
    if (0.0..100.0).contains(&number) { Ok(number) } else { Err("use a number from 0 to below 100".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_a_group_and_no_help_is_broken_at_80_columns() {
        let mut command = command();
        let help = command.render_help().to_string();
        command.build();
        for one in command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help") {
            let named = |word: &str| word.trim_end_matches(',') == one.get_name();
            assert!(help.split_whitespace().any(named), "{}: {help}", one.get_name());
            let after = one.get_after_help().map(ToString::to_string).unwrap_or_default();
            let long = after.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{}", one.get_name());
        }
        assert!(GROUPED.lines().chain(EXIT_CODES.lines()).all(|line| line.chars().count() <= 80));
    }
}
