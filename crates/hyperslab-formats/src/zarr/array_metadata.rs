//! Metadata documents of arrays: encoding and decoding.

use super::codecs::{Pipeline, name_and_configuration};
use super::datatype::{self, DTYPE_ATTRIBUTE};
use super::dimension_names::{self, DIMENSION_NAMES};
use super::fill_value;
use super::layout::{ArrayLayout, ChunkKeys, Sharding, Version};
use hyperslab_core::{ByteOrder, Datatype, Dims, Error, ErrorKind, Result};
use serde_json::{Map, Value, json};

/// Attribute for the maximum shape: a list of extents and nulls (unlimited), or null for fixed. Arrays without it, such
/// as those of other programs, are unlimited.
pub const MAX_SHAPE_ATTRIBUTE: &str = "_hyperslab_max_shape";

/// The codec of strings of variable length.
pub const VLEN_UTF8: &str = "vlen-utf8";

fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, "read zarr metadata", message)
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("read zarr metadata", message)
}

/// Encodes a layout: the document, and the attributes that complete it.
pub fn write(layout: &ArrayLayout) -> Result<(Value, Map<String, Value>)> {
    let stored = datatype::to_json(&layout.dtype, layout.version);
    // A disguised compound is raw bytes to Zarr, and so is its fill value: base64 either way.
    let fill = fill_value::to_json(&layout.dtype, &layout.fill, layout.version)?;
    let mut attributes = Map::new();
    if stored.disguised {
        let dtype = serde_json::to_value(&layout.dtype).map_err(|e| corrupt(e.to_string()))?;
        attributes.insert(DTYPE_ATTRIBUTE.into(), dtype);
    }
    match &layout.max_shape {
        Some(max) if max.iter().all(Option::is_none) => {}
        other => {
            attributes.insert(MAX_SHAPE_ATTRIBUTE.into(), json!(other));
        }
    }
    let separator = layout.keys.separator.to_string();
    let shape = layout.shape.as_slice();
    let mut document = match layout.version {
        Version::V2 => {
            let (mut filters, compressor) = layout.pipeline.to_v2();
            if layout.dtype == Datatype::VariableString {
                filters = json!([{"id": VLEN_UTF8}]);
            }
            json!({
                "zarr_format": 2,
                "shape": shape,
                "chunks": layout.file.as_slice(),
                "dtype": stored.name,
                "compressor": compressor,
                "fill_value": fill,
                "order": if layout.column_major { "F" } else { "C" },
                "filters": filters,
                "dimension_separator": separator,
            })
        }
        Version::V3 => json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": stored.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": layout.file.as_slice()}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": separator}},
            "fill_value": fill,
            "codecs": codecs_v3(layout, stored.order),
            "attributes": {},
            "storage_transformers": [],
        }),
    };
    dimension_names::write(&layout.dims, &mut document, &mut attributes);
    Ok((document, attributes))
}

fn codecs_v3(layout: &ArrayLayout, order: Option<ByteOrder>) -> Vec<Value> {
    let bytes = match order {
        None if layout.dtype == Datatype::VariableString => json!({"name": VLEN_UTF8}),
        None => json!({"name": "bytes"}),
        Some(ByteOrder::Little) => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        Some(ByteOrder::Big) => json!({"name": "bytes", "configuration": {"endian": "big"}}),
    };
    let mut codecs = vec![bytes];
    codecs.extend(layout.pipeline.to_v3(layout.dtype.size()));
    let Some(sharding) = &layout.sharding else { return codecs };
    let mut index_codecs = vec![json!({"name": "bytes", "configuration": {"endian": "little"}})];
    if sharding.index_crc32c {
        index_codecs.push(json!({"name": "crc32c"}));
    }
    vec![json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": sharding.chunk.as_slice(),
        "codecs": codecs,
        "index_codecs": index_codecs,
        "index_location": if sharding.index_at_end { "end" } else { "start" },
    }})]
}

