//! What the command line asks for.

use crate::checker::Program;
use clap::Parser;
use std::path::PathBuf;

/// Records random HDF5 programs, replays every moment at which they might have been killed, recovers and compares
#[derive(Debug, Clone, Parser)]
#[command(name = "crashlab")]
pub struct Options {
    /// Modes, joined by commas: plain, codec, async, safe, async-safe, cache-safe, auto-safe, log, log-dir, log-small, safe-sync,
    /// log-sync
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "plain,codec,async,safe,async-safe,cache-safe,auto-safe,log,log-dir,log-small,safe-sync,log-sync"
    )]
    pub mode: Vec<String>,
    /// Images of each mode
    #[arg(long, default_value_t = 40)]
    pub images: u64,
    /// Real kills of each mode that promises something; also killed recoveries
    #[arg(long, default_value_t = 10)]
    pub kills: u64,
    /// Images after a loss of power, of safe-sync and log-sync
    #[arg(long, default_value_t = 30)]
    pub power: u64,
    /// 10,000 images and 1,000 kills in all, and 200 images of each mode after a loss of power
    #[arg(long)]
    pub long: bool,
    /// The first seed; programs have it and those after it
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Programs of netCDF4-python instead of h5py
    #[arg(long)]
    pub netcdf: bool,
    /// Operations of a program
    #[arg(long, default_value_t = 16)]
    pub length: u32,
    /// Only the image after so many changes of the first program
    #[arg(long)]
    pub prefix: Option<usize>,
    /// With --prefix: put the image there, as it was and as it was recovered
    #[arg(long, requires = "prefix", value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// With --prefix: a fault as the table tells it, DATA for the directory
    #[arg(long, requires = "prefix")]
    pub fault: Option<String>,
    /// How many failures are told for each mode
    #[arg(long, default_value_t = 5)]
    pub failures: usize,
    /// Programs at a time
    #[arg(long, default_value_t = 2)]
    pub workers: u64,
    /// The folder of the connector, `hyperslab` and the recorder, unless they lie beside this program
    #[arg(long, value_name = "DIR")]
    pub built: Option<PathBuf>,
}

impl Options {
    /// The program of this seed.
    pub fn program(&self, seed: u64) -> Program {
        Program { flavour: if self.netcdf { "netcdf" } else { "h5py" }, seed, length: self.length }
    }
}
