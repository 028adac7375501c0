//! The formats that the heads of logs name. A head is text of others: of its stack only the format counts, and of the format's
//! options only those that say how its files look.

use hyperslab_core::{Format, Result, Stack};
use std::sync::Arc;

/// Options that a head may set, by format. None of them names a file or makes anything slow.
const ALLOWED: &[(&str, &[&str])] = &[
    ("hdf5", &["chunk", "align"]),
    ("posix", &["files"]),
    ("netcdf3", &["version"]),
    (
        "zarr",
        &[
            "version",
            "chunk",
            "shard",
            "codec",
            "level",
            "blosc_codec",
            "shuffle",
            "crc32c",
            "separator",
            "write_empty",
        ],
    ),
];

/// The format of a stack, without layers and with harmless options only.
pub fn plain(stack: &Stack) -> Result<Arc<dyn Format>> {
    hyperslab_formats::build(&bare(stack).format)
}

/// The same, for containers whose writers are dead.
pub fn abandoned(stack: &Stack) -> Result<Arc<dyn Format>> {
    let mut stack = bare(stack);
    let entry = hyperslab_formats::formats().iter().find(|entry| entry.name == stack.format.name);
    let options = entry.map_or(&[][..], |entry| entry.options);
    let mut set = |name: &str, value: &str| {
        if options.iter().any(|option| option.name == name) {
            stack.format.options.push((name.into(), value.into()));
        }
    };
    set("abandoned", "yes");
    // It stores whole chunks without reading what was there, which may be damaged, also at the end of an array.
    set("plane", "on");
    hyperslab_formats::build(&stack.format)
}

fn bare(stack: &Stack) -> Stack {
    let mut format = stack.format.clone();
    let allowed = ALLOWED.iter().find(|(name, _)| *name == format.name).map_or(&[][..], |(_, options)| options);
    format.options.retain(|(name, _)| allowed.contains(&name.as_str()));
    Stack { layers: Vec::new(), format }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn layers_and_options_that_do_something_are_left_out() {
        let stack = "slow(1B/s)/trace(file=/tmp/x)/hdf5(chunk=4x4,plane=off)".parse::<Stack>().unwrap();
        assert_eq!(bare(&stack).to_string(), "hdf5(chunk=4x4)");
    }
}