/// Decodes and validates a layout from a document and its attributes.
pub fn read(version: Version, document: &Value, attributes: &Map<String, Value>) -> Result<ArrayLayout> {
    let mut layout = match version {
        Version::V2 => read_v2(document)?,
        Version::V3 => read_v3(document)?,
    };
    if let Some(kept) = attributes.get(DTYPE_ATTRIBUTE) {
        let dtype: Datatype = serde_json::from_value(kept.clone())
            .map_err(|e| corrupt(format!("attribute {DTYPE_ATTRIBUTE} is not a datatype: {e}")))?;
        if dtype.size() != layout.dtype.size() || !matches!(layout.dtype, Datatype::Opaque(_)) {
            let have = &layout.dtype;
            return Err(corrupt(format!("attribute {DTYPE_ATTRIBUTE} says {dtype}, the array is {have}")));
        }
        layout.dtype = dtype;
    }
    let rank = layout.shape.len();
    layout.max_shape = match attributes.get(MAX_SHAPE_ATTRIBUTE) {
        None => Some(vec![None; rank]),
        Some(kept) => serde_json::from_value::<Option<Vec<Option<u64>>>>(kept.clone())
            .ok()
            .filter(|max| max.as_ref().is_none_or(|max| max.len() == rank))
            .ok_or_else(|| corrupt(format!("attribute {MAX_SHAPE_ATTRIBUTE} is {kept}")))?,
    };
    layout.dims = dimension_names::read(rank, document, attributes);
    layout.check()?;
    Ok(layout)
}

fn extents(value: Option<&Value>, what: &str) -> Result<Dims> {
    value
        .and_then(Value::as_array)
        .and_then(|list| list.iter().map(Value::as_u64).collect::<Option<Dims>>())
        .filter(|extents| extents.len() <= hyperslab_core::MAX_RANK)
        .ok_or_else(|| corrupt(format!("{what} is not a list of up to {} extents", hyperslab_core::MAX_RANK)))
}

fn separator(value: Option<&Value>, default: char) -> Result<char> {
    match value.map(Value::as_str) {
        None => Ok(default),
        Some(Some("/")) => Ok('/'),
        Some(Some(".")) => Ok('.'),
        Some(_) => Err(corrupt("the separator of chunk keys is neither / nor .")),
    }
}

fn read_v2(document: &Value) -> Result<ArrayLayout> {
    let null = &Value::Null;
    let field = |key: &str| document.get(key).unwrap_or(null);
    let (dtype, filters) = match strings_v2(field("dtype"), field("filters")) {
        Some(filters) => (Datatype::VariableString, filters),
        None => (datatype::from_v2(field("dtype"))?, field("filters").clone()),
    };
    let column_major = match field("order").as_str() {
        Some("C") => false,
        Some("F") => true,
        _ => return Err(corrupt("the order is neither C nor F")),
    };
    Ok(ArrayLayout {
        version: Version::V2,
        fill: fill_value::from_json(&dtype, field("fill_value"), Version::V2)?,
        dtype,
        shape: extents(document.get("shape"), "shape")?,
        max_shape: None,
        file: extents(document.get("chunks"), "chunks")?,
        sharding: None,
        column_major,
        pipeline: Pipeline::from_v2(&filters, field("compressor"))?,
        keys: ChunkKeys { prefixed: false, separator: separator(document.get("dimension_separator"), '.')? },
        dims: None,
    })
}

/// What follows the codec of strings in version 2's filters, if that is what they begin with.
fn strings_v2(dtype: &Value, filters: &Value) -> Option<Value> {
    let (first, rest) = filters.as_array()?.split_first()?;
    let strings = dtype.as_str() == Some("|O") && first.get("id").and_then(Value::as_str) == Some(VLEN_UTF8);
    strings.then(|| Value::from(rest))
}

const KNOWN_V3: [&str; 12] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "storage_transformers",
    DIMENSION_NAMES,
    "consolidated_metadata",
];

