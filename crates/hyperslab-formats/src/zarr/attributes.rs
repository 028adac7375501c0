//! Attributes between our values and JSON.
//!
//! Text is a JSON string, numbers are numbers, booleans are `true` and `false`, arrays are (nested) lists; NaN and the
//! infinities, which JSON lacks, are the strings Zarr uses for them in fill values. JSON does not say how wide a number
//! is: where reading it naturally (64-bit integers and floats, text without padding) would give another type or shape
//! than was set, the attribute [`TYPES_ATTRIBUTE`] of the same object keeps it.

use super::array_metadata::MAX_SHAPE_ATTRIBUTE;
use super::datatype::DTYPE_ATTRIBUTE;
use super::dimension_names::DIMENSIONS_ATTRIBUTE;
use super::fill_value;
use super::layout::Version;
use hyperslab_core::{Attribute, ByteOrder, Datatype, Dims, Error, ErrorKind, Result, dims};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The attribute that keeps the types of others: `{name: {"type": "<f4", "shape": [3]}}`.
pub const TYPES_ATTRIBUTE: &str = "_hyperslab_types";

/// How deep lists may nest.
const MAX_RANK: usize = hyperslab_core::MAX_RANK;

/// Whether the attribute is one of ours, which callers neither see nor set.
pub fn is_hidden(name: &str) -> bool {
    [TYPES_ATTRIBUTE, DTYPE_ATTRIBUTE, MAX_SHAPE_ATTRIBUTE, DIMENSIONS_ATTRIBUTE].contains(&name)
}

#[derive(Serialize, Deserialize)]
struct StoredType {
    #[serde(rename = "type")]
    dtype: Datatype,
    shape: Dims,
}

/// Sets one attribute among those of an object.
pub fn set(attributes: &mut Map<String, Value>, name: &str, value: &Attribute) -> Result<()> {
    if name.is_empty() || is_hidden(name) {
        return Err(Error::invalid("set attribute", format!("{name:?} is not a name an attribute can have")));
    }
    let json = to_json(value).map_err(|error| error.target(name))?;
    let natural = natural(&json).is_ok_and(|back| same(&back, value));
    let mut types = match attributes.remove(TYPES_ATTRIBUTE) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    types.remove(name);
    if !natural {
        types.insert(name.into(), json!(StoredType { dtype: value.dtype.clone(), shape: value.shape.clone() }));
    }
    attributes.insert(name.into(), json);
    if !types.is_empty() {
        attributes.insert(TYPES_ATTRIBUTE.into(), Value::Object(types));
    }
    Ok(())
}

/// Reads one attribute of an object.
pub fn get(attributes: &Map<String, Value>, name: &str) -> Result<Attribute> {
    let value = attributes
        .get(name)
        .filter(|_| !is_hidden(name))
        .ok_or_else(|| Error::new(ErrorKind::NotFound, "read attribute", "there is no such attribute").target(name))?;
    let kept = attributes
        .get(TYPES_ATTRIBUTE)
        .and_then(|types| types.get(name))
        .and_then(|kept| serde_json::from_value::<StoredType>(kept.clone()).ok());
    // Another program may have changed the value since; what no longer fits is read naturally.
    match kept.and_then(|kept| typed(value, &kept)) {
        Some(attribute) => Ok(attribute),
        None => natural(value).map_err(|error| error.target(name)),
    }
}

/// Names of the attributes, sorted.
pub fn names(attributes: &Map<String, Value>) -> Vec<String> {
    let mut names: Vec<String> = attributes.keys().filter(|name| !is_hidden(name)).cloned().collect();
    names.sort();
    names
}

fn same(a: &Attribute, b: &Attribute) -> bool {
    a.dtype == b.dtype && a.shape == b.shape && a.data == b.data
}

fn to_json(value: &Attribute) -> Result<Value> {
    value.check()?;
    let size = (value.dtype.size() as usize).max(1);
    if let (Datatype::VariableString, Some(texts)) = (&value.dtype, value.texts()) {
        let items = texts.into_iter().map(|text| element_to_json(&value.dtype, text)).collect::<Result<Vec<_>>>()?;
        return Ok(nest(&value.shape, items));
    }
    let items = value.data.chunks_exact(size).map(|element| element_to_json(&value.dtype, element));
    let items = items.collect::<Result<Vec<_>>>()?;
    Ok(nest(&value.shape, items))
}

