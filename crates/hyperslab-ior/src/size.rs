//! Sizes and whole numbers as IOR writes them.

use hyperslab_core::{Error, Result};

/// Parses `8`, `4k`, `1m`, `2g`, `1t`, `1p`: powers of 1024. What follows the letter is `b` or `ib`, or nothing.
pub fn parse(text: &str) -> Result<u64> {
    let bad = || Error::invalid("parse size", format!("{text:?} is not a size")).hint("use 8, 4k, 1m, 2g, 1t or 1p");
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let number: u64 = number.parse().map_err(|_| bad())?;
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit);
    let power = match unit {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(bad()),
    };
    number.checked_mul(1 << (10 * power)).ok_or_else(bad)
}

/// Parses a whole number that may be negative; units are powers of 1024 as in sizes.
pub fn parse_integer(text: &str) -> Result<i64> {
    let bad = || Error::invalid("parse number", format!("{text:?} is not a whole number"));
    let trimmed = text.trim();
    let (negative, digits) = match trimmed.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, trimmed),
    };
    let value = i64::try_from(parse(digits).map_err(|_| bad())?).map_err(|_| bad())?;
    Ok(if negative { -value } else { value })
}

/// As IOR shows sizes: whole where they are, and bytes below a mebibyte.
pub fn display(bytes: u64) -> String {
    let unit = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")].into_iter().find(|(unit, _)| bytes >= *unit);
    match unit {
        Some((unit, name)) if bytes.is_multiple_of(unit) => format!("{} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.2} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in
            [("8", 8), ("4k", 4096), ("4K", 4096), ("1m", 1 << 20), ("2g", 2 << 30), (" 3 t ", 3 << 40)]
        {
            assert_eq!(parse(text).unwrap(), bytes);
        }
        assert_eq!((parse("1p").unwrap(), parse("1MiB").unwrap(), parse("1kb").unwrap()), (1 << 50, 1 << 20, 1024));
        for text in ["", "m", "-1", "1.5m", "4q", "1mm", "99999p", "1 m m"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert_eq!((parse_integer("-7").unwrap(), parse_integer("2k").unwrap()), (-7, 2048));
        assert!(parse_integer("--1").is_err() && parse_integer("").is_err());
    }

    #[test]
    fn sizes_are_shown_as_ior_shows_them() {
        for (bytes, text) in
            [(8, "8 bytes"), (262_144, "262144 bytes"), (1 << 20, "1 MiB"), (3 << 19, "1.50 MiB"), (5 << 40, "5 TiB")]
        {
            assert_eq!(display(bytes), text);
        }
    }
}
