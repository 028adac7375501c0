//! What a file says of its objects, as JSON.

use hyperslab::{Attribute, Datatype, File, OpenMode, Result};
use serde_json::{Value, json};

/// Opens a file on the stack that is detected, by the direct path where its format has one.
pub(crate) fn open_detected(path: &str) -> Result<File> {
    let plain = hyperslab::detect_stack(path.as_ref())?;
    let mut direct = plain.clone();
    direct.format.options.push(("plane".into(), "on".into()));
    File::open_with(path, &direct.to_string(), OpenMode::Read)
        .or_else(|_| File::open_with(path, &plain.to_string(), OpenMode::Read))
}

/// Describes the root (`""`), a group or an array.
pub(crate) fn object(file: &File, name: &str) -> Result<Value> {
    let mut said = json!({ "attributes": attributes(file, name)? });
    if name.is_empty() {
        said["stack"] = file.stack().to_string().into();
        said["arrays"] = file.arrays()?.into();
        said["groups"] = file.container().groups()?.into();
    } else if let Ok(array) = file.array(name) {
        let spec = array.spec()?;
        said["dtype"] = serde_json::to_value(&spec.dtype).unwrap_or_default();
        said["shape"] = spec.shape.to_vec().into();
        said["chunk"] = spec.chunk.map(|chunk| chunk.to_vec()).into();
        said["max_shape"] = spec.max_shape.into();
        said["dims"] = spec.dims.into();
        said["fill_value"] = spec.fill_value.as_deref().map(digits).into();
        said["filters"] = serde_json::to_value(&spec.filters).unwrap_or_default();
    }
    Ok(said)
}

/// All attributes that can be read; those of other kinds are left out.
fn attributes(file: &File, name: &str) -> Result<Value> {
    let mut said = serde_json::Map::new();
    for attribute in file.container().attributes(name)? {
        if let Ok(value) = file.attribute(name, &attribute) {
            said.insert(attribute, value_of(&value));
        }
    }
    Ok(said.into())
}

/// Text as text; anything else as type, shape and bytes in hexadecimal digits.
fn value_of(value: &Attribute) -> Value {
    if let Some(text) = value.as_text() {
        return text.into();
    }
    if let (Datatype::VariableString, Some(texts)) = (&value.dtype, value.texts()) {
        let texts: Vec<_> = texts.into_iter().map(String::from_utf8_lossy).collect();
        return json!({ "texts": texts, "shape": value.shape.to_vec() });
    }
    json!({ "dtype": value.dtype, "shape": value.shape.to_vec(), "data": digits(&value.data) })
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
