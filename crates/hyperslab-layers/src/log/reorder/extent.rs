//! Extents: adjacent parts coalesced into one write.

use super::ReorderLimits;
use hyperslab_core::Result;

/// Contiguous bytes of the array from one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtentPart {
    /// First byte in the array.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// Number of the request.
    pub request: u32,
    /// Offset in the packed elements of the request.
    pub at: u64,
}

/// A resulting write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write<'a> {
    /// Contiguous bytes of the array, from these consecutive parts.
    Extent(&'a [ExtentPart]),
    /// A whole request, unchanged.
    Whole(u32),
}

/// The extent being coalesced.
pub(super) struct Extent<'a> {
    limits: ReorderLimits,
    parts: Vec<ExtentPart>,
    bytes: u64,
    writes: u64,
    each: &'a mut dyn FnMut(Write<'_>) -> Result<()>,
}

impl<'a> Extent<'a> {
    pub fn new(limits: &ReorderLimits, each: &'a mut dyn FnMut(Write<'_>) -> Result<()>) -> Self {
        Self { limits: *limits, parts: Vec::new(), bytes: 0, writes: 0, each }
    }

    /// Adds a part, clipped to the limits. It follows all parts since the last [`Extent::end`].
    pub fn push(&mut self, part: ExtentPart) -> Result<()> {
        let (from, to) = (part.offset.max(self.limits.from), (part.offset + part.len).min(self.limits.to));
        if from >= to {
            return Ok(());
        }
        let part = ExtentPart { offset: from, len: to - from, at: part.at + (from - part.offset), ..part };
        if let Some(last) = self.parts.last_mut() {
            let touches = last.offset + last.len == part.offset;
            let (bytes, unit) = (self.limits.bytes, self.limits.unit);
            let last_unit = unit > 1 && part.offset.is_multiple_of(unit) && self.bytes + unit > bytes;
            let fits = touches && !last_unit && self.bytes + part.len <= bytes;
            if fits && last.request == part.request && last.at + last.len == part.at {
                last.len += part.len;
                self.bytes += part.len;
                return Ok(());
            }
            if !fits || self.parts.len() >= self.limits.parts {
                self.end()?;
            }
        }
        self.parts.push(part);
        self.bytes += part.len;
        Ok(())
    }

    /// Passes on a request that is not flattened.
    pub fn whole(&mut self, request: u32) -> Result<()> {
        self.end()?;
        self.writes += 1;
        (self.each)(Write::Whole(request))
    }

    /// Passes on the extent.
    pub fn end(&mut self) -> Result<()> {
        if self.parts.is_empty() {
            return Ok(());
        }
        self.writes += 1;
        let done = (self.each)(Write::Extent(&self.parts));
        self.parts.clear();
        self.bytes = 0;
        done
    }

    /// Number of writes passed on.
    pub fn writes(&self) -> u64 {
        self.writes
    }
}
