//! Names that the conventions keep to themselves, and names of variables and dimensions that would clash.

/// Prefix of a variable that has the name of a dimension, and is not its coordinate variable.
const NOT_COORDINATE: &str = "_nc4_non_coord_";
/// Beginning of the attribute NAME of a dimension without variable.
const WITHOUT_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable.";

/// Attribute of the root: what wrote the file.
pub(super) const PROPERTIES: &str = "_NCProperties";
/// Attribute of the root: the file is of the classic model.
pub(super) const STRICT: &str = "_nc3_strict";
/// Attribute of a scale: the number of the dimension.
pub(super) const NUMBER: &str = "_Netcdf4Dimid";
/// Attribute of a variable: the numbers of its dimensions.
pub(super) const COORDINATES: &str = "_Netcdf4Coordinates";
/// Attribute of a variable: its fill value.
pub(super) const FILL: &str = "_FillValue";
/// Attribute of a variable of bytes: they are truth values.
pub(super) const DTYPE: &str = "dtype";

/// Attributes that describe dimensions, wherever they are.
const OF_DIMENSIONS: [&str; 4] = [NUMBER, COORDINATES, "DIMENSION_LIST", "REFERENCE_LIST"];
/// Attributes that make a dataset a dimension scale; on others they mean nothing.
const OF_SCALES: [&str; 2] = ["CLASS", "NAME"];

/// Whether an attribute of an object belongs to the conventions.
pub(super) fn is_reserved(object: &str, attribute: &str, is_scale: bool) -> bool {
    OF_DIMENSIONS.contains(&attribute)
        || (is_scale && OF_SCALES.contains(&attribute))
        || (object.is_empty() && (attribute == PROPERTIES || attribute == STRICT))
}

/// The group of an object, empty for the root, and its name there.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The path of `name` in a group.
pub(super) fn join(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") }
}

/// Where a variable is stored whose name a dimension has.
pub(super) fn beside_dimension(path: &str) -> String {
    let (group, name) = split(path);
    join(group, &format!("{NOT_COORDINATE}{name}"))
}

/// The path of a variable by that of its dataset.
pub(super) fn of_dataset(path: &str) -> String {
    let (group, name) = split(path);
    name.strip_prefix(NOT_COORDINATE)
        .filter(|name| !name.is_empty())
        .map_or_else(|| path.into(), |name| join(group, name))
}

/// The attribute NAME of a dimension without variable.
pub(super) fn label(len: u64) -> String {
    format!("{WITHOUT_VARIABLE}{len:10}")
}

/// Whether the attribute NAME of a scale says that it is no variable.
pub(super) fn is_without_variable(label: &str) -> bool {
    label.starts_with(WITHOUT_VARIABLE)
}

/// Whether objects of `group` may use a dimension that belongs to group `home`: their own, or one above.
pub(super) fn in_scope(home: &str, group: &str) -> bool {
    home.is_empty() || group == home || group.strip_prefix(home).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_scopes() {
        assert_eq!(beside_dimension("g/h/time"), "g/h/_nc4_non_coord_time");
        assert_eq!(of_dataset("g/h/_nc4_non_coord_time"), "g/h/time");
        assert_eq!(of_dataset("g/time"), "g/time");
        assert_eq!(of_dataset("_nc4_non_coord_"), "_nc4_non_coord_");
        assert_eq!(label(12).len(), WITHOUT_VARIABLE.len() + 10);
        assert!(is_without_variable(&label(1 << 40)));
        assert!(in_scope("", "a/b") && in_scope("a", "a/b") && in_scope("a", "a"));
        assert!(!in_scope("a", "") && !in_scope("a", "ab") && !in_scope("a/b", "a"));
        assert!(is_reserved("x", "CLASS", true) && !is_reserved("x", "CLASS", false));
        assert!(is_reserved("", PROPERTIES, false) && !is_reserved("x", PROPERTIES, false));
    }
}
