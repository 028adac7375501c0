//! A single filter, for callers that run their own pipeline.

use crate::codec::{Codec, Outcome};
use crate::errors::{corrupt, inexpressible};
use crate::scratch::Scratch;
use crate::{FilterSpec, Workspace};
use hyperslab_core::Result;

/// A filter used by itself, as libhdf5 does.
#[derive(Debug, Clone)]
pub struct Filter {
    pub(crate) codec: Codec,
    pub(crate) optional: bool,
}

impl Filter {
    /// Refuses unsupported filters and parameters with kind `Unsupported`.
    pub fn new(filter: &FilterSpec) -> Result<Self> {
        Ok(Self { codec: Codec::new(filter)?, optional: filter.optional })
    }

    /// Encodes `plain` into `stored`. Returns false, and leaves `stored` empty, if the filter is optional and does not shrink the
    /// data.
    pub fn encode(&self, plain: &[u8], stored: &mut Vec<u8>, workspace: &mut Workspace) -> Result<bool> {
        let mut out = Scratch::from(std::mem::take(stored));
        let (len, used) = match self.codec.encode(plain, &mut out, &mut workspace.contexts)? {
            Outcome::Larger(_) | Outcome::Inexpressible if self.optional => (0, false),
            Outcome::Inexpressible => return Err(inexpressible(&self.codec, plain.len())),
            Outcome::Coded(len) | Outcome::Larger(len) => (len, true),
        };
        *stored = out.into_vec(len);
        Ok(used)
    }

    /// Decodes `stored` into `plain`. If the encoded form does not contain the decoded size, a buffer of `expected` bytes is tried
    /// first. Corrupt data, and a decoded size above `limit`, are errors of kind `Corrupt`.
    pub fn decode(
        &self,
        stored: &[u8],
        expected: usize,
        limit: usize,
        plain: &mut Vec<u8>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        let too_large = || corrupt(self.codec.name(), format!("more than {limit} bytes came out"));
        let mut size = match self.codec.declared_size(stored) {
            Some(size) => usize::try_from(size).ok().filter(|size| *size <= limit).ok_or_else(too_large)?,
            None => expected.clamp(1, limit.max(1)),
        };
        loop {
            plain.resize(size, 0);
            if let Some(len) = self.codec.decode(stored, plain, &mut workspace.contexts)? {
                plain.truncate(len);
                return Ok(());
            }
            if size >= limit {
                return Err(too_large());
            }
            size = size.saturating_mul(2).clamp(1, limit);
        }
    }
}