/// Elements in row-major order as nested lists.
fn nest(shape: &[u64], mut items: Vec<Value>) -> Value {
    let Some((outer, rest)) = shape.split_first() else { return items.pop().unwrap_or(Value::Null) };
    let each = items.len() / (*outer).max(1) as usize;
    let mut items = items.into_iter();
    (0..*outer).map(|_| nest(rest, items.by_ref().take(each).collect())).collect()
}

fn element_to_json(dtype: &Datatype, element: &[u8]) -> Result<Value> {
    let no_form = |why: &str| {
        Err(Error::unsupported("set attribute", format!("{why} has no form in JSON"))
            .hint("use numbers, booleans or UTF-8 text"))
    };
    match dtype {
        Datatype::Integer { .. } | Datatype::Float { .. } | Datatype::Bool => {
            fill_value::to_json(dtype, element, Version::V3)
        }
        Datatype::FixedString(_) | Datatype::VariableString => match std::str::from_utf8(element) {
            Ok(text) if !text.trim_end_matches('\0').contains('\0') => Ok(json!(text.trim_end_matches('\0'))),
            _ => no_form("text that is not UTF-8 or has NUL inside"),
        },
        Datatype::Opaque(_) => no_form("a value of opaque bytes"),
        Datatype::Compound(_) => no_form("a compound"),
    }
}

/// The elements of (nested) lists in row-major order, and their shape; `None` when the lists are ragged or too deep.
fn flatten(value: &Value) -> Option<(Dims, Vec<&Value>)> {
    let mut shape = Dims::new();
    let mut items = vec![value];
    while let Some(Value::Array(first)) = items.first() {
        if shape.len() == MAX_RANK {
            return None;
        }
        let extent = first.len();
        let lists = items.iter().map(|item| item.as_array().filter(|list| list.len() == extent));
        items = lists.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
        shape.push(extent as u64);
    }
    (!items.iter().any(|item| item.is_array())).then_some((shape, items))
}

/// What a JSON value is without further knowledge.
fn natural(value: &Value) -> Result<Attribute> {
    let no_form = || {
        Error::unsupported("read attribute", "the value is null, an object, or a list of unlike things")
            .hint("text, numbers, booleans and regular lists of those can be read")
    };
    let (shape, items) = flatten(value).ok_or_else(no_form)?;
    let all = |test: fn(&Value) -> bool| items.iter().all(|item| test(item));
    let mut data = Vec::new();
    let dtype = if items.is_empty() {
        Datatype::F64
    } else if all(Value::is_i64) {
        items.iter().filter_map(|item| item.as_i64()).for_each(|n| data.extend(n.to_ne_bytes()));
        Datatype::I64
    } else if all(Value::is_u64) {
        items.iter().filter_map(|item| item.as_u64()).for_each(|n| data.extend(n.to_ne_bytes()));
        Datatype::Integer { size: 8, signed: false, order: ByteOrder::NATIVE }
    } else if all(Value::is_number) {
        items.iter().filter_map(|item| item.as_f64()).for_each(|n| data.extend(n.to_ne_bytes()));
        Datatype::F64
    } else if all(Value::is_boolean) {
        data.extend(items.iter().map(|item| u8::from(item.as_bool() == Some(true))));
        Datatype::Bool
    } else if all(Value::is_string) {
        let texts: Vec<&str> = items.iter().filter_map(|item| item.as_str()).collect();
        let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0).max(1);
        let size = u32::try_from(longest).map_err(|_| no_form())?;
        for text in texts {
            data.extend(text.as_bytes());
            data.resize(data.len() + longest - text.len(), 0);
        }
        Datatype::FixedString(size)
    } else {
        return Err(no_form());
    };
    Ok(Attribute { dtype, shape, data })
}

