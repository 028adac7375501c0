//! What a system call takes at least, measured by itself: a fit to whole runs cannot always tell calls from what comes with
//! them, and must not say that they cost nothing.

use anyhow::{Context, Result};
use hyperslab_model::{Count, least};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

const BATCHES: usize = 5;
const CALLS: usize = 1000;
const FILES: usize = 64;
/// What was measured may be a little more than the least.
const SURELY: f64 = 0.7;

/// The least seconds for every place of a row of counts, on the file system of a directory.
pub fn measured(directory: &Path) -> Result<Vec<f64>> {
    let folder =
        tempfile::Builder::new().prefix("calls-").tempdir_in(directory).context("make a directory for calls")?;
    let path = folder.path().join("one");
    fs::write(&path, vec![1u8; 1 << 16])?;
    let file = File::options().read(true).write(true).open(&path)?;
    let mut byte = [0u8];
    let read = each(CALLS, |i| file.read_exact_at(&mut byte, (i * 61 % (1 << 16)) as u64))?;
    let write = each(CALLS, |i| file.write_all_at(&[2], (i * 61 % (1 << 16)) as u64))?;
    let open = each(FILES, |_| File::open(&path).map(drop))?;
    let (mut made, mut folders) = (0, 0);
    let create = each(FILES, |_| {
        made += 1;
        File::create_new(folder.path().join(made.to_string())).map(drop)
    })?;
    let directory = each(FILES, |_| {
        folders += 1;
        fs::create_dir(folder.path().join(format!("d{folders}")))
    })?;
    let known = [
        (Count::ReadCalls, read),
        (Count::WriteCalls, write),
        (Count::FilesOpened, open),
        (Count::ContainersOpened, open),
        (Count::FilesCreated, create),
        (Count::FilesReplaced, create),
        (Count::DirectoriesCreated, directory),
        (Count::ContainersCreated, create.min(directory)),
    ];
    Ok(least(&known, &known))
}

/// Seconds of one call: those of the fastest of a few batches.
fn each(calls: usize, mut call: impl FnMut(usize) -> std::io::Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        let begin = Instant::now();
        for number in 0..calls {
            call(number)?;
        }
        best = best.min(begin.elapsed().as_secs_f64() / calls as f64);
    }
    Ok(SURELY * best)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn calls_take_time() {
        let folder = tempfile::tempdir().unwrap();
        let found = measured(folder.path()).unwrap();
        assert_eq!(found.iter().filter(|seconds| **seconds > 0.0).count(), 16);
        assert!(found.iter().all(|seconds| *seconds < 0.1));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
