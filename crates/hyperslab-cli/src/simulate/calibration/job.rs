//! The runs that a calibration is made of, as a job script.

use clap::ValueEnum;
use hyperslab_core::units::exact_size;
use std::fmt::Write;

/// Who runs the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum JobKind {
    /// sbatch
    Slurm,
    /// qsub
    Pbs,
    /// A shell, with mpirun
    Shell,
}

/// One run: its name, IOR's API, and which blocks, calls, stripes and options it has.
pub struct IorRun {
    /// Name of its files.
    pub name: &'static str,
    api: &'static str,
    /// Stripes of a client's block; none: one block for all its bytes.
    stripes: Option<u64>,
    /// Bytes of a call, unless that is the block.
    transfer: u64,
    collective: bool,
    options: &'static str,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Bytes of a stripe.
pub const STRIPE: u64 = MIB;
/// Bytes that a client moves in a run.
const PER_CLIENT: u64 = 4 << 30;
const ALIGNED: &str = " --hdf5.setAlignment=1m";

const fn run(
    name: &'static str,
    api: &'static str,
    stripes: Option<u64>,
    transfer: u64,
    collective: bool,
    options: &'static str,
) -> IorRun {
    IorRun { name, api, stripes, transfer, collective, options }
}

/// The runs: few, and each tells of another parameter.
pub const RUNS: [IorRun; 14] = [
    run("01-apart-posix", "POSIX", None, MIB, false, ""),
    run("02-apart-hdf5", "HDF5", None, MIB, false, ALIGNED),
    run("03-apart-hdf5-collective-128k", "HDF5", None, 128 * KIB, true, ALIGNED),
    run("04-apart-hdf5-collective-1m", "HDF5", None, MIB, true, ALIGNED),
    run("05-apart-hdf5-collective-512m", "HDF5", None, 512 * MIB, true, ALIGNED),
    run("06-apart-hdf5-collective-128k-unaligned", "HDF5", None, 128 * KIB, true, ""),
    run("07-one-target-posix", "POSIX", Some(1), MIB, false, ""),
    run("08-one-target-hdf5-collective", "HDF5", Some(1), MIB, true, ALIGNED),
    run("09-one-target-hdf5-unaligned", "HDF5", Some(1), MIB, false, ""),
    run("10-one-target-hdf5-collective-unaligned", "HDF5", Some(1), MIB, true, ""),
    run("11-two-targets-posix", "POSIX", Some(2), 2 * MIB, false, ""),
    run("12-two-targets-hdf5-collective", "HDF5", Some(2), 2 * MIB, true, ALIGNED),
    run("13-two-targets-hdf5-collective-unaligned", "HDF5", Some(2), 2 * MIB, true, ""),
    run("14-chunks-of-128k", "HDF5", None, 512 * MIB, true, " --hdf5.setAlignment=1m --hdf5.chunkSize=16384"),
];

impl IorRun {
    /// IOR's flags, without those that say what is done and where results go.
    pub fn flags(&self) -> String {
        let (block, segments) = match self.stripes {
            Some(stripes) => (stripes * STRIPE, PER_CLIENT / (stripes * STRIPE)),
            None => (PER_CLIENT, 1),
        };
        let collective = if self.collective { " -c" } else { "" };
        let size = |bytes: u64| exact_size(bytes).to_lowercase().replace("ib", "");
        format!(
            "-a {} -b {} -t {} -s {segments}{collective}{}",
            self.api,
            size(block),
            size(self.transfer),
            self.options
        )
    }
}

/// The script, for so many clients, one on each node.
pub fn script(kind: JobKind, clients: usize, system: &str) -> String {
    let (head, launcher) = match kind {
        JobKind::Slurm => (
            format!(
                "#SBATCH --job-name=hyperslab-calibrate\n#SBATCH --nodes={clients}\n#SBATCH --ntasks-per-node=1\n\
                 #SBATCH --exclusive\n#SBATCH --time=02:00:00\n"
            ),
            format!("srun --nodes={clients} --ntasks={clients} --ntasks-per-node=1"),
        ),
        JobKind::Pbs => (
            format!(
                "#PBS -N hyperslab-calibrate\n#PBS -l select={clients}:mpiprocs=1\n#PBS -l place=scatter:excl\n\
                 #PBS -l walltime=02:00:00\n"
            ),
            format!("mpiexec -n {clients} --ppn 1"),
        ),
        JobKind::Shell => (String::new(), format!("mpirun -np {clients} --map-by node")),
    };
    let mut text = format!(
        "#!/bin/sh\n{head}\
         # Calibrates hyperslab simulate: 14 runs of IOR, each written and read, on {clients} nodes of one rank.\n\
         # A run takes {} on each client; reads are of another client's data, so that no cache answers.\n\
         set -eu\n{}\
         IOR=${{IOR:-ior}}\n\
         DATA=${{DATA:-$PWD/hyperslab-calibration}}\n\
         OUT=${{OUT:-$PWD/hyperslab-calibration-results}}\n\
         mkdir -p \"$DATA\" \"$OUT\"\n\
         if command -v lfs >/dev/null 2>&1; then lfs setstripe -c {clients} -S 1m \"$DATA\"; fi\n\
         play() {{\n  \
         name=$1; shift\n  \
         {launcher} \"$IOR\" -w -k -e \"$@\" -o \"$DATA/data\" -O summaryFile=\"$OUT/$name-write.json\" -O summaryFormat=JSON\n  \
         {launcher} \"$IOR\" -r -C \"$@\" -o \"$DATA/data\" -O summaryFile=\"$OUT/$name-read.json\" -O summaryFormat=JSON\n  \
         rm -f \"$DATA\"/data*\n\
         }}\n",
        exact_size(PER_CLIENT),
        if kind == JobKind::Pbs { "cd \"$PBS_O_WORKDIR\"\n" } else { "" },
    );
    for run in &RUNS {
        let _ = writeln!(text, "play {} {}", run.name, run.flags());
    }
    let _ = write!(
        text,
        "echo \"Now: hyperslab simulate --calibrate $OUT/*.json --system {system} \\\\\"\n\
         echo \"  --stripe-count {clients} --stripe-size 1MiB --output calibrated.json\"\n"
    );
    text
}
