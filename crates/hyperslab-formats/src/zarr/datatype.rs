//! Datatypes as Zarr metadata names them.
//!
//! Version 2 has numpy's strings and lists of fields, byte order included. Version 3 has names; the byte order of
//! numbers is in the `bytes` codec, and of fields nowhere: zarr-python reads and writes them little-endian. Compounds
//! that a version cannot say (padding between fields; version 2: compounds inside compounds; version 3: big-endian
//! fields) are stored as raw bytes, and the attribute [`DTYPE_ATTRIBUTE`] keeps what they are.

use super::layout::Version;
use hyperslab_core::{ByteOrder, Datatype, Error, ErrorKind, Result};
use serde_json::{Value, json};

/// The attribute that keeps the type of compounds that Zarr sees as raw bytes.
pub const DTYPE_ATTRIBUTE: &str = "_hyperslab_dtype";

/// How deep compounds may nest in metadata.
const MAX_DEPTH: usize = 8;
/// How large one element may be.
const MAX_SIZE: u64 = 1 << 24;

/// How a type is stored: its name in the metadata and whether the attribute must say more.
pub struct StoredType {
    /// `data_type` or `dtype` of the metadata.
    pub name: Value,
    /// Byte order for the `bytes` codec of version 3, where it matters.
    pub order: Option<ByteOrder>,
    /// Stored as raw bytes: [`DTYPE_ATTRIBUTE`] restores it.
    pub disguised: bool,
}

/// How `dtype` is stored in a store of `version`.
pub fn to_json(dtype: &Datatype, version: Version) -> StoredType {
    let native = match version {
        Version::V2 => to_v2(dtype),
        Version::V3 => to_v3(dtype, false),
    };
    let order = match dtype {
        Datatype::Integer { size: 2.., order, .. } | Datatype::Float { order, .. } => Some(*order),
        _ => None,
    };
    match native {
        Some(name) => StoredType { name, order, disguised: false },
        None => {
            let name = match version {
                Version::V2 => json!(format!("|V{}", dtype.size())),
                Version::V3 => raw_bytes(dtype.size()),
            };
            StoredType { name, order: None, disguised: true }
        }
    }
}

fn raw_bytes(size: u64) -> Value {
    json!({"name": "raw_bytes", "configuration": {"length_bytes": size}})
}

fn is_packed(dtype: &Datatype) -> bool {
    let mut end = 0;
    for field in dtype.fields() {
        if field.offset != end {
            return false;
        }
        end += field.dtype.size();
    }
    end == dtype.size()
}

fn to_v2(dtype: &Datatype) -> Option<Value> {
    match dtype {
        Datatype::Compound(compound) => {
            // zarr-python 3 writes nested structures of version 2 but cannot read them.
            let flat = compound.fields.iter().all(|f| f.dtype.fields().is_empty());
            let fields = compound.fields.iter().map(|f| Some(json!([f.name, to_v2(&f.dtype)?])));
            (flat && is_packed(dtype)).then(|| fields.collect::<Option<Vec<_>>>())?.map(Value::from)
        }
        Datatype::VariableString => Some(json!("|O")),
        plain => Some(json!(plain.to_string())),
    }
}

fn to_v3(dtype: &Datatype, in_compound: bool) -> Option<Value> {
    let little = |order: &ByteOrder| !in_compound || *order == ByteOrder::Little;
    Some(match dtype {
        Datatype::Integer { size, signed, order } if *size == 1 || little(order) => {
            json!(format!("{}int{}", if *signed { "" } else { "u" }, u32::from(*size) * 8))
        }
        Datatype::Float { size, order } if little(order) => json!(format!("float{}", u32::from(*size) * 8)),
        Datatype::Integer { .. } | Datatype::Float { .. } => return None,
        Datatype::Bool => json!("bool"),
        Datatype::VariableString => json!("string"),
        Datatype::FixedString(n) => json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": n}}),
        Datatype::Opaque(n) => raw_bytes(u64::from(*n)),
        Datatype::Compound(compound) => {
            if !is_packed(dtype) {
                return None;
            }
            let fields = compound.fields.iter().map(|f| Some(json!([f.name, to_v3(&f.dtype, true)?])));
            json!({"name": "structured", "configuration": {"fields": fields.collect::<Option<Vec<_>>>()?}})
        }
    })
}

fn unsupported(name: &Value) -> Error {
    Error::unsupported("read zarr metadata", format!("datatype {name} has no counterpart here"))
        .hint("numbers, booleans, fixed-length bytes and structures of those can be read")
}

fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, "read zarr metadata", message)
}

/// The type that version 2 metadata names.
pub fn from_v2(name: &Value) -> Result<Datatype> {
    v2_at(name, 0)
}

fn v2_at(name: &Value, depth: usize) -> Result<Datatype> {
    if depth > MAX_DEPTH {
        return Err(corrupt("structures nest too deep"));
    }
    match name {
        Value::String(text) if text.starts_with(['<', '>', '|']) => text.parse().map_err(|_| unsupported(name)),
        Value::Array(fields) => compound(fields, name, |field| v2_at(field, depth + 1)),
        _ => Err(unsupported(name)),
    }
}

/// The type that version 3 metadata names; numbers take `order` from the `bytes` codec.
pub fn from_v3(name: &Value, order: Option<ByteOrder>) -> Result<Datatype> {
    v3_at(name, order, 0)
}

