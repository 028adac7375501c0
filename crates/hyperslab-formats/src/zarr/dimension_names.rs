//! Names of dimensions: `dimension_names` of version 3, and the attribute that xarray gives arrays of version 2.

use serde_json::{Map, Value, json};

/// Attribute of version 2 for the names of an array's dimensions.
pub const DIMENSIONS_ATTRIBUTE: &str = "_ARRAY_DIMENSIONS";
/// Key of version 3 for them.
pub const DIMENSION_NAMES: &str = "dimension_names";

/// Names as Zarr has them: those of an array's own group, without its path.
pub fn stored(names: Vec<String>) -> Vec<String> {
    names.into_iter().map(|name| name.rsplit('/').next().unwrap_or_default().to_owned()).collect()
}

/// Names as callers know them: `array` is the path of the array, in whose group the dimensions are.
pub fn in_group(names: Vec<String>, array: &str) -> Vec<String> {
    match array.rsplit_once('/') {
        Some((group, _)) => names.into_iter().map(|name| format!("{group}/{name}")).collect(),
        None => names,
    }
}

/// Adds names to an array's document (version 3) or attributes (version 2).
pub fn write(names: &Option<Vec<String>>, document: &mut Value, attributes: &mut Map<String, Value>) {
    let Some(names) = names else { return };
    match document["zarr_format"] == 3 {
        true => document[DIMENSION_NAMES] = json!(names),
        false => {
            attributes.insert(DIMENSIONS_ATTRIBUTE.into(), json!(names));
        }
    }
}

/// The names in an array's document or attributes: one for each of its `rank` dimensions, or none. Zarr allows nulls, empty and
/// equal names, which say nothing about dimensions: such lists count as none.
pub fn read(rank: usize, document: &Value, attributes: &Map<String, Value>) -> Option<Vec<String>> {
    let list = document.get(DIMENSION_NAMES).or_else(|| attributes.get(DIMENSIONS_ATTRIBUTE))?.as_array()?;
    let names: Vec<String> = list.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let is_name = |name: &String| !name.is_empty() && !name.contains(['/', '\0']);
    (names.len() == rank && names.iter().all(is_name)).then_some(names)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_do_not_name_every_dimension_are_none() {
        let attributes = Map::new();
        let names = |list: Value| read(2, &json!({"zarr_format": 3, DIMENSION_NAMES: list}), &attributes);
        assert_eq!(names(json!(["y", "x"])).unwrap(), ["y", "x"]);
        for list in
            [json!(["y"]), json!(["y", null]), json!(["y", ""]), json!([1, 2]), json!("yx"), json!(["a/b", "c"])]
        {
            assert_eq!(names(list.clone()), None, "{list}");
        }
        assert_eq!(read(0, &json!({}), &attributes), None);
    }

    #[test]
    fn names_belong_to_the_group_of_their_array() {
        let names = vec!["model/run/time".to_owned(), "x".to_owned()];
        assert_eq!(stored(names.clone()), ["time", "x"]);
        assert_eq!(in_group(stored(names), "model/run/t"), ["model/run/time", "model/run/x"]);
        assert_eq!(in_group(vec!["x".into()], "t"), ["x"]);
    }
}
