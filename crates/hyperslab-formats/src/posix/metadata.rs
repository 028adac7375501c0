//! JSON metadata of containers, groups and arrays.

use super::options::Files;
use hyperslab_core::{ArraySpec, Attribute, Datatype, Dims, Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Version of the format that this code reads and writes.
pub(crate) const VERSION: u32 = 1;

/// Size limit of a metadata file in bytes.
const LONGEST: u64 = 16 << 20;

/// Object kind of a metadata file. Also distinguishes it from other JSON files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Of {
    #[serde(rename = "posix container")]
    Container,
    #[serde(rename = "posix group")]
    Group,
    #[serde(rename = "posix array")]
    Array,
}

/// Common header. Decoded first, to distinguish a newer version from a corrupt file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub hyperslab: Of,
    pub version: u32,
}

/// `hyperslab.json`: metadata of a container or group.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupMetadata {
    pub hyperslab: Of,
    pub version: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, StoredAttribute>,
}

/// `name.json`: metadata of an array.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArrayMetadata {
    pub hyperslab: Of,
    pub version: u32,
    pub dtype: Datatype,
    pub shape: Dims,
    /// `C`: the last index varies fastest.
    pub order: String,
    pub files: Files,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_shape: Option<Vec<Option<u64>>>,
    /// Bytes of one element as hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_value: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, StoredAttribute>,
}

/// An attribute: natural JSON where that is exact, hexadecimal otherwise.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum StoredAttribute {
    /// A scalar string without NUL, as long as its text.
    Text(String),
    /// A scalar 64-bit integer of the machine that wrote it.
    Integer(i64),
    /// Anything else.
    Bytes { dtype: Datatype, shape: Dims, hex: String },
}

impl From<&Attribute> for StoredAttribute {
    fn from(value: &Attribute) -> Self {
        if value.shape.is_empty() {
            if let (Datatype::FixedString(_), Ok(text)) = (&value.dtype, std::str::from_utf8(&value.data))
                && !text.is_empty()
                && !text.contains('\0')
            {
                return Self::Text(text.into());
            }
            if let (true, Ok(bytes)) = (value.dtype == Datatype::I64, value.data.as_slice().try_into()) {
                return Self::Integer(i64::from_ne_bytes(bytes));
            }
        }
        Self::Bytes { dtype: value.dtype.clone(), shape: value.shape.clone(), hex: to_hex(&value.data) }
    }
}

impl StoredAttribute {
    pub fn restore(&self) -> Result<Attribute> {
        match self {
            Self::Text(text) => Ok(Attribute::text(text)),
            Self::Integer(value) => Ok(Attribute::integer(*value)),
            Self::Bytes { dtype, shape, hex } => {
                let attribute = Attribute { dtype: dtype.clone(), shape: shape.clone(), data: from_hex(hex)? };
                attribute.check()?;
                Ok(attribute)
            }
        }
    }
}

impl GroupMetadata {
    pub fn new(of: Of) -> Self {
        Self { hyperslab: of, version: VERSION, attributes: BTreeMap::new() }
    }
}

impl ArrayMetadata {
    pub fn new(spec: &ArraySpec, files: Files) -> Self {
        Self {
            hyperslab: Of::Array,
            version: VERSION,
            dtype: spec.dtype.clone(),
            shape: spec.shape.clone(),
            order: "C".into(),
            files,
            max_shape: spec.max_shape.clone(),
            fill_value: spec.fill_value.as_deref().map(to_hex),
            attributes: BTreeMap::new(),
        }
    }

    /// The validated specification: the file may come from anywhere.
    pub fn spec(&self) -> Result<ArraySpec> {
        let mut spec = ArraySpec::new(self.dtype.clone(), &self.shape);
        spec.max_shape = self.max_shape.clone();
        spec.fill_value = self.fill_value.as_deref().map(from_hex).transpose()?;
        if self.order != "C" {
            return Err(corrupt(format!("order {:?} is unknown", self.order)));
        }
        if spec.dtype.size() == 0 {
            return Err(corrupt("elements have no bytes".into()));
        }
        spec.check().and_then(|()| spec.refuse_strings()).map_err(|error| corrupt(error.to_string()))?;
        Ok(spec)
    }
}

fn corrupt(message: String) -> Error {
    Error::new(ErrorKind::Corrupt, "read description", message)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    let digits = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2 && !pair.starts_with('+'))?;
        u8::from_str_radix(pair, 16).ok()
    });
    digits.collect::<Option<_>>().ok_or_else(|| corrupt("bytes are not pairs of hexadecimal digits".into()))
}

