//! Subfiles of an HDF5 file that was written with the subfiling driver.
//!
//! libhdf5 puts the data into `NAME.subfile_INODE_I_of_N` and their list into `NAME.subfile_INODE.config`, where INODE
//! belongs to the file NAME itself, which holds little more than the superblock.

use hyperslab_core::{Error, ErrorKind, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The subfiles and their configuration file, sorted; empty for an ordinary or missing file.
pub(super) fn list(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let inode = match path.metadata() {
        Ok(found) if found.is_file() => found.ino(),
        Ok(_) => return Ok(Vec::new()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else { return Ok(Vec::new()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let prefix = [name.as_bytes(), format!(".subfile_{inode}").as_bytes()].concat();
    // A look at one name is enough for ordinary files, whose folder may be large.
    if !config_path(path, inode).exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(rest) = name.as_bytes().strip_prefix(prefix.as_slice())
            && (rest == b".config" || is_subfile(rest))
        {
            found.push(path.with_file_name(name));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The configuration file, which lists the subfiles.
fn config_path(path: &Path, inode: u64) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".subfile_{inode}.config"));
    path.with_file_name(name)
}

/// Whether this is `_I_of_N`.
fn is_subfile(rest: &[u8]) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    std::str::from_utf8(rest)
        .ok()
        .and_then(|rest| rest.strip_prefix('_')?.split_once("_of_"))
        .is_some_and(|(one, all)| number(one) && number(all))
}

/// Refuses to open a file with a driver that would not find its data.
pub(super) fn refuse_wrong_driver(path: &Path, subfiling: bool) -> Result<()> {
    let split = !list(path).map_err(|e| Error::io("open", e))?.is_empty();
    match (split, subfiling) {
        (true, false) => Err(Error::new(ErrorKind::Unsupported, "open", "the data of this file lies in subfiles")
            .hint("open it on MPI ranks with hdf5(driver=subfiling), or join it: hyperslab convert IN OUT")),
        (false, true) => {
            Err(Error::invalid("open", "the file has no subfiles beside it").hint("leave driver=subfiling out"))
        }
        _ => Ok(()),
    }
}

/// Writes a file whose data lies in subfiles to `to`, as libhdf5 would have without them. `false` for an ordinary file.
pub(crate) fn join(path: &Path, to: &Path) -> Result<bool> {
    let fail = |cause| Error::io("join subfiles", cause).target(path.display());
    if list(path).map_err(fail)?.is_empty() {
        return Ok(false);
    }
    let inode = path.metadata().map_err(fail)?.ino();
    let config = std::fs::read_to_string(config_path(path, inode)).map_err(fail)?;
    let (stripe, names) = parse_config(&config).map_err(|error| error.target(path.display()))?;
    let mut parts = Vec::with_capacity(names.len());
    for name in names {
        let part = path.with_file_name(name);
        let opened = File::open(&part).map_err(|cause| Error::io("join subfiles", cause).target(part.display()))?;
        parts.push(BufReader::new(opened));
    }
    let mut out = File::options().write(true).create_new(true).open(to).map_err(fail)?;
    // Stripes lie in the subfiles in turn. The file ends with the first stripe that is not whole.
    'all: loop {
        for part in &mut parts {
            let copied = std::io::copy(&mut part.take(stripe), &mut out).map_err(fail)?;
            if copied < stripe {
                break 'all;
            }
        }
    }
    let longer = parts.iter_mut().any(|part| part.fill_buf().is_ok_and(|rest| !rest.is_empty()));
    if longer {
        let message = "the subfiles have lengths that do not belong together";
        return Err(Error::new(ErrorKind::Corrupt, "join subfiles", message).target(path.display()));
    }
    Ok(true)
}

/// Bytes of a stripe, and the names of the subfiles in their order.
fn parse_config(config: &str) -> Result<(u64, Vec<&str>)> {
    let corrupt = |message: &str| Error::new(ErrorKind::Corrupt, "read list of subfiles", message.to_owned());
    let value = |key: &str| {
        let line = config.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='));
        line.and_then(|value| value.trim().parse::<u64>().ok()).filter(|value| *value > 0)
    };
    let stripe = value("stripe_size").ok_or_else(|| corrupt("it does not tell the size of a stripe"))?;
    let names: Vec<&str> =
        config.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains('=')).collect();
    if names.is_empty() || names.iter().any(|name| name.contains('/')) {
        return Err(corrupt("it does not name the subfiles"));
    }
    let counts = ["subfile_count", "aggregator_count"].map(value);
    if counts[0].or(counts[1]).is_some_and(|count| count != names.len() as u64) {
        return Err(corrupt("it names another number of subfiles than it tells"));
    }
    Ok((stripe, names))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_belongs_to_the_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.h5");
        assert!(list(&path).unwrap().is_empty());
        std::fs::write(&path, b"x").unwrap();
        assert!(list(&path).unwrap().is_empty());
        let inode = path.metadata().unwrap().ino();
        let own = [".config", "_1_of_2", "_2_of_2"].map(|end| dir.path().join(format!("a.h5.subfile_{inode}{end}")));
        let others =
            ["_1_of_", "_x_of_2", "9_1_of_2", ".config.old", ""].map(|end| format!("a.h5.subfile_{inode}{end}"));
        own.iter()
            .cloned()
            .chain(others.map(|name| dir.path().join(name)))
            .for_each(|p| std::fs::write(p, b"y").unwrap());
        assert_eq!(list(&path).unwrap(), own);
        assert!(refuse_wrong_driver(&path, false).is_err() && refuse_wrong_driver(&path, true).is_ok());
    }

    #[test]
    fn stripes_of_subfiles_are_joined() {
        let dir = tempfile::tempdir().unwrap();
        for length in [0usize, 1, 99, 100, 101, 300, 301, 1234] {
            let path = dir.path().join(format!("{length}.h5"));
            let whole: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
            std::fs::write(&path, b"stub").unwrap();
            let joined = dir.path().join(format!("{length}.joined"));
            assert!(!join(&path, &joined).unwrap() && !joined.exists());
            let inode = path.metadata().unwrap().ino();
            let name = |end: &str| format!("{length}.h5.subfile_{inode}{end}");
            let mut parts = vec![Vec::new(); 3];
            whole.chunks(100).enumerate().for_each(|(stripe, bytes)| parts[stripe % 3].extend_from_slice(bytes));
            let names: Vec<String> = (1..4).map(|part| name(&format!("_{part}_of_3"))).collect();
            let config = format!(
                "stripe_size=100\naggregator_count=3\nsubfile_count=3\nhdf5_file=/there/x.h5\nsubfile_dir=/there\n{}\n",
                names.join("\n")
            );
            std::fs::write(dir.path().join(name(".config")), &config).unwrap();
            for (name, part) in names.iter().zip(&parts) {
                std::fs::write(dir.path().join(name), part).unwrap();
            }
            assert!(join(&path, &joined).unwrap());
            assert_eq!(std::fs::read(&joined).unwrap(), whole);
            // What does not belong together is refused.
            std::fs::write(dir.path().join(&names[2]), vec![0; 5000]).unwrap();
            assert!(join(&path, &dir.path().join(format!("{length}.bad"))).is_err());
        }
        for wrong in
            ["", "stripe_size=0\na", "stripe_size=4\n", "stripe_size=4\nsubfile_count=2\na", "stripe_size=4\n../a"]
        {
            assert!(parse_config(wrong).is_err(), "{wrong}");
        }
    }
}
