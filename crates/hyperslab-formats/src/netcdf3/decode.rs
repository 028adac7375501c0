//! A header from bytes that anybody may have written.

use super::encode::{ATTRIBUTES, DIMENSIONS, VARIABLES};
use super::header::{CdfAttribute, Dimension, Header, Variable, padded};
use super::types::{CdfType, Version};
use std::collections::BTreeSet;

/// A header that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// With 0 records if the file does not say how many.
    pub header: Header,
    /// Bytes of it.
    pub len: u64,
    /// The number of records follows from the size of the file.
    pub streaming: bool,
}

/// Why bytes are no header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It goes on at least to this byte.
    Short(u64),
    /// What is wrong at which byte.
    Wrong(u64, String),
}

type Result<T> = std::result::Result<T, Flaw>;

/// Reads the header that `bytes` begins with. Memory is bounded by a multiple of their number, whatever they say.
pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded> {
    let mut reader = Reader { bytes, at: 0, version: Version::Classic };
    let wrong = |message: &str| Flaw::Wrong(0, message.into());
    let magic = reader.take(4)?;
    reader.version = match magic {
        [b'C', b'D', b'F', number] => {
            let unknown = || Flaw::Wrong(3, format!("version {number} is none of 1, 2 and 5"));
            Version::of_number(*number).ok_or_else(unknown)?
        }
        _ => return Err(wrong("it does not begin with \"CDF\"")),
    };
    let records = reader.number(reader.version.count_bytes())?;
    let streaming = records == u64::MAX >> (64 - 8 * reader.version.count_bytes());
    if !streaming && records > reader.version.largest_count() {
        return Err(Flaw::Wrong(4, format!("{records} records are more than this version has")));
    }
    let mut header = Header { records: if streaming { 0 } else { records }, ..Header::empty(reader.version) };
    header.dimensions = reader.list(DIMENSIONS, Reader::dimension)?;
    distinct(&reader, "dimensions", header.dimensions.iter().map(|one| &one.name))?;
    if header.dimensions.iter().filter(|dimension| dimension.len == 0).count() > 1 {
        return Err(reader.wrong("more than one record dimension"));
    }
    header.attributes = reader.attributes()?;
    header.variables = reader.list(VARIABLES, |reader| reader.variable(&header))?;
    distinct(&reader, "variables", header.variables.iter().map(|one| &one.name))?;
    let len = reader.at as u64;
    check_places(&header, len)?;
    Ok(Decoded { header, len, streaming })
}

fn distinct<'a>(reader: &Reader<'_>, what: &str, names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(reader.wrong(format!("two {what} are named {name:?}")));
        }
    }
    Ok(())
}

/// Refuses variables that lie in the header or beyond 2^63.
fn check_places(header: &Header, len: u64) -> Result<()> {
    let sizes = header.record_variables().try_fold(0u64, |sum, one| sum.checked_add(padded(header.inner_bytes(one))));
    let records = sizes.and_then(|_| header.records.checked_mul(header.record_size()));
    let records = records.ok_or_else(|| Flaw::Wrong(4, format!("{} records end beyond 2^63", header.records)))?;
    for variable in &header.variables {
        let wrong = |message: &str| Err(Flaw::Wrong(len, format!("variable {:?} {message}", variable.name)));
        if variable.begin < len {
            return wrong("begins within the header");
        }
        let bytes = if header.has_records(variable) { records } else { padded(header.inner_bytes(variable)) };
        if variable.begin.checked_add(bytes).is_none_or(|end| end > i64::MAX as u64) {
            return wrong("ends beyond 2^63");
        }
    }
    Ok(())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    version: Version,
}

impl<'a> Reader<'a> {
    fn wrong(&self, message: impl Into<String>) -> Flaw {
        Flaw::Wrong(self.at as u64, message.into())
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let end = (self.at as u64).checked_add(count).ok_or_else(|| self.wrong("a length beyond 2^64"))?;
        let from = self.at;
        let to = usize::try_from(end).ok().filter(|to| *to <= self.bytes.len()).ok_or(Flaw::Short(end))?;
        self.at = to;
        Ok(&self.bytes[from..to])
    }

