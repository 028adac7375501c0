//! Memory that is zeroed once and then used again and again.

/// A buffer that only grows. What it holds between uses means nothing.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Vec<u8>);

impl From<Vec<u8>> for Scratch {
    fn from(memory: Vec<u8>) -> Self {
        Self(memory)
    }
}

impl Scratch {
    /// The first `len` bytes, whatever they hold.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        if self.0.len() < len {
            // No copy of what nobody needs any more.
            self.0.clear();
            self.0.resize(len, 0);
        }
        &mut self.0[..len]
    }

    /// The first `len` bytes of what was put here; never more than the room that was asked for.
    pub(crate) fn filled(&self, len: usize) -> &[u8] {
        &self.0[..len.min(self.0.len())]
    }

    /// Everything, of which only the front means something.
    pub(crate) fn all(&self) -> &[u8] {
        &self.0
    }

    /// Everything as a vector of `len` bytes.
    pub(crate) fn into_vec(mut self, len: usize) -> Vec<u8> {
        self.0.truncate(len);
        self.0
    }

    /// Puts `bytes` behind the first `len`.
    pub(crate) fn append(&mut self, len: usize, bytes: &[u8]) {
        self.0.resize(self.0.len().max(len + bytes.len()), 0);
        self.0[len..len + bytes.len()].copy_from_slice(bytes);
    }
}
