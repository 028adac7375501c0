//! From a stack string to a format.

use hyperslab_core::{Error, Format, Result, Stack};
use std::sync::Arc;

/// Builds the format at the bottom and wraps it in the layers above, innermost first.
pub fn resolve(stack: &Stack) -> Result<Arc<dyn Format>> {
    if let Some(layer) = stack.layers.last() {
        return Err(Error::unsupported(
            "choose stack",
            format!("layer {:?} is not available in this build", layer.name),
        )
        .target(stack)
        .hint(format!("use {} alone", stack.format)));
    }
    hyperslab_formats::build(&stack.format).map_err(|error| error.target(stack))
}
