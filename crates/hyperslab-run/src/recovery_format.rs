//! Formats for recovery, from the stack that a log's header names. The header is untrusted: only the format counts, and of its
//! options only those that describe the file.

use hyperslab_core::{Format, Result, Stack};
use std::sync::Arc;

/// The format of a stack without layers, with options that only describe the file.
pub fn plain_format(stack: &Stack) -> Result<Arc<dyn Format>> {
    hyperslab_formats::build(&bare(stack).format)
}

/// The same, for a container whose writers have died: opens files that are still marked as open.
pub fn orphan_format(stack: &Stack) -> Result<Arc<dyn Format>> {
    let mut stack = bare(stack);
    let entry = hyperslab_formats::format(&stack.format.name)?;
    let mut set = |name: &str, value: &str| {
        if entry.has_option(name) {
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
    let allowed = hyperslab_formats::format(&format.name).map_or(&[][..], |entry| entry.describing);
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
