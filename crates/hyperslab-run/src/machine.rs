//! On what the numbers were measured.

use hyperslab_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The machine and the file system of a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// Operating system and kernel release.
    pub system: String,
    /// Processor model.
    pub processor: String,
    /// Processors this process may use.
    pub processors: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// The directory that was measured.
    pub directory: String,
    /// Type of its file system, such as ext4, tmpfs, lustre.
    pub file_system: String,
    /// Device or server behind it.
    pub device: String,
    /// Versions of the libraries behind the formats, such as `hdf5`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub libraries: BTreeMap<String, String>,
}

impl Machine {
    /// Looks at this machine and the file system of `directory`.
    pub fn of(directory: &Path) -> Self {
        let names = rustix::system::uname();
        let (file_system, device) = mount_of(directory).unwrap_or_else(|| ("unknown".into(), "unknown".into()));
        Self {
            host: names.nodename().to_string_lossy().into_owned(),
            system: format!("{} {}", names.sysname().to_string_lossy(), names.release().to_string_lossy()),
            processor: first_value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory: kibibytes("MemTotal").unwrap_or(0),
            directory: directory.display().to_string(),
            file_system,
            device,
            libraries: hyperslab_formats::library_versions(),
        }
    }
}

/// Bytes of memory that can be had without swapping; `None` when unknown.
pub fn memory_available() -> Option<u64> {
    kibibytes("MemAvailable")
}

/// Bytes that an ordinary user can still store in the file system of `directory`.
pub fn space_available(directory: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(directory)
        .map_err(|e| Error::io("look at", std::io::Error::from(e)).target(directory.display()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn first_value(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let (_, value) = text.lines().find_map(|line| line.split_once(':').filter(|(k, _)| k.trim() == key))?;
    Some(value.trim().to_owned())
}

fn kibibytes(key: &str) -> Option<u64> {
    first_value("/proc/meminfo", key)?.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// File system type and device of the longest mount point above `directory`.
fn mount_of(directory: &Path) -> Option<(String, String)> {
    let directory = directory.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (device, point, kind) = (words.next()?, words.next()?, words.next()?);
            let point = point.replace("\\040", " ");
            directory.starts_with(&point).then(|| (point.len(), kind.to_owned(), device.to_owned()))
        })
        .max_by_key(|(length, ..)| *length)
        .map(|(_, kind, device)| (kind, device))
}
