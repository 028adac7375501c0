//! Sizes in binary units, read and written.

use crate::{Error, Result};

const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

/// Parses `4096`, `64K`, `1MiB`, `2 GB`: units are powers of 1024, as storage benchmarks use them.
pub fn parse_size(text: &str) -> Result<u64> {
    let bad = || {
        Error::invalid("parse size", format!("{text:?} is not a size")).hint("use 4096, 64KiB, 1MiB, 2GiB and the like")
    };
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let number: u64 = number.parse().map_err(|_| bad())?;
    let power = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return Err(bad()),
    };
    number.checked_mul(1 << (10 * power)).ok_or_else(bad)
}

/// `1.50 GiB`, for people.
pub fn display_size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.2} {}", UNITS[unit]) }
}

/// The shortest exact form: `1MiB`, `1500`.
pub fn exact_size(bytes: u64) -> String {
    let power = if bytes == 0 { 0 } else { (bytes.trailing_zeros() / 10).min(4) };
    let unit = if power == 0 { "" } else { UNITS[power as usize] };
    format!("{}{unit}", bytes >> (10 * power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_round_trip() {
        for (text, bytes) in
            [("0", 0), ("4096", 4096), ("1MiB", 1 << 20), ("64k", 65536), ("2 GB", 2 << 30), ("3T", 3 << 40)]
        {
            assert_eq!(parse_size(text).unwrap(), bytes);
            assert_eq!(parse_size(&exact_size(bytes)).unwrap(), bytes);
        }
        for text in ["", "x", "-1", "1.5M", "99999999999T", "5 furlongs"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(display_size(1536), "1.50 KiB");
    }
}
