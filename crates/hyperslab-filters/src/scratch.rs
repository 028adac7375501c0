//! Scratch memory that is allocated and zeroed once, then reused.

/// A buffer that only grows. Its contents between uses are unspecified.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Vec<u8>);

impl From<Vec<u8>> for Scratch {
    fn from(memory: Vec<u8>) -> Self {
        Self(memory)
    }
}

impl Scratch {
    /// The first `len` bytes, with unspecified contents; grows if needed.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        if self.0.len() < len {
            // Cleared first, so that growing does not copy stale contents.
            self.0.clear();
            self.0.resize(len, 0);
        }
        &mut self.0[..len]
    }

    /// The first `len` bytes, at most the capacity.
    pub(crate) fn filled(&self, len: usize) -> &[u8] {
        &self.0[..len.min(self.0.len())]
    }

    /// The whole buffer; only the bytes written to its front are meaningful.
    pub(crate) fn all(&self) -> &[u8] {
        &self.0
    }

    /// The first `len` bytes as a vector.
    pub(crate) fn into_vec(mut self, len: usize) -> Vec<u8> {
        self.0.truncate(len);
        self.0
    }

    /// Writes `bytes` after the first `len`.
    pub(crate) fn append(&mut self, len: usize, bytes: &[u8]) {
        self.0.resize(self.0.len().max(len + bytes.len()), 0);
        self.0[len..len + bytes.len()].copy_from_slice(bytes);
    }
}
