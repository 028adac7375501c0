//! A header as bytes.

use super::header::{CdfAttribute, Header, Variable, padded};
use super::types::Version;

/// Begins a list of dimensions.
pub(super) const DIMENSIONS: u32 = 10;
/// Begins a list of variables.
pub(super) const VARIABLES: u32 = 11;
/// Begins a list of attributes.
pub(super) const ATTRIBUTES: u32 = 12;

/// The bytes of a header that passed `sizes::check`.
pub(crate) fn encode(header: &Header) -> Vec<u8> {
    let mut out = Writer { version: header.version, bytes: Vec::new() };
    out.bytes.extend_from_slice(b"CDF");
    out.bytes.push(header.version.number());
    out.count(header.records);
    out.list(DIMENSIONS, header.dimensions.len());
    for dimension in &header.dimensions {
        out.name(&dimension.name);
        out.count(dimension.len);
    }
    out.attributes(&header.attributes);
    out.list(VARIABLES, header.variables.len());
    for variable in &header.variables {
        out.variable(header, variable);
    }
    out.bytes
}

/// How many bytes [`encode`] makes.
pub(crate) fn encoded_len(header: &Header) -> u64 {
    let (count, offset) = (header.version.count_bytes() as u64, header.version.offset_bytes() as u64);
    let name = |name: &str| count + padded(name.len() as u64);
    let attributes = |all: &[CdfAttribute]| {
        let each = |one: &CdfAttribute| name(&one.name) + 4 + count + padded(one.data.len() as u64);
        4 + count + all.iter().map(each).sum::<u64>()
    };
    let dimensions: u64 = header.dimensions.iter().map(|dimension| name(&dimension.name) + count).sum();
    let variable = |one: &Variable| {
        let inside = name(&one.name) + count * (1 + one.dimensions.len() as u64);
        inside + attributes(&one.attributes) + 4 + count + offset
    };
    let lists = 2 * (4 + count); // dimensions and variables
    4 + count + lists + dimensions + attributes(&header.attributes) + header.variables.iter().map(variable).sum::<u64>()
}

struct Writer {
    version: Version,
    bytes: Vec<u8>,
}

impl Writer {
    fn word(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// The last bytes of a number, as many as the field has.
    fn number(&mut self, value: u64, bytes: usize) {
        self.bytes.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
    }

    fn count(&mut self, value: u64) {
        self.number(value, self.version.count_bytes());
    }

    fn pad(&mut self) {
        self.bytes.resize(padded(self.bytes.len() as u64) as usize, 0);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.bytes.extend_from_slice(name.as_bytes());
        self.pad();
    }

    /// The beginning of a list; an empty one has no tag.
    fn list(&mut self, tag: u32, count: usize) {
        self.word(if count == 0 { 0 } else { tag });
        self.count(count as u64);
    }

    fn attributes(&mut self, attributes: &[CdfAttribute]) {
        self.list(ATTRIBUTES, attributes.len());
        for attribute in attributes {
            self.name(&attribute.name);
            self.word(attribute.kind.number());
            self.count(attribute.data.len() as u64 / attribute.kind.size());
            self.bytes.extend_from_slice(&attribute.data);
            self.pad();
        }
    }

    fn variable(&mut self, header: &Header, variable: &Variable) {
        self.name(&variable.name);
        self.count(variable.dimensions.len() as u64);
        for dimension in &variable.dimensions {
            self.count(*dimension as u64);
        }
        self.attributes(&variable.attributes);
        self.word(variable.kind.number());
        // Redundant, and too small a field in the older versions: as netcdf-c writes it.
        let size = padded(header.inner_bytes(variable));
        self.count(if self.version == Version::Data64 { size } else { size.min(u64::from(u32::MAX)) });
        self.number(variable.begin, self.version.offset_bytes());
    }
}
