//! Element types: numbers, booleans, strings of fixed or variable length, opaque bytes, compounds.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };
}

/// The type of one element. Text form as in numpy (`<f4`, `>i8`, `|b1`, `|S16`, `|V8`, and `string`); compounds are JSON objects.
///
/// ```
/// use hyperslab_core::Datatype;
///
/// let particle = Datatype::packed_compound([("x", Datatype::F32), ("id", Datatype::I64)])?;
/// assert_eq!(particle.size(), 12);
/// assert_eq!(particle.field("id").map(|field| field.offset), Some(4));
/// assert_eq!(Datatype::F64.to_string(), "<f8");
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "DatatypeRepr", into = "DatatypeRepr")]
pub enum Datatype {
    /// Integer of 1, 2, 4 or 8 bytes.
    Integer {
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
        /// Two's complement if true.
        signed: bool,
        /// Byte order.
        order: ByteOrder,
    },
    /// IEEE 754 number of 2, 4 or 8 bytes.
    Float {
        /// Bytes: 2, 4 or 8.
        size: u8,
        /// Byte order.
        order: ByteOrder,
    },
    /// One byte, 0 or 1.
    Bool,
    /// Text of exactly this many bytes, padded with NUL.
    FixedString(u32),
    /// Text whose elements have each their own length, without NUL. Its elements are moved by
    /// [`Array::write_strings`](crate::Array::write_strings) and [`Array::read_strings`](crate::Array::read_strings) only: they
    /// have no packed form in memory.
    VariableString,
    /// Uninterpreted bytes.
    Opaque(u32),
    /// Named fields at offsets.
    Compound(Arc<Compound>),
}

/// A compound element: fields at rising, non-overlapping offsets inside `size` bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Compound {
    /// Bytes of the whole structure, padding included.
    pub size: u64,
    /// The fields, in order of offset.
    pub fields: Vec<Field>,
}

/// One named member of a compound.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// Name, unique within its compound.
    pub name: String,
    /// First byte within the structure.
    pub offset: u64,
    /// Type of the member; may itself be a compound.
    #[serde(rename = "type")]
    pub dtype: Datatype,
}

/// Bytes that stand for a string of variable length wherever sizes are estimated: HDF5's reference to it.
const STRING_REFERENCE: u64 = 16;
/// How deep compounds may nest.
const MAX_DEPTH: usize = 8;
/// How large one element may be.
const MAX_SIZE: u64 = 1 << 24;
/// How many fields a compound may have.
const MAX_FIELDS: usize = 4096;

impl Datatype {
    /// 32-bit float in this machine's order.
    pub const F32: Self = Self::Float { size: 4, order: ByteOrder::NATIVE };
    /// 64-bit float in this machine's order.
    pub const F64: Self = Self::Float { size: 8, order: ByteOrder::NATIVE };
    /// 32-bit signed integer in this machine's order.
    pub const I32: Self = Self::Integer { size: 4, signed: true, order: ByteOrder::NATIVE };
    /// 64-bit signed integer in this machine's order.
    pub const I64: Self = Self::Integer { size: 8, signed: true, order: ByteOrder::NATIVE };
    /// Unsigned byte.
    pub const U8: Self = Self::Integer { size: 1, signed: false, order: ByteOrder::NATIVE };

    /// A checked compound. Fields are sorted by offset; overlap, duplicates and overflow are refused.
    pub fn compound(size: u64, mut fields: Vec<Field>) -> Result<Self> {
        let bad = |m: String| Err(Error::invalid("check datatype", m));
        if fields.is_empty() || fields.len() > MAX_FIELDS {
            return bad(format!("a compound has 1 to {MAX_FIELDS} fields, not {}", fields.len()));
        }
        if size == 0 || size > MAX_SIZE {
            return bad(format!("a compound has 1 to {MAX_SIZE} bytes, not {size}"));
        }
        fields.sort_by_key(|f| f.offset);
        let mut end = 0;
        for field in &fields {
            if field.name.is_empty() {
                return bad("a field has an empty name".into());
            }
            if field.dtype == Self::VariableString {
                return Err(Error::unsupported(
                    "check datatype",
                    format!("field {:?} is text of variable length", field.name),
                )
                .hint("use text of fixed length in compounds, such as |S16"));
            }
            if field.offset < end {
                return bad(format!("field {:?} overlaps the one before it", field.name));
            }
            end = field.offset.saturating_add(field.dtype.size());
            if end > size {
                return bad(format!("field {:?} ends beyond the {size} bytes of its compound", field.name));
            }
            if field.dtype.depth() >= MAX_DEPTH {
                return bad(format!("compounds nest deeper than {MAX_DEPTH}"));
            }
        }
        let mut names: Vec<_> = fields.iter().map(|f| f.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|w| w[0] == w[1]) {
            return bad(format!("two fields are named {:?}", twice[0]));
        }
        Ok(Self::Compound(Arc::new(Compound { size, fields })))
    }

    /// A compound whose fields follow each other without padding.
    pub fn packed_compound<N: Into<String>>(fields: impl IntoIterator<Item = (N, Datatype)>) -> Result<Self> {
        let mut offset = 0;
        let fields = fields
            .into_iter()
            .map(|(name, dtype)| {
                let field = Field { name: name.into(), offset, dtype };
                offset += field.dtype.size();
                field
            })
            .collect();
        Self::compound(offset, fields)
    }

