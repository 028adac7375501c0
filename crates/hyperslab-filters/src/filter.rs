//! One filter alone, for those who run a pipeline of their own.

use crate::codec::{Codec, Outcome};
use crate::errors::{corrupt, inexpressible};
use crate::scratch::Scratch;
use crate::{FilterSpec, Workspace};
use hyperslab_core::Result;

/// A filter that can be used by itself, as libhdf5 does.
#[derive(Debug, Clone)]
pub struct Filter {
    pub(crate) codec: Codec,
    pub(crate) optional: bool,
}

impl Filter {
    /// Refuses, with kind `Unsupported`, filters and parameters unknown here.
    pub fn new(filter: &FilterSpec) -> Result<Self> {
        Ok(Self { codec: Codec::new(filter)?, optional: filter.optional })
    }

    /// Puts the stored form of `plain` into `stored`. Answers false if the filter is optional and better left out;
    /// `stored` is then empty.
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

    /// Puts the plain form of `stored` into `plain`. Where the stored form does not tell its size, `expected` is tried
    /// first. More than `limit` bytes are an error of kind `Corrupt`, as is what is damaged.
    pub fn decode(
        &self,
        stored: &[u8],
        expected: usize,
        limit: usize,
        plain: &mut Vec<u8>,
        workspace: &mut Workspace,
    ) -> Result<()> {
        let too_large = || corrupt(self.codec.name(), format!("more than {limit} bytes came out"));
        let mut size = match self.codec.stated_size(stored) {
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