    fn number(&mut self, bytes: usize) -> Result<u64> {
        Ok(self.take(bytes as u64)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn word(&mut self) -> Result<u32> {
        Ok(self.number(4)? as u32)
    }

    /// A count or length.
    fn count(&mut self, what: &str) -> Result<u64> {
        let count = self.number(self.version.count_bytes())?;
        if count > self.version.largest_count() {
            return Err(self.wrong(format!("a negative number of {what}")));
        }
        Ok(count)
    }

    fn pad(&mut self, len: u64) -> Result<&'a [u8]> {
        self.take(padded(len) - len)
    }

    fn name(&mut self) -> Result<String> {
        let len = self.count("bytes of a name")?;
        let name = self.take(len)?;
        if self.pad(len)?.iter().any(|byte| *byte != 0) {
            return Err(self.wrong("a name is padded with something else than zeros"));
        }
        match std::str::from_utf8(name) {
            Ok("") => Err(self.wrong("an empty name")),
            Ok(name) => Ok(name.to_owned()),
            Err(_) => Err(self.wrong("a name is not in UTF-8")),
        }
    }

    /// A list of what `element` reads. Grows as elements are found, not as the count promises.
    fn list<T>(&mut self, tag: u32, mut element: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let found = self.word()?;
        let count = self.count("elements of a list")?;
        if found != tag && (found != 0 || count != 0) {
            return Err(self.wrong(format!("a list begins with {found}, expected {tag}")));
        }
        let mut out = Vec::new();
        for _ in 0..count {
            out.push(element(self)?);
        }
        Ok(out)
    }

    fn dimension(&mut self) -> Result<Dimension> {
        Ok(Dimension { name: self.name()?, len: self.count("elements of a dimension")? })
    }

    fn attributes(&mut self) -> Result<Vec<CdfAttribute>> {
        let attributes = self.list(ATTRIBUTES, Self::attribute)?;
        distinct(self, "attributes", attributes.iter().map(|one| &one.name))?;
        Ok(attributes)
    }

    fn kind(&mut self) -> Result<CdfType> {
        let number = self.word()?;
        CdfType::of_number(number, self.version).ok_or_else(|| self.wrong(format!("type {number} is not known")))
    }

    fn attribute(&mut self) -> Result<CdfAttribute> {
        let name = self.name()?;
        let kind = self.kind()?;
        let values = self.count("values")?;
        let len = values.checked_mul(kind.size()).ok_or_else(|| self.wrong("an attribute beyond 2^64"))?;
        let data = self.take(len)?.to_vec();
        self.pad(len)?;
        Ok(CdfAttribute { name, kind, data })
    }

    fn variable(&mut self, header: &Header) -> Result<Variable> {
        let name = self.name()?;
        let rank = self.count("dimensions of a variable")?;
        let mut dimensions = Vec::new();
        for place in 0..rank {
            let dimension = self.number(self.version.count_bytes())?;
            let known = usize::try_from(dimension).ok().filter(|known| *known < header.dimensions.len());
            let known = known.ok_or_else(|| {
                self.wrong(format!("variable {name:?} has dimension {dimension} of {}", header.dimensions.len()))
            })?;
            if place > 0 && header.dimensions[known].len == 0 {
                return Err(self.wrong(format!("the record dimension of variable {name:?} is not its first")));
            }
            dimensions.push(known);
        }
        let attributes = self.attributes()?;
        let kind = self.kind()?;
        // The size on disk is redundant, and not always right: it is worked out anew.
        self.number(self.version.count_bytes())?;
        let begin = self.number(self.version.offset_bytes())?;
        if begin > self.version.largest_begin() {
            return Err(self.wrong(format!("variable {name:?} begins at a negative offset")));
        }
        let variable = Variable { name, dimensions, attributes, kind, begin };
        match header.checked_inner_bytes(&variable) {
            Some(_) => Ok(variable),
            None => Err(self.wrong(format!("variable {:?} has more than 2^63 bytes", variable.name))),
        }
    }
}