/// Reads a metadata file of at most 16 MiB. Does not follow a symbolic link.
pub(crate) fn load(path: &Path) -> Result<Vec<u8>> {
    let read = || -> std::io::Result<Vec<u8>> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|cause| Error::io("read description", cause).target(path.display()))?;
    if bytes.len() as u64 > LONGEST {
        return Err(corrupt(format!("it is longer than {LONGEST} bytes")).target(path.display()));
    }
    Ok(bytes)
}

/// Decodes metadata of the expected kind. Fails with `Unsupported` if another version wrote it.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], of: Of, path: &Path) -> Result<T> {
    let wrong = |message: String| corrupt(message).target(path.display());
    let header: Header = serde_json::from_slice(bytes)
        .map_err(|cause| wrong(format!("it is not a description of this format: {cause}")))?;
    if header.version != VERSION {
        return Err(Error::unsupported(
            "read description",
            format!("it has version {}, this program knows version {VERSION}", header.version),
        )
        .target(path.display()));
    }
    if header.hyperslab != of {
        return Err(wrong("it describes something else".into()));
    }
    serde_json::from_slice(bytes).map_err(|cause| wrong(cause.to_string()))
}

/// Atomically replaces the metadata file at `path`: readers see the old or the new content.
pub(crate) fn store<T: Serialize>(path: &Path, description: &T) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(description)
        .map_err(|cause| Error::new(ErrorKind::Io, "write description", cause.to_string()))?;
    text.push(b'\n');
    if text.len() as u64 > LONGEST {
        return Err(Error::unsupported("write description", format!("it would be longer than {} bytes", LONGEST))
            .target(path.display())
            .hint("keep large attributes in an array"));
    }
    let unfinished = super::names::with_extension(path, super::names::UNFINISHED);
    let write = || -> std::io::Result<()> {
        let mut file = create_file(&unfinished)?;
        file.write_all(&text)?;
        std::fs::rename(&unfinished, path)
    };
    write().map_err(|cause| {
        // A leftover file is harmless; the error is what matters.
        let _ = std::fs::remove_file(&unfinished);
        Error::io("write description", cause).target(path.display())
    })
}

fn create_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).custom_flags(libc::O_NOFOLLOW).open(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn attributes_round_trip() {
        for attribute in [
            Attribute::text("kelvin"),
            Attribute::text(""),
            Attribute::integer(-5),
            Attribute::float(f64::NAN),
            Attribute { dtype: Datatype::FixedString(4), shape: Dims::new(), data: b"ab\0\0".to_vec() },
            Attribute { dtype: Datatype::U8, shape: Dims::from_slice(&[3]), data: vec![1, 2, 255] },
        ] {
            let json = serde_json::to_string(&StoredAttribute::from(&attribute)).unwrap();
            let back = serde_json::from_str::<StoredAttribute>(&json).unwrap().restore().unwrap();
            assert_eq!(
                (back.dtype, back.shape, back.data),
                (attribute.dtype, attribute.shape, attribute.data),
                "{json}"
            );
        }
    }

    #[test]
    fn hostile_descriptions_are_refused() {
        let good = r#"{"hyperslab":"posix array","version":1,"dtype":"<f8","shape":[2],"order":"C","files":"shared"}"#;
        let read =
            |text: &str| decode::<ArrayMetadata>(text.as_bytes(), Of::Array, Path::new("x")).and_then(|d| d.spec());
        assert_eq!(read(good).unwrap().shape.as_slice(), [2]);
        let change = |from: &str, to: &str| read(&good.replace(from, to)).unwrap_err().kind();
        assert_eq!(change("\"version\":1", "\"version\":2"), ErrorKind::Unsupported);
        for (from, to) in [
            ("posix array", "posix group"),
            ("posix array", "other"),
            ("[2]", "[18446744073709551615,9]"),
            ("[2]", "[-1]"),
            ("[2]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"),
            ("<f8", "<f9"),
            ("\"C\"", "\"F\""),
            ("\"C\"", "\"C\",\"fill_value\":\"00\""),
            ("\"C\"", "\"C\",\"fill_value\":\"0+\""),
            ("\"C\"", "\"C\",\"max_shape\":[1]"),
            ("}", ""),
        ] {
            assert_eq!(change(from, to), ErrorKind::Corrupt, "{from} -> {to}");
        }
    }
}
