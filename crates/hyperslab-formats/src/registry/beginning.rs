//! What is looked at to recognise a format.

use hyperslab_core::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes that are looked at.
const LOOKED_AT: u64 = 4096;

/// The first bytes of a file, or a directory.
#[derive(Debug)]
pub struct Beginning {
    /// Where it is.
    pub path: PathBuf,
    /// It is a directory.
    pub is_directory: bool,
    /// The first bytes of a file, at most 4 KiB; of anything else none.
    pub bytes: Vec<u8>,
}

impl Beginning {
    /// Looks at what is at `path`. Waits for no pipe and no device.
    pub fn of(path: &Path) -> Result<Self> {
        let fail = |cause| Error::io("detect format", cause).target(path.display());
        let kind = std::fs::metadata(path).map_err(fail)?;
        let mut bytes = Vec::new();
        if kind.is_file() {
            let file: File = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(fail)?;
            file.take(LOOKED_AT).read_to_end(&mut bytes).map_err(fail)?;
        }
        Ok(Self { path: path.into(), is_directory: kind.is_dir(), bytes })
    }

    /// Whether it is a directory with an entry of this name.
    pub fn holds(&self, name: &str) -> bool {
        self.is_directory && self.path.join(name).exists()
    }
}
