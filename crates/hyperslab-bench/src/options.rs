//! What a run is asked for.

use clap::{Args, ValueEnum};
use hyperslab_core::units::parse_duration;
use hyperslab_core::{Stack, TransferMode};
use hyperslab_kernels::Scaling;
use std::path::PathBuf;
use std::time::Duration;

/// How ranks are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Launcher {
    /// The MPI job that the program was started in; otherwise the launcher that the workflow names, if this build has
    /// MPI and the launcher is installed; otherwise threads.
    #[default]
    Auto,
    /// Threads of this process; nothing to install.
    Threads,
    /// Processes, started by the workflow's launcher or mpirun.
    Mpi,
}

impl Launcher {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Threads => "threads",
            Self::Mpi => "mpi",
        }
    }
}

/// What becomes of the time between recorded calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compute {
    /// Ranks pause as long as the program computed.
    Recorded,
    /// Calls follow each other at once.
    None,
}

/// Whether ranks make transfers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transfers {
    /// All of them: every rank must make the same ones in the same order.
    Collective,
    /// None of them.
    Independent,
    /// Those below the layer twophase, to which nothing else matters; the others as the input says.
    #[value(skip)]
    CollectiveToExchange,
}

impl Transfers {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Collective | Self::CollectiveToExchange => "collective",
            Self::Independent => "independent",
        }
    }

    /// How transfers are made on a stack, if not as the input says.
    pub fn on(self, stack: &Stack) -> Option<TransferMode> {
        match self {
            Self::Collective => Some(TransferMode::Collective),
            Self::Independent => Some(TransferMode::Independent),
            Self::CollectiveToExchange => stack.has_layer("twophase").then_some(TransferMode::Collective),
        }
    }
}

/// What stays the same while ranks vary.
fn scaling(text: &str) -> Result<Scaling, String> {
    match text {
        "weak" => Ok(Scaling::Weak),
        "strong" => Ok(Scaling::Strong),
        _ => Err("weak or strong".into()),
    }
}

/// Options of `bench`.
#[derive(Debug, Clone, Default, Args)]
pub struct BenchOptions {
    /// h5bench JSON workflow, or the name of an application kernel (--list); without it a small built-in workflow
    #[arg(value_name = "CONFIG|KERNEL")]
    pub config: Option<PathBuf>,
    /// Keys of the kernel, such as blocks=20; hyperslab bench KERNEL --help lists them
    #[arg(value_name = "KEY=VALUE")]
    pub keys: Vec<String>,
    /// List the application kernels
    #[arg(long)]
    pub list: bool,
    /// Run this workload instead of a workflow: recorded by the layer trace, or written by hand (docs/workload-format.md). May
    /// be given several times; each becomes a benchmark, and the number of ranks is theirs. Files that they only read or
    /// change are made first, unless they are there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "filter"])]
    pub workload: Vec<PathBuf>,
    /// Whether a workload's pauses for computing are kept [default: recorded]
    #[arg(long, value_enum, requires = "workload")]
    pub compute: Option<Compute>,
    /// Whether ranks make reads and writes together [default: as the input says]
    #[arg(long, value_enum, value_name = "HOW")]
    pub transfers: Option<Transfers>,
    /// Formats to compare, such as posix,hdf5,zarr [default: hdf5]
    #[arg(long, value_name = "LIST", conflicts_with = "stack")]
    pub format: Option<String>,
    /// Stacks to compare, with options, such as 'hdf5(chunk=1024,deflate=4),zarr(codec=zstd)'
    #[arg(long, value_name = "LIST")]
    pub stack: Option<String>,
    /// Number of ranks, or several: 1,2,4,8 or 1..8*2 [default: what the workflow or workload says]
    #[arg(long = "ranks", value_name = "N")]
    pub rank_list: Option<String>,
    /// The number of ranks of a point of a sweep.
    #[arg(skip)]
    pub ranks: Option<u32>,
    /// Vary a key of the kernel or workflow, an option of the stacks, ranks or transfers: chunk=64KiB..16MiB*2,
    /// DIM_1=1M,2M, hdf5.align=0,1MiB. May be given several times, for all combinations; 'ranks=1,8 cells=32,64' varies
    /// together
    #[arg(long, value_name = "NAME=VALUES")]
    pub sweep: Vec<String>,
    /// What stays the same while ranks vary: the work of a rank (weak), or that of all (strong)
    #[arg(long, value_name = "weak|strong", value_parser = scaling)]
    pub scaling: Option<Scaling>,
    /// Run only so many points of a sweep as fit in this time, such as 10min, spread over all axes
    #[arg(long, value_name = "TIME", value_parser = |text: &str| parse_duration(text).map_err(|e| e.to_string()))]
    pub budget: Option<Duration>,
    /// Values of a workflow's keys at a point of a sweep.
    #[arg(skip)]
    pub workflow_values: Vec<(String, String)>,
    /// How ranks are made
    #[arg(long, value_enum, default_value = "auto")]
    pub launcher: Launcher,
    /// Start ranks with this command, such as srun or 'mpirun --bind-to core'; {ranks} in it stands for their number, and
    /// {command} for the program, if it is not to come last
    #[arg(long, value_name = "COMMAND")]
    pub mpi_command: Option<String>,
    /// Layers are those of the stacks: the workflow's MODE is not looked at.
    #[arg(skip)]
    pub own_layers: bool,
    /// Run each case so often [default: 1; exerciser: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repeat: Option<u32>,
    /// Unmeasured runs before the repetitions [default: 1 when a warm case is repeated, otherwise 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub warm_up: Option<u32>,
    /// Compare every byte with what must be there
    #[arg(long)]
    pub verify: bool,
    /// Drop files from the page cache before reads, and count writes until they are on the device
    #[arg(long)]
    pub cold: bool,
    /// Have files in the page cache before reads (the default); with --cold, run both
    #[arg(long)]
    pub warm: bool,
    /// Replace data files and results of earlier runs
    #[arg(long)]
    pub overwrite: bool,
    /// Put data files here instead of the workflow's directory
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Put results.json here [default: a new folder results-N beside the data]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write every call's time to CSV files beside the results
    #[arg(long)]
    pub samples: bool,
    /// Run only these kinds of benchmarks, such as write,read
    #[arg(short, long, value_name = "LIST")]
    pub filter: Option<String>,
    /// Stop at the first case that fails or is skipped
    #[arg(short, long)]
    pub abort_on_failure: bool,
    /// Say for every MODE whether it was what ran (a case never runs in another mode than its own); -v also says what --verbose does
    #[arg(short, long)]
    pub validate_mode: bool,
    /// Print also stacks beside each other, times of single calls, fastest and slowest ranks
    #[arg(long)]
    pub verbose: bool,
    /// Print the results as JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Print h5bench's block of results for every case, and what is done on the way
    #[arg(short, long)]
    pub debug: bool,
    /// Accepted for h5bench's sake; no other programs are started
    #[arg(short, long, value_name = "DIR")]
    pub prefix: Option<PathBuf>,
    /// Only print what would be done
    #[arg(long)]
    pub dry_run: bool,
}

impl BenchOptions {
    /// The stacks as they were given.
    pub fn stacks_text(&self) -> &str {
        self.stack.as_deref().or(self.format.as_deref()).unwrap_or("hdf5")
    }
}
