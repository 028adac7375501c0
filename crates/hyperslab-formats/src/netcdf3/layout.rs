//! Where the variables of a file begin.

use super::encode::encoded_len;
use super::header::{Header, Variable, padded};
use super::types::Version;
use hyperslab_core::{Error, Result};

/// What the options say about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spacing {
    /// Room of the header comes in multiples of this, half of one being free at first; 0 for none.
    pub header_pad: u64,
    /// What the first variable begins at a multiple of.
    pub data_align: u64,
    /// What each variable without records begins at a multiple of.
    pub var_align: u64,
    /// What the first record begins at a multiple of.
    pub record_align: u64,
}

fn beyond(at: u64) -> Error {
    Error::unsupported("create", format!("the file would end beyond 2^63 bytes, after byte {at}"))
}

fn align(at: u64, multiple: u64) -> Result<u64> {
    at.checked_next_multiple_of(multiple).filter(|at| *at <= i64::MAX as u64).ok_or_else(|| beyond(at))
}

/// Lays out all variables anew, from byte `least` on: those without records in the order of their definition, then the first
/// record.
pub(crate) fn place_all(header: &mut Header, least: u64, spacing: &Spacing) -> Result<()> {
    let len = encoded_len(header).max(least);
    let room = if spacing.header_pad == 0 { len } else { align(len + spacing.header_pad / 2, spacing.header_pad)? };
    let mut at = align(room, spacing.data_align)?;
    for number in 0..header.variables.len() {
        if !header.has_records(&header.variables[number]) {
            at = place_fixed(header, number, at, spacing)?;
        }
    }
    place_records(header, at, spacing)?;
    check(header)
}

/// Lays out what comes after the first `known` variables and leaves these where they are. `false`, and nothing changed, if
/// elements that exist would have to move. Without elements it is [`place_all`].
pub(crate) fn place_new(header: &mut Header, known: usize, least: u64, spacing: &Spacing) -> Result<bool> {
    let (old, new) = header.variables.split_at(known);
    let begin = old.iter().map(|variable| variable.begin).min();
    if begin.is_none() {
        return place_all(header, least, spacing).map(|()| true);
    }
    let begin = begin.filter(|begin| encoded_len(header) <= *begin);
    let has_records = |of: &[Variable]| of.iter().any(|variable| header.has_records(variable));
    let is_free = header.records == 0 || !has_records(old) || new.is_empty();
    let Some(begin) = begin.filter(|_| is_free) else { return Ok(false) };
    let fixed = |variable: &&Variable| !header.has_records(variable);
    let ends = old.iter().filter(fixed).map(|variable| variable.begin + padded(header.inner_bytes(variable)));
    let mut at = ends.max().unwrap_or(begin);
    for number in known..header.variables.len() {
        if !header.has_records(&header.variables[number]) {
            at = place_fixed(header, number, at, spacing)?;
        }
    }
    if known < header.variables.len() {
        place_records(header, at, spacing)?;
    }
    check(header).map(|()| true)
}

/// Returns where the next one may begin.
fn place_fixed(header: &mut Header, number: usize, at: u64, spacing: &Spacing) -> Result<u64> {
    let begin = align(at, spacing.var_align)?;
    let bytes = inner_bytes(header, &header.variables[number])?;
    header.variables[number].begin = begin;
    begin.checked_add(padded(bytes)).filter(|end| *end <= i64::MAX as u64).ok_or_else(|| beyond(begin))
}

fn place_records(header: &mut Header, at: u64, spacing: &Spacing) -> Result<()> {
    let mut begin = align(at, spacing.record_align)?;
    for number in 0..header.variables.len() {
        if header.has_records(&header.variables[number]) {
            let bytes = padded(inner_bytes(header, &header.variables[number])?);
            header.variables[number].begin = begin;
            begin = begin.checked_add(bytes).filter(|end| *end <= i64::MAX as u64).ok_or_else(|| beyond(begin))?;
        }
    }
    Ok(())
}

fn inner_bytes(header: &Header, variable: &Variable) -> Result<u64> {
    header.checked_inner_bytes(variable).ok_or_else(|| beyond(variable.begin))
}

/// Refuses what the version has no numbers for.
pub(crate) fn check(header: &Header) -> Result<()> {
    let version = header.version;
    let too_large = |message: String| {
        let error = Error::unsupported("create", format!("{message}, which CDF-{} cannot hold", version.number()));
        Err(if version == Version::Data64 { error } else { error.hint("use version=5") })
    };
    if let Some(long) = header.dimensions.iter().find(|dimension| dimension.len > version.largest_count()) {
        return too_large(format!("a dimension of {} elements", long.len));
    }
    check_records(header, header.records)?;
    if let Some(far) = header.variables.iter().find(|variable| variable.begin > version.largest_begin()) {
        return too_large(format!("variable {:?} begins at byte {}", far.name, far.begin));
    }
    // A large variable may come last, where no offset follows from its size.
    let last = |with_records: bool| header.variables.iter().rfind(|one| header.has_records(one) == with_records);
    let exempt = last(true).or_else(|| last(false));
    for variable in &header.variables {
        let bytes = padded(inner_bytes(header, variable)?);
        let is_exempt = exempt.is_some_and(|exempt| std::ptr::eq(exempt, variable)) && version != Version::Data64;
        if bytes > version.largest_variable() && !is_exempt {
            return too_large(format!("variable {:?} of {bytes} bytes with others after it", variable.name));
        }
    }
    Ok(())
}

/// Refuses a number of records that the version has no number for, or that would end beyond 2^63 bytes.
pub(crate) fn check_records(header: &Header, records: u64) -> Result<()> {
    let end = records.checked_mul(header.record_size()).and_then(|bytes| {
        let last = header.record_variables().map(|variable| variable.begin).max().unwrap_or(0);
        bytes.checked_add(last).filter(|end| *end <= i64::MAX as u64)
    });
    if records <= header.version.largest_count() && end.is_some() {
        return Ok(());
    }
    let (bytes, version) = (header.record_size(), header.version.number());
    Err(Error::invalid("resize", format!("{records} records of {bytes} bytes are more than CDF-{version} can hold")))
}
