//! Licence expressions: `(MIT OR Apache-2.0) AND Unicode-3.0`, and the older `MIT/Apache-2.0`.

/// Whether allowed licences are enough. What cannot be understood is not allowed.
pub fn is_allowed(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    alternatives(&mut rest, allowed).is_some_and(|met| met && rest.is_empty())
}

/// `A OR B`, which binds less than `AND`.
fn alternatives(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut met = all(words, allowed)?;
    while take(words, "OR") {
        met |= all(words, allowed)?;
    }
    Some(met)
}

/// `A AND B`.
fn all(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let mut met = one(words, allowed)?;
    while take(words, "AND") {
        met &= one(words, allowed)?;
    }
    Some(met)
}

/// A licence, perhaps with an exception, which only ever allows more; or an expression in parentheses.
fn one(words: &mut &[&str], allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    if take(words, "(") {
        let met = alternatives(words, allowed)?;
        return take(words, ")").then_some(met);
    }
    let (name, rest) = words.split_first()?;
    *words = rest;
    if take(words, "WITH") {
        *words = words.split_first()?.1;
    }
    Some(allowed(name))
}

fn take(words: &mut &[&str], word: &str) -> bool {
    match words.split_first() {
        Some((first, rest)) if *first == word => {
            *words = rest;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated() {
        let allowed = |name: &str| ["MIT", "Apache-2.0", "Zlib"].contains(&name);
        for (expression, met) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0 AND MIT", false),
            ("(MIT OR GPL-3.0) AND Zlib", true),
            ("MIT OR GPL-3.0 AND GPL-2.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("(MIT OR", false),
            ("MIT MIT", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), met, "{expression}");
        }
    }
}
