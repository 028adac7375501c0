//! Fill values between the bytes of one element and JSON.

use super::base64;
use super::layout::Version;
use hyperslab_core::{ByteOrder, Datatype, Error, ErrorKind, Result};
use serde_json::{Number, Value, json};

/// The JSON form of `fill`, the bytes of one element of `dtype`. A NaN with a payload is refused in version 2, which
/// can only say "NaN".
pub fn to_json(dtype: &Datatype, fill: &[u8], version: Version) -> Result<Value> {
    Ok(match dtype {
        Datatype::Integer { size, signed, order } => {
            let bits = unsigned(fill, *order);
            if *signed { json!(sign_extend(bits, *size)) } else { json!(bits) }
        }
        Datatype::Float { size, order } => float_to_json(*size, unsigned(fill, *order), version)?,
        Datatype::VariableString => json!(std::str::from_utf8(fill).map_err(|_| {
            Error::unsupported("create array", "Zarr's strings are UTF-8, and the fill value is not")
        })?),
        Datatype::Bool => json!(fill.first().is_some_and(|b| *b != 0)),
        Datatype::FixedString(_) | Datatype::Opaque(_) | Datatype::Compound(_) => json!(base64::encode(fill)),
    })
}

/// The bytes of one element of `dtype` that `value` stands for. Version 2's null stands for zeros.
pub fn from_json(dtype: &Datatype, value: &Value, version: Version) -> Result<Vec<u8>> {
    let size = dtype.size() as usize;
    if *dtype == Datatype::VariableString {
        return match value {
            Value::String(text) if !text.contains('\0') => Ok(text.clone().into_bytes()),
            // Version 2 says 0 for objects without a fill value.
            Value::Null => Ok(Vec::new()),
            Value::Number(zero) if version == Version::V2 && zero.as_u64() == Some(0) => Ok(Vec::new()),
            _ => {
                let message = format!("fill value {value} does not fit the datatype {dtype}");
                Err(Error::new(ErrorKind::Corrupt, "read zarr metadata", message))
            }
        };
    }
    if value.is_null() && version == Version::V2 {
        return Ok(vec![0; size]);
    }
    let wrong = || {
        let message = format!("fill value {value} does not fit the datatype {dtype}");
        Error::new(ErrorKind::Corrupt, "read zarr metadata", message)
    };
    match dtype {
        Datatype::VariableString => Err(wrong()), // above
        Datatype::Integer { size, signed, order } => {
            let bits = integer_bits(value, *size, *signed).ok_or_else(wrong)?;
            Ok(ordered(bits, *size, *order))
        }
        Datatype::Float { size, order } => {
            let bits = float_bits(value, *size).ok_or_else(wrong)?;
            Ok(ordered(bits, *size, *order))
        }
        Datatype::Bool => match value {
            Value::Bool(b) => Ok(vec![u8::from(*b)]),
            Value::Number(n) if version == Version::V2 => match n.as_u64() {
                Some(n @ 0..=1) => Ok(vec![n as u8]),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        },
        Datatype::FixedString(_) | Datatype::Opaque(_) | Datatype::Compound(_) => {
            let mut bytes = match value {
                Value::String(text) => base64::decode(text),
                Value::Array(list) => list.iter().map(|b| b.as_u64().and_then(|b| u8::try_from(b).ok())).collect(),
                Value::Number(n) if n.as_f64() == Some(0.0) => Some(Vec::new()),
                _ => None,
            }
            .filter(|bytes| bytes.len() == size || (bytes.len() < size && may_be_short(dtype, bytes)))
            .ok_or_else(wrong)?;
            bytes.resize(size, 0);
            Ok(bytes)
        }
    }
}

/// Strings may leave out their padding; anything may leave out everything.
fn may_be_short(dtype: &Datatype, bytes: &[u8]) -> bool {
    bytes.is_empty() || matches!(dtype, Datatype::FixedString(_))
}

fn unsigned(bytes: &[u8], order: ByteOrder) -> u64 {
    let fold = |n: u64, b: &u8| n << 8 | u64::from(*b);
    match order {
        ByteOrder::Big => bytes.iter().fold(0, fold),
        ByteOrder::Little => bytes.iter().rev().fold(0, fold),
    }
}

fn ordered(bits: u64, size: u8, order: ByteOrder) -> Vec<u8> {
    let size = usize::from(size);
    match order {
        ByteOrder::Little => bits.to_le_bytes()[..size].to_vec(),
        ByteOrder::Big => bits.to_be_bytes()[8 - size..].to_vec(),
    }
}

fn sign_extend(bits: u64, size: u8) -> i64 {
    let unused = 64 - 8 * u32::from(size);
    ((bits << unused) as i64) >> unused
}

fn integer_bits(value: &Value, size: u8, signed: bool) -> Option<u64> {
    let number = value.as_number()?;
    let wide: i128 = match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(n), ..) => n.into(),
        (_, Some(n), _) => n.into(),
        // Older writers say 0.0 for integers.
        (.., Some(n)) if n.fract() == 0.0 && n.abs() < 9e15 => n as i128,
        _ => return None,
    };
    let bits = 8 * u32::from(size);
    let (low, high) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    (low..=high).contains(&wide).then_some(wide as u64)
}