fn read_v3(document: &Value) -> Result<ArrayLayout> {
    let object = document.as_object().ok_or_else(|| corrupt("the document is no object"))?;
    for (key, value) in object {
        let may_skip = value.get("must_understand") == Some(&Value::Bool(false));
        if !KNOWN_V3.contains(&key.as_str()) && !may_skip {
            return Err(unsupported(format!("the array has an extension {key:?} that is not known here")));
        }
    }
    if object.get("storage_transformers").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        return Err(unsupported("the array has storage transformers"));
    }
    let part = |key: &str| object.get(key).ok_or_else(|| corrupt(format!("{key} is missing")));
    let (grid, grid_configuration) = name_and_configuration(part("chunk_grid")?)?;
    if grid != "regular" {
        return Err(unsupported(format!("chunk grid {grid:?}; only regular ones can be read")));
    }
    let (encoding, encoding_configuration) = name_and_configuration(part("chunk_key_encoding")?)?;
    let keys = match encoding {
        "default" => ChunkKeys { prefixed: true, separator: separator(encoding_configuration.get("separator"), '/')? },
        "v2" => ChunkKeys { prefixed: false, separator: separator(encoding_configuration.get("separator"), '.')? },
        other => return Err(unsupported(format!("chunk key encoding {other:?}"))),
    };
    let codecs = part("codecs")?.as_array().ok_or_else(|| corrupt("codecs are no list"))?;
    let (order, pipeline, sharding) = read_codecs(codecs)?;
    let dtype = datatype::from_v3(part("data_type")?, order)?;
    let coded_as_strings =
        codecs.first().and_then(|first| name_and_configuration(first).ok()).is_some_and(|(name, _)| name == VLEN_UTF8);
    if coded_as_strings != (dtype == Datatype::VariableString) && sharding.is_none() {
        return Err(unsupported(format!("{dtype} with the codec of strings, or strings without it")));
    }
    Ok(ArrayLayout {
        version: Version::V3,
        fill: fill_value::from_json(&dtype, part("fill_value")?, Version::V3)?,
        dtype,
        shape: extents(object.get("shape"), "shape")?,
        max_shape: None,
        file: extents(grid_configuration.get("chunk_shape"), "chunk_shape")?,
        sharding,
        column_major: false,
        pipeline,
        keys,
        dims: None,
    })
}

/// The byte order, what follows, and the shard's inside if the chunks are sharded.
fn read_codecs(codecs: &[Value]) -> Result<(Option<ByteOrder>, Pipeline, Option<Sharding>)> {
    let (first, rest) = codecs.split_first().ok_or_else(|| corrupt("the list of codecs is empty"))?;
    let (name, configuration) = name_and_configuration(first)?;
    if name != "sharding_indexed" {
        let order = byte_order(name, configuration)?;
        return Ok((order, Pipeline::from_v3(rest)?, None));
    }
    if !rest.is_empty() {
        return Err(unsupported("codecs after sharding").hint("chunks inside the shards may be compressed instead"));
    }
    let list = |key: &str| {
        configuration
            .get(key)
            .and_then(Value::as_array)
            .ok_or_else(|| corrupt(format!("{key} of the shards is no list")))
    };
    let inner = list("codecs")?;
    let (inner_first, inner_rest) = inner.split_first().ok_or_else(|| corrupt("the shards have no codecs"))?;
    let (inner_name, inner_configuration) = name_and_configuration(inner_first)?;
    if inner_name == "sharding_indexed" {
        return Err(unsupported("shards inside shards"));
    }
    let index = list("index_codecs")?.iter().map(name_and_configuration).collect::<Result<Vec<_>>>()?;
    let index_crc32c = match index.as_slice() {
        [("bytes", how)] if how.get("endian").and_then(Value::as_str) == Some("little") => false,
        [("bytes", how), ("crc32c", _)] if how.get("endian").and_then(Value::as_str) == Some("little") => true,
        _ => return Err(unsupported("an index of shards that is not little-endian with an optional crc32c")),
    };
    let index_at_end = match configuration.get("index_location").map(Value::as_str) {
        None | Some(Some("end")) => true,
        Some(Some("start")) => false,
        Some(_) => return Err(corrupt("the index of shards is neither at the start nor at the end")),
    };
    let chunk = extents(configuration.get("chunk_shape"), "chunk_shape of the shards")?;
    let order = byte_order(inner_name, inner_configuration)?;
    Ok((order, Pipeline::from_v3(inner_rest)?, Some(Sharding { chunk, index_at_end, index_crc32c })))
}

fn byte_order(name: &str, configuration: &Value) -> Result<Option<ByteOrder>> {
    if name == VLEN_UTF8 {
        return Ok(None);
    }
    if name != "bytes" {
        return Err(unsupported(format!("codec {name:?} is not known here"))
            .hint("bytes, sharding_indexed, gzip, zstd, blosc, shuffle and crc32c can be read"));
    }
    match configuration.get("endian").map(Value::as_str) {
        None | Some(None) => Ok(None),
        Some(Some("little")) => Ok(Some(ByteOrder::Little)),
        Some(Some("big")) => Ok(Some(ByteOrder::Big)),
        Some(Some(other)) => Err(corrupt(format!("the byte order is {other:?}"))),
    }
}
