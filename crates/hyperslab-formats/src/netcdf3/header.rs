//! What the header of a classic NetCDF file says, and the sizes that follow from it.

use super::types::{CdfType, Version};

/// What every size on disk is a multiple of, but for the exception of [`Header::record_size`].
const ALIGNMENT: u64 = 4;

/// A named length, shared by variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub name: String,
    /// 0 for the record dimension.
    pub len: u64,
}

/// A named list of values, big-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CdfAttribute {
    pub name: String,
    pub kind: CdfType,
    pub data: Vec<u8>,
}

/// An array of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    pub name: String,
    /// Numbers of its dimensions, slowest first.
    pub dimensions: Vec<usize>,
    pub attributes: Vec<CdfAttribute>,
    pub kind: CdfType,
    /// First byte of its elements, of the first record if it has records.
    pub begin: u64,
}

/// A whole header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub version: Version,
    /// How many records there are.
    pub records: u64,
    pub dimensions: Vec<Dimension>,
    pub attributes: Vec<CdfAttribute>,
    pub variables: Vec<Variable>,
}

/// `bytes` with padding.
pub(crate) fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT)
}

impl Header {
    /// A file without anything.
    pub fn empty(version: Version) -> Self {
        Self { version, records: 0, dimensions: Vec::new(), attributes: Vec::new(), variables: Vec::new() }
    }

    /// Whether the first dimension of a variable is that of records.
    pub fn has_records(&self, variable: &Variable) -> bool {
        variable.dimensions.first().is_some_and(|first| self.dimensions[*first].len == 0)
    }

    /// Extents of one record, or of all of a variable without records.
    pub fn inner_extents<'a>(&'a self, variable: &'a Variable) -> impl Iterator<Item = u64> + 'a {
        let inner = &variable.dimensions[usize::from(self.has_records(variable))..];
        inner.iter().map(|dimension| self.dimensions[*dimension].len)
    }

    /// Bytes of one record, or of all of a variable without records, padding not counted. `None` above 2^63.
    pub fn checked_inner_bytes(&self, variable: &Variable) -> Option<u64> {
        let bytes = self.inner_extents(variable).try_fold(variable.kind.size(), u64::checked_mul);
        bytes.filter(|bytes| *bytes <= i64::MAX as u64 - ALIGNMENT)
    }

    /// The same for a header that was checked.
    pub fn inner_bytes(&self, variable: &Variable) -> u64 {
        self.inner_extents(variable).product::<u64>() * variable.kind.size()
    }

    /// The variables that have records.
    pub fn record_variables(&self) -> impl Iterator<Item = &Variable> {
        self.variables.iter().filter(|variable| self.has_records(variable))
    }

    /// Bytes from one record to the next: the padded records of all variables, but of a single one without padding.
    pub fn record_size(&self) -> u64 {
        let mut with_records = self.record_variables();
        match (with_records.next(), with_records.next()) {
            (None, _) => 0,
            (Some(only), None) => self.inner_bytes(only),
            _ => self.record_variables().map(|variable| padded(self.inner_bytes(variable))).sum(),
        }
    }

    /// First byte of the first record; `None` without variables that have records.
    pub fn records_begin(&self) -> Option<u64> {
        self.record_variables().map(|variable| variable.begin).min()
    }

    /// One past the last byte of variables without records, padding included; 0 without them.
    pub fn fixed_end(&self) -> u64 {
        let fixed = self.variables.iter().filter(|variable| !self.has_records(variable));
        fixed.map(|variable| variable.begin + padded(self.inner_bytes(variable))).max().unwrap_or(0)
    }

    /// One past the last byte of the file's data.
    pub fn end(&self) -> u64 {
        match self.records_begin() {
            Some(begin) if self.records > 0 => self.fixed_end().max(begin + self.records * self.record_size()),
            _ => self.fixed_end(),
        }
    }
}
