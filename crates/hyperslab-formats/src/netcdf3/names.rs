//! Names of arrays as names of variables, and names that the format keeps to itself.
//!
//! A variable's name may not have a slash, begin with punctuation or end with a space. Such characters become `.` and `_`, and
//! the array's own name is kept in the attribute [`NAME`] of the variable.

use hyperslab_core::{Error, Result};

/// Attribute of a variable: the name of the array, where it is no name of a variable.
pub(crate) const NAME: &str = "hyperslab_name";
/// Attribute of a variable: the datatype of the array, where it does not follow from the variable.
pub(crate) const DTYPE: &str = "hyperslab_dtype";
/// Attribute of a variable: its fill value.
pub(crate) const FILL: &str = "_FillValue";

/// What other programs accept.
const LONGEST: usize = 256;

/// Refuses paths that are not `a/b/c`.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let bad_part = |part: &str| part.is_empty() || part == "." || part == ".." || part.contains('\0');
    if name.split('/').any(bad_part) {
        return Err(Error::invalid("check name", format!("{name:?} is not a path of the form a/b/c"))
            .hint("use names like temperature or group/temperature"));
    }
    Ok(())
}

fn may_begin(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

fn may_follow(c: char) -> bool {
    !c.is_ascii_control() && c != '/'
}

/// Whether a name may stand in the file as it is.
pub(crate) fn is_plain(name: &str) -> bool {
    name.len() <= LONGEST
        && name.chars().next().is_some_and(may_begin)
        && name.chars().all(may_follow)
        && !name.ends_with(' ')
}

/// The name of the variable for an array; `is_taken` tells names that others have.
pub(crate) fn stored_name(name: &str, is_taken: impl Fn(&str) -> bool) -> Result<String> {
    let mut stored = String::with_capacity(name.len());
    if !name.starts_with(may_begin) {
        stored.push('_');
    }
    stored.extend(name.chars().map(|c| if c == '/' { '.' } else { c }).map(|c| if may_follow(c) { c } else { '_' }));
    if stored.ends_with(' ') {
        stored.push('_');
    }
    stored = unused(stored, is_taken);
    if stored.len() > LONGEST {
        let message = format!("the name of a variable has at most {LONGEST} bytes, {stored:?} has {}", stored.len());
        return Err(Error::unsupported("create", message).hint("use a shorter name"));
    }
    Ok(stored)
}

/// `name`, or with `_2`, `_3` and so on where that is taken.
pub(crate) fn unused(name: String, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(&name) {
        return name;
    }
    (2u64..).map(|n| format!("{name}_{n}")).find(|name| !is_taken(name)).unwrap_or(name)
}

/// Refuses names that an attribute cannot have.
pub(crate) fn check_attribute_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("set attribute", "an attribute needs a name"));
    }
    if name == NAME || name == DTYPE {
        return Err(Error::unsupported("set attribute", format!("{name} is kept by the format itself")));
    }
    if !is_plain(name) {
        return Err(Error::unsupported("set attribute", format!("{name:?} is no name in a classic NetCDF file"))
            .hint("begin with a letter, digit or underscore, leave out slashes and control characters"));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_become_plain_and_stay_apart() {
        let long = "n".repeat(256);
        for (name, stored) in [
            ("plain", "plain"),
            ("g/h/été x", "g.h.été x"),
            ("..x", "_..x"),
            ("tab\there", "tab_here"),
            ("ends ", "ends _"),
            ("q?*[x]", "q?*[x]"),
            (&long, &long),
        ] {
            assert_eq!(stored_name(name, |_| false).unwrap(), stored);
            assert!(is_plain(stored));
        }
        assert_eq!(stored_name("a/b", |taken| ["a.b", "a.b_2"].contains(&taken)).unwrap(), "a.b_3");
        assert!(stored_name(&"n".repeat(257), |_| false).is_err());
        for bad in ["", "/a", "a/", "a//b", "..", "a/../b", "a\0"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert!(["", NAME, DTYPE, "a/b", " a", "a ", "\n"].iter().all(|bad| check_attribute_name(bad).is_err()));
        assert!(["_x", "With Space", "été", "9", FILL].iter().all(|good| check_attribute_name(good).is_ok()));
    }
}
