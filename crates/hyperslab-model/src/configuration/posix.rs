//! Options of `posix` that decide costs.

use hyperslab_core::{Result, StackElement};

/// The options, parsed.
#[derive(Debug, Clone)]
pub(crate) struct Posix {
    /// Bytes of a staging buffer.
    pub(crate) buffer: u64,
}

impl Posix {
    pub(crate) fn parse(element: &StackElement) -> Result<Self> {
        Ok(Self { buffer: element.size("buffer")?.unwrap_or(4 << 20) })
    }
}
