//! Detection of stacks, from what is at a path or from its name.

use hyperslab_core::{Error, OpenMode, Result, Stack, StackElement};
use hyperslab_formats::{Beginning, build, formats};
use hyperslab_layers::is_log_layout;
use std::path::Path;

/// Detects the stack that reads what is at `path`: by its first bytes, then by having each format try to open it, those first
/// whose files begin like that.
///
/// ```
/// # fn main() -> hyperslab::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("run");
/// hyperslab::File::create(&path, "npy")?.close()?;
/// assert_eq!(hyperslab::detect_stack(&path)?.to_string(), "npy");
/// # Ok(())
/// # }
/// ```
pub fn detect_stack(path: &Path) -> Result<Stack> {
    let beginning = Beginning::of(path)?;
    let mut candidates: Vec<_> = formats().iter().filter_map(|entry| Some((entry, entry.recognises?))).collect();
    candidates.retain(|(entry, _)| entry.build.is_some());
    candidates.sort_by_key(|(_, recognises)| !recognises(&beginning));
    let mut refusals = String::new();
    for (entry, _) in candidates {
        let format = build(&StackElement::plain(entry.name))?;
        match format.open(path, OpenMode::Read, &hyperslab_run::single_rank()) {
            Ok(container) => {
                let arrays = container.arrays();
                container.close()?;
                let layer = if arrays?.iter().any(|array| is_log_layout(array)) { "loglayout/" } else { "" };
                return format!("{layer}{}", entry.name).parse();
            }
            Err(error) => refusals.push_str(&format!("\n  {}: {}", entry.name, error.to_string().replace('\n', " "))),
        }
    }
    Err(Error::unsupported("detect format", format!("no format can read it{refusals}"))
        .target(path.display())
        .hint("name its stack: --from with convert, --stack with show"))
}

/// The stack that the extension of `path` stands for.
///
/// ```
/// # fn main() -> hyperslab::Result<()> {
/// assert_eq!(hyperslab::stack_for_name("run.nc3".as_ref())?.to_string(), "netcdf3");
/// assert!(hyperslab::stack_for_name("run".as_ref()).is_err());
/// # Ok(())
/// # }
/// ```
pub fn stack_for_name(path: &Path) -> Result<Stack> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("").to_ascii_lowercase();
    let mut usable = formats().iter().filter(|entry| entry.build.is_some());
    match usable.find(|entry| entry.extensions.contains(&extension.as_str())) {
        Some(entry) => entry.name.parse(),
        None => {
            let known = formats().iter().filter(|entry| entry.build.is_some());
            let known: Vec<String> =
                known.filter_map(|entry| entry.extensions.first()).map(|extension| format!(".{extension}")).collect();
            let hint = format!("a name that ends with {}, or name the stack (--to hdf5)", known.join(", "));
            Err(Error::invalid("choose format", "the name does not tell a format").target(path.display()).hint(hint))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let name = |path: &str| stack_for_name(Path::new(path)).map(|stack| stack.to_string());
        assert_eq!(name("a.posix").unwrap(), "posix");
        assert_eq!(name("a.nc3").unwrap(), "netcdf3");
        assert_eq!(name("a.nc").unwrap(), if cfg!(feature = "hdf5") { "netcdf4" } else { "netcdf3" });
        assert_eq!(name("a.npys").unwrap(), "npy");
        #[cfg(feature = "hdf5")]
        assert_eq!([name("a.h5").unwrap(), name("x/A.HDF5").unwrap()], ["hdf5", "hdf5"]);
        #[cfg(feature = "zarr")]
        assert_eq!(name("a.zarr").unwrap(), "zarr");
        for path in ["a", "h5", "a.txt", "."] {
            assert!(name(path).unwrap_err().to_string().contains("--to"), "{path}");
        }
    }
}
