//! Binary encoding: little-endian integers and length-prefixed bytes.

use hyperslab_core::Result;

use super::corrupt;

/// Appends encoded values to a buffer.
#[derive(Debug, Default)]
pub struct Encoder(pub Vec<u8>);

impl Encoder {
    pub fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn raw(&mut self, value: &[u8]) {
        self.0.extend_from_slice(value);
    }

    /// A 32-bit length, then the bytes.
    pub fn counted(&mut self, value: &[u8]) {
        self.u32(value.len() as u32);
        self.raw(value);
    }
}

/// Decodes values from the front of a slice; fails at its end.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a>(pub &'a [u8]);

impl<'a> Decoder<'a> {
    pub fn raw(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(|| corrupt("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.raw(N)?);
        Ok(out)
    }

    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn bytes16(&mut self) -> Result<[u8; 16]> {
        self.array()
    }

    /// Decodes [`Encoder::counted`], if it is no longer than `most`.
    pub fn counted(&mut self, most: usize) -> Result<&'a [u8]> {
        let len = self.u32()? as usize;
        if len > most {
            return Err(corrupt(format!("a text of {len} bytes, where {most} are possible")));
        }
        self.raw(len)
    }

    /// The same, as UTF-8 text.
    pub fn text(&mut self, most: usize) -> Result<&'a str> {
        std::str::from_utf8(self.counted(most)?).map_err(|_| corrupt("a text is not UTF-8"))
    }

    /// Fails if bytes are left.
    pub fn end(self) -> Result<()> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(corrupt(format!("{left} bytes too many"))),
        }
    }
}
