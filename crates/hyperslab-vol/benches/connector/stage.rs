//! Where files lie, how programs are started plain and under the connector, and their turns.

use crate::build;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What slow storage does: bytes a second, and microseconds of each request.
const RATE: u64 = 200 << 20;
const LATENCY: u64 = 2000;
/// Where both sides together take less than this, they have so many times as many turns.
const SHORT: Duration = Duration::from_secs(4);
const MORE: usize = 5;
/// Variables that would change either side.
const OURS: [&str; 8] = [
    "HDF5_VOL_CONNECTOR",
    "HYPERSLAB_MODE",
    "HYPERSLAB_MEMORY",
    "HYPERSLAB_THREADS",
    "HYPERSLAB_LOG_DIR",
    "HYPERSLAB_TRACE",
    "HYPERSLAB_STATS",
    "HYPERSLAB_SLOW",
];

/// Who does the I/O.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// libhdf5 alone.
    Plain,
    /// The connector with these modes.
    Connector(&'static str),
}

/// Where a file lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    Memory,
    /// Memory again, made slow.
    Slow,
}

pub struct Stage {
    folder: TempDir,
    plugin: PathBuf,
    shim: PathBuf,
    python: PathBuf,
    c_program: OnceCell<Result<PathBuf, String>>,
    turns: usize,
    /// Divides the amount of data.
    pub less: u64,
}

impl Stage {
    pub fn new(quick: bool) -> Result<Self, String> {
        let python = std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty());
        let python = python
            .ok_or("HYPERSLAB_PYTHON names no Python with h5py and hdf5plugin; cargo xtask bench connector sets it")?;
        let memory = Path::new("/dev/shm");
        let builder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = builder.map_err(|error| error.to_string())?;
        for name in ["plugin", "slow", "fast", "log"] {
            std::fs::create_dir(folder.path().join(name)).map_err(|error| error.to_string())?;
        }
        let (plugin, shim) = (build::library("hyperslab-vol")?, build::library("hyperslab-faultshim")?);
        let alone = folder.path().join("plugin");
        std::fs::copy(&plugin, alone.join("libhyperslab_vol.so")).map_err(|error| error.to_string())?;
        let (turns, less) = if quick { (1, 4) } else { (5, 1) };
        Ok(Self { folder, plugin: alone, shim, python: python.into(), c_program: OnceCell::new(), turns, less })
    }

    pub fn words(&self) -> String {
        let place = self.folder.path().parent().unwrap_or(Path::new("/")).display();
        format!(
            "{}medians of {} turns ({} of programs that take no {:.0} s) in {place}; ratio: the plain program's time by that under the connector (sizes: the other way); \
             slow storage: {} MiB/s, {} ms per request",
            if self.less > 1 { "a quarter of the data; " } else { "" },
            self.turns,
            self.turns * MORE,
            SHORT.as_secs_f64() / 2.0,
            RATE >> 20,
            LATENCY / 1000
        )
    }

    pub fn path(&self, storage: Storage, name: &str) -> PathBuf {
        self.folder.path().join(if storage == Storage::Slow { "slow" } else { "fast" }).join(name)
    }

    /// The folder of all files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn interpreter(&self) -> &Path {
        &self.python
    }

    pub fn python(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/connector/cases.py"));
        command
    }

    /// The C program, compiled at first use.
    pub fn c_program(&self) -> Result<Command, String> {
        self.c_program
            .get_or_init(|| build::c_program(self.folder.path()))
            .as_ref()
            .map(Command::new)
            .map_err(Clone::clone)
    }

    /// Sets the variables of a side, and of slow storage, which is the same for both.
    pub fn dress<'a>(&self, command: &'a mut Command, side: Side) -> &'a mut Command {
        for name in OURS {
            command.env_remove(name);
        }
        if let Side::Connector(modes) = side {
            command.env("HDF5_PLUGIN_PATH", &self.plugin).env("HDF5_VOL_CONNECTOR", "hyperslab");
            command.env("HYPERSLAB_MODE", modes).env("HYPERSLAB_LOG_DIR", self.folder.path().join("log"));
        }
        command
    }

    /// Makes everything below the slow folder slow for a command.
    pub fn slow<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let folder = self.folder.path().join("slow");
        command.env("LD_PRELOAD", &self.shim);
        command.env("HYPERSLAB_SLOW", format!("path={},rate={RATE},latency={LATENCY}", folder.display()))
    }

    /// Medians of what two sides return, taking turns; who goes first changes. Short programs, which vary more, have more turns.
    pub fn compare(
        &self,
        modes: &'static str,
        mut turn: impl FnMut(Side) -> Result<f64, String>,
    ) -> Result<[f64; 2], String> {
        let mut figures = [Vec::new(), Vec::new()];
        let (begin, mut turns) = (Instant::now(), self.turns);
        for round in 0.. {
            if round == 1 && begin.elapsed() < SHORT {
                turns *= MORE;
            }
            if round == turns {
                break;
            }
            for step in 0..2 {
                let which = (round + step) % 2;
                figures[which].push(turn([Side::Plain, Side::Connector(modes)][which])?);
            }
        }
        Ok(figures.map(median))
    }

    /// The same of runs that take turns within themselves, and return the figures of both sides.
    pub fn compare_within(&self, mut run: impl FnMut() -> Result<[f64; 2], String>) -> Result<[f64; 2], String> {
        let mut figures = [Vec::new(), Vec::new()];
        for _ in 0..self.turns {
            figures.iter_mut().zip(run()?).for_each(|(all, figure)| all.push(figure));
        }
        Ok(figures.map(median))
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
