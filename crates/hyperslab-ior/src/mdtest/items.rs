//! What files are: plain ones, or containers of a stack.

use super::options::Options;
use crate::api::stack_text;
use hyperslab_core::{
    ArraySpec, Communicator, Datatype, Durability, Error, Format, MemoryLayout, MemoryView, MemoryViewMut, OpenMode,
    Result, Selection, Stack, TransferMode,
};
use hyperslab_run::{open_stack, single_rank};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// A way to keep files.
#[derive(Debug)]
pub enum Files {
    /// By the operating system.
    Plain {
        /// Wait for the device after each write.
        sync: bool,
    },
    /// By a format.
    Containers {
        /// Which.
        format: Arc<dyn Format>,
        /// Wait for the device after each write.
        sync: bool,
        /// A container belongs to one rank.
        alone: Arc<dyn Communicator>,
    },
}

impl Files {
    /// As the options say.
    pub fn of(options: &Options) -> Result<Self> {
        let sync = options.sync;
        if options.api.eq_ignore_ascii_case("POSIX") {
            return Ok(Self::Plain { sync });
        }
        let stack: Stack = stack_text(&options.api).parse()?;
        Ok(Self::Containers { format: open_stack(&stack)?, sync, alone: single_rank() })
    }

    /// Makes a file with these bytes, perhaps none.
    pub fn create(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Plain { sync } => {
                let failed = |e| Error::io("create", e).target(path.display());
                let mut file = File::create_new(path).map_err(failed)?;
                file.write_all(bytes).map_err(failed)?;
                if *sync { file.sync_all().map_err(failed) } else { Ok(()) }
            }
            Self::Containers { format, sync, alone } => {
                let container = format.open(path, OpenMode::Create, alone)?;
                if !bytes.is_empty() {
                    let array = container.create("data", &ArraySpec::new(Datatype::U8, &[bytes.len() as u64]))?;
                    let all = Selection::all(&[bytes.len() as u64])?;
                    let view = MemoryView { data: bytes, layout: &MemoryLayout::packed() };
                    array.write(&all, view, TransferMode::Independent)?;
                    array.close()?;
                }
                if *sync {
                    container.flush(Durability::Durable)?;
                }
                container.close()
            }
        }
    }

    /// Looks at it.
    pub fn stat(&self, path: &Path) -> Result<()> {
        let there = match self {
            Self::Plain { .. } => fs::metadata(path).is_ok(),
            Self::Containers { format, .. } => format.exists(path)? || !self.stores(),
        };
        there.then_some(()).ok_or_else(|| {
            Error::new(hyperslab_core::ErrorKind::NotFound, "stat", "it is not there")
                .target(path.display())
                .hint("create with the same options first")
        })
    }

    /// Reads its first bytes; opens and closes it in any case.
    pub fn read(&self, path: &Path, bytes: &mut [u8]) -> Result<()> {
        match self {
            Self::Plain { .. } => {
                let failed = |e| Error::io("read", e).target(path.display());
                File::open(path).map_err(failed)?.read_exact(bytes).map_err(failed)
            }
            Self::Containers { format, alone, .. } => {
                let container = format.open(path, OpenMode::Read, alone)?;
                if !bytes.is_empty() {
                    let array = container.array("data")?;
                    let first = Selection::dense(&[0], &[bytes.len() as u64])?;
                    let view = MemoryViewMut { data: bytes, layout: &MemoryLayout::packed() };
                    array.read(&first, view, TransferMode::Independent)?;
                    array.close()?;
                }
                container.close()
            }
        }
    }

    /// Removes it.
    pub fn remove(&self, path: &Path) -> Result<()> {
        match self {
            Self::Plain { .. } => fs::remove_file(path).map_err(|e| Error::io("remove", e).target(path.display())),
            Self::Containers { format, .. } => format.remove(path),
        }
    }

    /// Whether what was written can be read.
    pub fn stores(&self) -> bool {
        match self {
            Self::Plain { .. } => true,
            Self::Containers { format, .. } => format.caps().data.readable,
        }
    }
}

/// The bytes of the files of a rank: words of rank and signature plus index, and what is left over counted.
pub fn data(rank: usize, signature: u32, length: u64) -> Vec<u8> {
    let words = (0..length / 8).flat_map(|index| {
        (((rank as u64) << 32) | i64::from(signature as i32) as u64).wrapping_add(index).to_le_bytes()
    });
    words.chain((length / 8 * 8..length).map(|at| at as u8)).collect()
}
