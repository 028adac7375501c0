//! Options in the words of Python's libraries.

use hyperslab_core::{Dims, Filter, Shapes, StackElement};

/// The shapes that an option names; none if it is absent.
pub(crate) fn shapes(format: &StackElement, key: &str) -> Vec<Dims> {
    format.shapes(key).ok().flatten().as_ref().map(Shapes::all).unwrap_or_default().to_vec()
}

/// A shape as a keyword with a tuple; of several, one for each number of dimensions.
pub(crate) fn tuples(name: &str, shapes: &[Dims]) -> String {
    let tuple = |shape: &Dims| {
        let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
        if let [one] = extents.as_slice() { format!("({one},)") } else { format!("({})", extents.join(", ")) }
    };
    match shapes {
        [] => String::new(),
        [shape] => format!(", {name}={}", tuple(shape)),
        several => {
            let cases = several.iter().map(|shape| format!("{}: {}", shape.len(), tuple(shape)));
            format!(", {name}={{{}}}[len(shape)]", cases.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Level and shuffle, if filters are what these libraries have one word for.
pub(crate) fn zlib(filters: &[Filter]) -> Option<(u8, bool)> {
    match filters {
        [Filter::Deflate(level)] => Some((*level, false)),
        [Filter::Shuffle, Filter::Deflate(level)] => Some((*level, true)),
        _ => None,
    }
}