/// A JSON value as the type and shape it was set with; `None` when it does not fit exactly.
fn typed(value: &Value, kept: &StoredType) -> Option<Attribute> {
    // Empty lists end the nesting early, so the number of elements decides, not the lists.
    let (shape, items) = flatten(value)?;
    if shape != kept.shape && !(items.is_empty() && dims::element_count(&kept.shape).ok()? == 0) {
        return None;
    }
    let mut data = Vec::new();
    for item in items {
        match (&kept.dtype, item) {
            (Datatype::FixedString(size), Value::String(text)) if text.len() <= *size as usize => {
                data.extend(text.as_bytes());
                data.resize(data.len() + *size as usize - text.len(), 0);
            }
            (Datatype::VariableString, Value::String(text)) if !text.contains('\0') => {
                data.extend(text.as_bytes());
                data.push(0);
            }
            (Datatype::Integer { .. } | Datatype::Float { .. } | Datatype::Bool, _) => {
                data.extend(fill_value::from_json(&kept.dtype, item, Version::V3).ok()?);
            }
            _ => return None,
        }
    }
    Some(Attribute { dtype: kept.dtype.clone(), shape: kept.shape.clone(), data })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn round_trip(value: &Attribute) -> Map<String, Value> {
        let mut attributes = Map::new();
        set(&mut attributes, "x", value).unwrap();
        let text = serde_json::to_string(&attributes).unwrap();
        let attributes: Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(&get(&attributes, "x").unwrap(), value, "{text}");
        assert_eq!(names(&attributes), ["x"]);
        attributes
    }

    fn list(dtype: &str, shape: &[u64], data: &[u8]) -> Attribute {
        Attribute { dtype: dtype.parse().unwrap(), shape: shape.into(), data: data.to_vec() }
    }

    #[test]
    fn natural_values_need_no_side_note() {
        for value in [Attribute::text("hé"), Attribute::text(""), Attribute::integer(-3), Attribute::float(0.1)] {
            assert_eq!(round_trip(&value).len(), 1);
        }
        assert_eq!(round_trip(&list("|b1", &[2], &[1, 0]))["x"], json!([true, false]));
        assert_eq!(round_trip(&list("|S2", &[2], b"abc\0"))["x"], json!(["ab", "c"]));
    }

    #[test]
    fn other_types_and_shapes_are_kept() {
        let floats: Vec<u8> = [1.5f32, f32::NAN, f32::NEG_INFINITY].iter().flat_map(|v| v.to_be_bytes()).collect();
        assert_eq!(round_trip(&list(">f4", &[3], &floats))["x"], json!([1.5, "NaN", "-Infinity"]));
        round_trip(&list("|i1", &[2, 2], &[1, 255, 3, 128]));
        round_trip(&list("|u1", &[], &[200]));
        round_trip(&list("<f2", &[], &[0, 0x3c]));
        round_trip(&list("|S8", &[], b"ab\0\0\0\0\0\0"));
        round_trip(&list("<i4", &[0], &[]));
        round_trip(&list("<i4", &[2, 0], &[]));
        round_trip(&list("<u8", &[1], &[255; 8]));
        assert_eq!(round_trip(&list("string", &[2], "été\0\0".as_bytes()))["x"], json!(["été", ""]));
        round_trip(&list("string", &[], b"\0"));
        round_trip(&list("string", &[0], b""));
    }

    #[test]
    fn a_value_changed_elsewhere_is_read_as_it_is_now() {
        let mut attributes = round_trip(&list("|u1", &[], &[200]));
        attributes.insert("x".into(), json!(70000));
        assert_eq!(get(&attributes, "x").unwrap(), Attribute::integer(70000));
    }

    #[test]
    fn what_has_no_form_is_refused() {
        let mut attributes = Map::new();
        for value in [list("|V2", &[], b"ab"), list("|S2", &[], &[0xff, 0]), list("|S3", &[], b"a\0b")] {
            assert!(set(&mut attributes, "x", &value).is_err());
        }
        assert!(set(&mut attributes, "x", &list("<i4", &[2], &[0; 4])).is_err());
        assert!(set(&mut attributes, TYPES_ATTRIBUTE, &Attribute::integer(1)).is_err());
        assert!(attributes.is_empty());
        for value in [json!(null), json!({"a": 1}), json!([1, "a"]), json!([[1], [2, 3]]), json!([1, [2]])] {
            attributes.insert("y".into(), value.clone());
            assert!(get(&attributes, "y").is_err(), "{value}");
        }
        assert_eq!(get(&attributes, "none").unwrap_err().kind(), ErrorKind::NotFound);
    }
}