fn v3_at(name: &Value, order: Option<ByteOrder>, depth: usize) -> Result<Datatype> {
    if depth > MAX_DEPTH {
        return Err(corrupt("structures nest too deep"));
    }
    let (word, configuration) = match name {
        Value::String(word) => (word.as_str(), &Value::Null),
        Value::Object(object) => (
            object.get("name").and_then(Value::as_str).ok_or_else(|| unsupported(name))?,
            object.get("configuration").unwrap_or(&Value::Null),
        ),
        _ => return Err(unsupported(name)),
    };
    // Fields of structures carry no order in version 3; little-endian is what is written.
    let need_order = || match order {
        Some(ByteOrder::Big) if depth > 0 => Err(unsupported(name).hint("store the fields little-endian")),
        Some(order) => Ok(order),
        None if depth > 0 => Ok(ByteOrder::Little),
        None => Err(corrupt(format!("the bytes codec of {word} does not say its byte order"))),
    };
    let length = || {
        let length = configuration.get("length_bytes").and_then(Value::as_u64);
        length.filter(|n| (1..=MAX_SIZE).contains(n)).map(|n| n as u32).ok_or_else(|| unsupported(name))
    };
    Ok(match word {
        "bool" => Datatype::Bool,
        // Within structures there is no place for them.
        "string" | "variable_length_utf8" if depth == 0 => Datatype::VariableString,
        "int8" | "uint8" => Datatype::Integer { size: 1, signed: word == "int8", order: ByteOrder::NATIVE },
        "int16" | "int32" | "int64" | "uint16" | "uint32" | "uint64" => {
            let size = if word.ends_with("16") {
                2
            } else if word.ends_with("32") {
                4
            } else {
                8
            };
            Datatype::Integer { size, signed: word.starts_with('i'), order: need_order()? }
        }
        "float16" => Datatype::Float { size: 2, order: need_order()? },
        "float32" => Datatype::Float { size: 4, order: need_order()? },
        "float64" => Datatype::Float { size: 8, order: need_order()? },
        "null_terminated_bytes" => Datatype::FixedString(length()?),
        "raw_bytes" => Datatype::Opaque(length()?),
        "structured" | "struct" => {
            let fields = configuration.get("fields").and_then(Value::as_array).ok_or_else(|| unsupported(name))?;
            compound(fields, name, |field| v3_at(field, order, depth + 1))?
        }
        bits if bits.starts_with('r') => {
            let bits: u64 = bits[1..].parse().map_err(|_| unsupported(name))?;
            if !bits.is_multiple_of(8) || !(8..=MAX_SIZE * 8).contains(&bits) {
                return Err(unsupported(name));
            }
            Datatype::Opaque((bits / 8) as u32)
        }
        _ => return Err(unsupported(name)),
    })
}

/// Fields as `[name, type]` or `{"name": .., "data_type": ..}`, without padding.
fn compound(fields: &[Value], whole: &Value, parse: impl Fn(&Value) -> Result<Datatype>) -> Result<Datatype> {
    let mut parsed = Vec::new();
    for field in fields {
        let (name, dtype) = match field {
            Value::Array(pair) if pair.len() == 2 => (&pair[0], &pair[1]),
            Value::Object(object) => match (object.get("name"), object.get("data_type")) {
                (Some(name), Some(dtype)) => (name, dtype),
                _ => return Err(unsupported(whole)),
            },
            _ => return Err(unsupported(whole)),
        };
        parsed.push((name.as_str().ok_or_else(|| unsupported(whole))?, parse(dtype)?));
    }
    Datatype::packed_compound(parsed).map_err(|error| corrupt(error.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn types() -> Vec<Datatype> {
        let mut out: Vec<Datatype> =
            ["|i1", "<u2", ">i4", "<f2", ">f8", "|b1", "|S5", "|V7"].iter().map(|t| t.parse().unwrap()).collect();
        let inner = Datatype::packed_compound([("x", "<i2".parse().unwrap()), ("y", "|S3".parse().unwrap())]).unwrap();
        out.push(Datatype::packed_compound([("a", "<f4".parse().unwrap()), ("n", inner)]).unwrap());
        out
    }

    #[test]
    fn what_zarr_can_say_round_trips() {
        for dtype in types() {
            let stored = to_json(&dtype, Version::V3);
            assert!(!stored.disguised);
            assert_eq!(from_v3(&stored.name, stored.order).unwrap(), dtype);
            let stored = to_json(&dtype, Version::V2);
            assert_eq!(stored.disguised, dtype.field("n").is_some());
            if !stored.disguised {
                assert_eq!(from_v2(&stored.name).unwrap(), dtype);
            }
        }
        let nested = json!([["a", "<f4"], ["n", [["x", "<i2"], ["y", "|S3"]]]]);
        assert_eq!(Some(&from_v2(&nested).unwrap()), types().last());
    }

    #[test]
    fn what_zarr_cannot_say_is_disguised() {
        let big = Datatype::packed_compound([("a", ">f4".parse::<Datatype>().unwrap())]).unwrap();
        assert!(to_json(&big, Version::V3).disguised);
        assert!(!to_json(&big, Version::V2).disguised);
        let field = hyperslab_core::Field { name: "a".into(), offset: 4, dtype: Datatype::F32 };
        let padded = Datatype::compound(8, vec![field]).unwrap();
        for version in [Version::V2, Version::V3] {
            assert!(to_json(&padded, version).disguised);
        }
    }

    #[test]
    fn foreign_types_are_refused() {
        for name in [
            json!("fixed_length_utf32"),
            json!("r7"),
            json!("r"),
            json!("complex64"),
            json!(4),
            json!({"name": "raw_bytes"}),
        ] {
            assert!(from_v3(&name, Some(ByteOrder::Little)).is_err(), "{name}");
        }
        for name in [json!("<U3"), json!("|O"), json!("<M8[s]"), json!([["a", "<f4", [2]]]), json!(null), json!([])] {
            assert!(from_v2(&name).is_err(), "{name}");
        }
        assert!(from_v3(&json!("int32"), None).is_err());
    }
}
