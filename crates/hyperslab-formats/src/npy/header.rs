//! The header of a `.npy` file: a magic number, a version, and a Python dictionary as text.

use super::corrupt;
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, MAX_RANK, Result, dims};
use std::io::Read;

/// What every file begins with.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Headers and elements begin at multiples of this.
const ALIGN: usize = 64;
/// A longer header describes no array of ours; numpy itself refuses more than 10,000 bytes.
const LONGEST: usize = 1 << 20;

/// A header, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub spec: ArraySpec,
    /// Where the elements begin.
    pub begin: u64,
}

/// The bytes of a header of version 1.0. The array needs at most 32 dimensions, so it fits.
pub(super) fn encode(spec: &ArraySpec) -> Vec<u8> {
    let extents: Vec<String> = spec.shape.iter().map(u64::to_string).collect();
    let comma = if extents.len() == 1 { "," } else { "" };
    let shape = format!("({}{comma})", extents.join(", "));
    let text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", spec.dtype);
    let total = (MAGIC.len() + 4 + text.len() + 1).next_multiple_of(ALIGN);
    let length = total - MAGIC.len() - 4;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    bytes
}

/// Reads a header from the beginning of a file of `size` bytes. What the file claims to hold must be there.
pub(super) fn decode(mut file: impl Read, size: u64) -> Result<Header> {
    let mut take = |bytes: &mut [u8]| {
        file.read_exact(bytes).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::UnexpectedEof => corrupt("the file ends inside its header"),
            _ => Error::io("read header", cause),
        })
    };
    let mut start = [0; 8];
    take(&mut start)?;
    if !start.starts_with(MAGIC) {
        return Err(corrupt("it does not begin like a .npy file"));
    }
    let (length, fixed) = match start[6] {
        1 => {
            let mut bytes = [0; 2];
            take(&mut bytes)?;
            (usize::from(u16::from_le_bytes(bytes)), 10)
        }
        2 | 3 => {
            let mut bytes = [0; 4];
            take(&mut bytes)?;
            (u32::from_le_bytes(bytes) as usize, 12)
        }
        version => {
            let message = format!("version {version} of .npy files is not known here");
            return Err(Error::unsupported("read header", message));
        }
    };
    if length > LONGEST {
        return Err(corrupt(format!("a header of {length} bytes is more than the {LONGEST} that are read")));
    }
    let mut text = vec![0; length];
    take(&mut text)?;
    let text = std::str::from_utf8(&text).map_err(|_| corrupt("the header is no text"))?;
    let spec = Dictionary::parse(text)?.spec()?;
    let begin = (fixed + length) as u64;
    let end = dims::byte_count(&spec.shape, spec.dtype.size())?.checked_add(begin);
    if end.is_none_or(|end| end > size) {
        let shape = dims::display(&spec.shape);
        return Err(corrupt(format!("the file has {size} bytes, too few for {shape} of {}", spec.dtype)));
    }
    Ok(Header { spec, begin })
}

/// The dictionary as text, cut into what matters.
#[derive(Debug, Default)]
struct Dictionary<'a> {
    descr: Option<&'a str>,
    fortran_order: Option<bool>,
    shape: Option<Dims>,
}

impl<'a> Dictionary<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let bad = || corrupt("the header is no dictionary of descr, fortran_order and shape");
        let mut found = Self::default();
        let mut rest = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or_else(bad)?.trim();
        while !rest.is_empty() {
            let (key, after) = quoted(rest).ok_or_else(bad)?;
            let value = after.trim_start().strip_prefix(':').ok_or_else(bad)?.trim_start();
            rest = match key {
                "descr" if value.starts_with(['[', '(']) => {
                    return Err(Error::unsupported("read header", "the elements of the file have fields")
                        .hint("save each field as an array of its own"));
                }
                "descr" if found.descr.is_none() => {
                    let (descr, after) = quoted(value).ok_or_else(bad)?;
                    found.descr = Some(descr);
                    after
                }
                "fortran_order" if found.fortran_order.is_none() => {
                    let words = [("True", true), ("False", false)];
                    let word = words.iter().find_map(|(word, is)| Some((value.strip_prefix(word)?, *is)));
                    let (after, is) = word.ok_or_else(bad)?;
                    found.fortran_order = Some(is);
                    after
                }
                "shape" if found.shape.is_none() => {
                    let (inside, after) =
                        value.strip_prefix('(').and_then(|value| value.split_once(')')).ok_or_else(bad)?;
                    found.shape = Some(extents(inside)?);
                    after
                }
                _ => return Err(bad()),
            };
            rest = rest.trim_start();
            rest = match rest.strip_prefix(',') {
                Some(more) => more.trim_start(),
                None if rest.is_empty() => rest,
                None => return Err(bad()),
            };
        }
        Ok(found)
    }

    fn spec(self) -> Result<ArraySpec> {
        let missing = |key: &str| corrupt(format!("the header has no {key}"));
        let descr = self.descr.ok_or_else(|| missing("descr"))?;
        let shape = self.shape.ok_or_else(|| missing("shape"))?;
        let reversed = self.fortran_order.ok_or_else(|| missing("fortran_order"))?;
        let dtype: Datatype = descr.parse().ok().filter(|dtype: &Datatype| dtype.size() > 0).ok_or_else(|| {
            Error::unsupported("read header", format!("elements of numpy's type {descr:?} have no counterpart here"))
                .hint("numbers, booleans, |S and |V are read; save complex numbers as pairs of floats")
        })?;
        if reversed && shape.iter().filter(|extent| **extent > 1).count() > 1 {
            return Err(Error::unsupported("read header", "its elements are in column-major (Fortran) order")
                .hint("save it with numpy.save(file, numpy.ascontiguousarray(array))"));
        }
        let spec = ArraySpec::new(dtype, &shape);
        spec.check().and_then(|()| spec.refuse_strings()).map_err(|error| corrupt(error.to_string()))?;
        Ok(spec)
    }
}

/// The text between quotes at the beginning, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|first| "'\"".contains(*first))?;
    text[1..].split_once(quote)
}

/// The extents in `3, 4`, `3,` or nothing.
fn extents(text: &str) -> Result<Dims> {
    let text = text.trim();
    let mut extents = Dims::new();
    if text.is_empty() {
        return Ok(extents);
    }
    for part in text.strip_suffix(',').unwrap_or(text).split(',') {
        // Old versions of numpy wrote `3L`.
        let digits = part.trim().trim_end_matches('L');
        let extent = digits.parse().map_err(|_| corrupt(format!("{part:?} is no extent")))?;
        if extents.len() == MAX_RANK {
            let message = format!("the array has more than {MAX_RANK} dimensions");
            return Err(Error::unsupported("read header", message));
        }
        extents.push(extent);
    }
    Ok(extents)
}
