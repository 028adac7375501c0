//! Detection of stacks, from what is at a path or from its name.

use hyperslab_core::{Error, Format, OpenMode, Result, Stack, StackElement};
use hyperslab_formats::{build, formats};
use hyperslab_layers::is_log_layout;
use std::path::Path;
use std::sync::Arc;

/// Other extensions by which formats are known.
const ALSO: &[(&str, &str)] = &[("hdf5", "hdf5"), ("he5", "hdf5"), ("hdf", "hdf5")];

/// The formats that keep what is written, and work in one process.
fn candidates() -> impl Iterator<Item = (&'static str, Arc<dyn Format>)> {
    let usable = formats().iter().filter(|entry| entry.build.is_some() && entry.name != "mpiio");
    let built = usable.filter_map(|entry| Some((entry.name, build(&StackElement::plain(entry.name)).ok()?)));
    built.filter(|(_, format)| format.caps().readable && format.caps().persistent)
}

/// Detects the stack that reads what is at `path`, by having each format try to open it.
pub fn detect_stack(path: &Path) -> Result<Stack> {
    std::fs::metadata(path).map_err(|cause| Error::io("detect format", cause).target(path.display()))?;
    let mut refusals = String::new();
    for (name, format) in candidates() {
        match format.open(path, OpenMode::Read, &hyperslab_run::single_rank()) {
            Ok(container) => {
                let arrays = container.arrays();
                container.close()?;
                let layer = if arrays?.iter().any(|array| is_log_layout(array)) { "loglayout/" } else { "" };
                return format!("{layer}{name}").parse();
            }
            Err(error) => refusals.push_str(&format!("\n  {name}: {}", error.to_string().replace('\n', " "))),
        }
    }
    Err(Error::unsupported("detect format", format!("no format can read it{refusals}"))
        .target(path.display())
        .hint("name its stack: --from with convert, --stack with show"))
}

/// The stack that the extension of `path` stands for.
pub fn stack_for_name(path: &Path) -> Result<Stack> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("").to_ascii_lowercase();
    let also = ALSO.iter().find(|(known, _)| *known == extension).map(|(_, name)| *name);
    let found = candidates()
        .find(|(name, format)| also == Some(*name) || (!extension.is_empty() && format.extension() == extension));
    match found {
        Some((name, _)) => name.parse(),
        None => Err(Error::invalid("choose format", "the name does not tell a format")
            .target(path.display())
            .hint("a name that ends with .h5, .nc, .zarr or .posix, or name the stack (--to hdf5)")),
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
        assert_eq!(name("a.nc").unwrap(), "netcdf3");
        #[cfg(feature = "hdf5")]
        assert_eq!([name("a.h5").unwrap(), name("x/A.HDF5").unwrap()], ["hdf5", "hdf5"]);
        #[cfg(feature = "zarr")]
        assert_eq!(name("a.zarr").unwrap(), "zarr");
        for path in ["a", "h5", "a.txt", "."] {
            assert!(name(path).unwrap_err().to_string().contains("--to"), "{path}");
        }
    }
}