    /// Bytes of one element; of a string of variable length those of the reference to it.
    pub fn size(&self) -> u64 {
        match self {
            Self::Integer { size, .. } | Self::Float { size, .. } => u64::from(*size),
            Self::Bool => 1,
            Self::VariableString => STRING_REFERENCE,
            Self::FixedString(n) | Self::Opaque(n) => u64::from(*n),
            Self::Compound(c) => c.size,
        }
    }

    /// The fields of a compound; empty for every other type.
    pub fn fields(&self) -> &[Field] {
        match self {
            Self::Compound(c) => &c.fields,
            _ => &[],
        }
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields().iter().find(|f| f.name == name)
    }

    fn depth(&self) -> usize {
        self.fields().iter().map(|f| 1 + f.dtype.depth()).max().unwrap_or(0)
    }
}

fn order_mark(order: ByteOrder) -> char {
    match order {
        ByteOrder::Little => '<',
        ByteOrder::Big => '>',
    }
}

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { size: 1, signed, .. } => write!(f, "|{}1", if *signed { 'i' } else { 'u' }),
            Self::Integer { size, signed, order } => {
                write!(f, "{}{}{size}", order_mark(*order), if *signed { 'i' } else { 'u' })
            }
            Self::Float { size, order } => write!(f, "{}f{size}", order_mark(*order)),
            Self::Bool => write!(f, "|b1"),
            Self::FixedString(n) => write!(f, "|S{n}"),
            Self::VariableString => write!(f, "string"),
            Self::Opaque(n) => write!(f, "|V{n}"),
            Self::Compound(c) => {
                write!(f, "{{")?;
                for (i, field) in c.fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}{}: {} @{}", field.name, field.dtype, field.offset)?;
                }
                write!(f, "; {} bytes}}", c.size)
            }
        }
    }
}

impl FromStr for Datatype {
    type Err = Error;

    /// Parses the numpy form of every type but compounds.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid("parse datatype", format!("{text:?} is not a datatype"))
                .hint("use <i4, >f8, |u1, |b1, |S16, |V8, string and the like")
        };
        if text == "string" {
            return Ok(Self::VariableString);
        }
        let (order, rest) = match text.as_bytes().first() {
            Some(b'<') => (ByteOrder::Little, &text[1..]),
            Some(b'>') => (ByteOrder::Big, &text[1..]),
            Some(b'|') => (ByteOrder::NATIVE, &text[1..]),
            _ => (ByteOrder::NATIVE, text),
        };
        let kind = rest.chars().next().filter(char::is_ascii).ok_or_else(bad)?;
        let size: u32 = rest[1..].parse().map_err(|_| bad())?;
        let small = u8::try_from(size).unwrap_or(0);
        match kind {
            'i' | 'u' if [1, 2, 4, 8].contains(&size) => {
                let order = if size == 1 { ByteOrder::NATIVE } else { order };
                Ok(Self::Integer { size: small, signed: kind == 'i', order })
            }
            'f' if [2, 4, 8].contains(&size) => Ok(Self::Float { size: small, order }),
            'b' if size == 1 => Ok(Self::Bool),
            'S' if size >= 1 && u64::from(size) <= MAX_SIZE => Ok(Self::FixedString(size)),
            'V' if size >= 1 && u64::from(size) <= MAX_SIZE => Ok(Self::Opaque(size)),
            _ => Err(bad()),
        }
    }
}

/// The JSON representation of a datatype.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum DatatypeRepr {
    Text(String),
    Compound(Compound),
}

impl From<Datatype> for DatatypeRepr {
    fn from(dtype: Datatype) -> Self {
        match dtype {
            Datatype::Compound(c) => Self::Compound(Arc::unwrap_or_clone(c)),
            other => Self::Text(other.to_string()),
        }
    }
}

impl TryFrom<DatatypeRepr> for Datatype {
    type Error = Error;

    fn try_from(written: DatatypeRepr) -> Result<Self> {
        match written {
            DatatypeRepr::Text(text) => text.parse(),
            DatatypeRepr::Compound(c) => Self::compound(c.size, c.fields),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for text in ["|i1", "|u1", "<i2", ">i2", "<u4", ">i8", "<f2", ">f4", "<f8", "|b1", "|S16", "|V3", "string"] {
            let dtype: Datatype = text.parse().unwrap();
            assert_eq!(dtype.to_string(), text);
            let json = serde_json::to_string(&dtype).unwrap();
            assert_eq!(serde_json::from_str::<Datatype>(&json).unwrap(), dtype);
        }
        for text in ["", "<", "f3", "<x4", "S0", "é4", "V99999999999", "i4 "] {
            assert!(text.parse::<Datatype>().is_err(), "{text}");
        }
    }

    #[test]
    fn compounds_are_checked_and_round_trip() {
        let field = |name: &str, offset| Field { name: name.into(), offset, dtype: Datatype::F32 };
        let good = Datatype::compound(16, vec![field("b", 8), field("a", 0)]).unwrap();
        assert_eq!(good.size(), 16);
        assert_eq!(good.fields()[0].name, "a");
        let json = serde_json::to_string(&good).unwrap();
        assert_eq!(serde_json::from_str::<Datatype>(&json).unwrap(), good);
        assert!(Datatype::compound(16, vec![field("a", 0), field("b", 2)]).is_err());
        assert!(Datatype::compound(16, vec![field("a", 0), field("a", 4)]).is_err());
        assert!(Datatype::compound(7, vec![field("a", 4)]).is_err());
        assert!(
            serde_json::from_str::<Datatype>(
                r#"{"size":4,"fields":[{"name":"a","offset":18446744073709551615,"type":"<f4"}]}"#
            )
            .is_err()
        );
    }
}