/// The value of IEEE bits of 2, 4 or 8 bytes.
fn float_value(bits: u64, size: u8) -> f64 {
    match size {
        2 => half::f16::from_bits(bits as u16).to_f64(),
        4 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

fn bits_of(value: f64, size: u8) -> u64 {
    match size {
        2 => u64::from(half::f16::from_f64(value).to_bits()),
        4 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// The NaN that "NaN" stands for.
fn quiet_nan(size: u8) -> u64 {
    match size {
        2 => 0x7e00,
        4 => 0x7fc0_0000,
        _ => 0x7ff8_0000_0000_0000,
    }
}

fn float_to_json(size: u8, bits: u64, version: Version) -> Result<Value> {
    let value = float_value(bits, size);
    if let Some(number) = Number::from_f64(value) {
        return Ok(Value::Number(number));
    }
    if value.is_infinite() {
        return Ok(json!(if value > 0.0 { "Infinity" } else { "-Infinity" }));
    }
    if bits == quiet_nan(size) {
        return Ok(json!("NaN"));
    }
    match version {
        Version::V3 => Ok(json!(format!("0x{bits:0width$x}", width = usize::from(size) * 2))),
        Version::V2 => Err(Error::unsupported("create array", "version 2 cannot keep a NaN fill value with a payload")
            .hint("use the plain NaN, or version=3")),
    }
}

fn float_bits(value: &Value, size: u8) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_f64().map(|v| bits_of(v, size)),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(quiet_nan(size)),
            "Infinity" => Some(bits_of(f64::INFINITY, size)),
            "-Infinity" => Some(bits_of(f64::NEG_INFINITY, size)),
            hex => {
                let digits = hex.strip_prefix("0x").filter(|d| d.len() == usize::from(size) * 2)?;
                u64::from_str_radix(digits, 16).ok()
            }
        },
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn round_trip(dtype: &str, fill: &[u8], version: Version) -> Value {
        let dtype: Datatype = dtype.parse().unwrap();
        let value = to_json(&dtype, fill, version).unwrap();
        assert_eq!(from_json(&dtype, &value, version).unwrap(), fill, "{dtype} {value}");
        value
    }

    #[test]
    fn bytes_and_json_agree() {
        for version in [Version::V2, Version::V3] {
            assert_eq!(round_trip("<i2", &[0xfe, 0xff], version), json!(-2));
            assert_eq!(round_trip(">u4", &[0, 0, 1, 0], version), json!(256));
            assert_eq!(round_trip("<u8", &[255; 8], version), json!(u64::MAX));
            assert_eq!(round_trip(">f4", &1.5f32.to_be_bytes(), version), json!(1.5));
            assert_eq!(round_trip("<f8", &f64::NEG_INFINITY.to_le_bytes(), version), json!("-Infinity"));
            assert_eq!(round_trip("<f2", &0x7e00u16.to_le_bytes(), version), json!("NaN"));
            assert_eq!(round_trip("|b1", &[1], version), json!(true));
            assert_eq!(round_trip("|S3", b"ab\0", version), json!("YWIA"));
        }
        let odd = 0x7fc0_0001u32.to_le_bytes();
        assert_eq!(round_trip("<f4", &odd, Version::V3), json!("0x7fc00001"));
        assert!(to_json(&Datatype::F32, &odd, Version::V2).is_err());
    }

    #[test]
    fn wrong_fill_values_are_refused() {
        for (dtype, value) in [
            ("|u1", json!(256)),
            ("|u1", json!(-1)),
            ("<i4", json!("x")),
            ("<i4", json!(0.5)),
            ("<f4", json!("0x7fc0")),
            ("<f4", json!([1])),
            ("|b1", json!("true")),
            ("|V3", json!("AAAA AAAA")),
            ("|V3", json!([1, 2])),
            ("|V3", json!([1, 2, 256])),
        ] {
            let dtype: Datatype = dtype.parse().unwrap();
            assert!(from_json(&dtype, &value, Version::V3).is_err(), "{dtype} {value}");
        }
        assert_eq!(from_json(&Datatype::I32, &Value::Null, Version::V2).unwrap(), [0; 4]);
    }
}
