//! Sizes in binary units, rates and times, read and written.

use crate::{Error, Result};
use std::time::Duration;

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

/// Parses `200MB/s`, `1GiB/s`, `4096/s`: a size per second, in bytes.
pub fn parse_rate(text: &str) -> Result<u64> {
    let size = text.trim().strip_suffix("/s").and_then(|size| parse_size(size).ok());
    size.ok_or_else(|| {
        Error::invalid("parse rate", format!("{text:?} is not a rate")).hint("use 200MB/s, 1GiB/s and the like")
    })
}

/// Parses `2ms`, `1.5 s`, `50us`, `100ns`, `2min`, and `0`. Other numbers need a unit.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let bad = || {
        Error::invalid("parse time", format!("{text:?} is not a time")).hint("use 50us, 2ms, 1.5s, 2min and the like")
    };
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let number: f64 = number.parse().map_err(|_| bad())?;
    let seconds = match unit.trim() {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "" if number == 0.0 => 0.0,
        _ => return Err(bad()),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| bad())
}

/// Seconds since 1970 as `2026-11-19T02:09:24Z`. Times before 1970 are shown as that.
pub fn iso_time(seconds_since_1970: f64) -> String {
    let seconds = seconds_since_1970.clamp(0.0, 253_402_300_799.0) as i64;
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    // The Gregorian calendar repeats every 400 years; years begin in March, so that the leap day comes last.
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Seconds since 1970 of a time such as `2026-11-19T02:09:24Z`; `None` if it is none.
pub fn parse_iso_time(text: &str) -> Option<f64> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<i64>().ok());
    let mut next = |range: std::ops::RangeInclusive<i64>| numbers.next().flatten().filter(|n| range.contains(n));
    let (year, month, day) = (next(1..=9999)?, next(1..=12)?, next(1..=31)?);
    let (hour, minute, second) = (next(0..=23)?, next(0..=59)?, next(0..=60)?);
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second) as f64)
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
    fn times_are_written_and_read() {
        for (seconds, text) in [
            (0.0, "1970-01-01T00:00:00Z"),
            (951_782_400.0, "2000-02-29T00:00:00Z"),
            (1_795_054_164.0, "2026-11-19T02:09:24Z"),
            (4_102_444_799.0, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!((iso_time(seconds).as_str(), parse_iso_time(text)), (text, Some(seconds)));
        }
        assert_eq!(parse_iso_time("yesterday"), None);
        assert_eq!(parse_iso_time("2026-13-01T00:00:00Z"), None);
        assert_eq!(iso_time(-1.0), "1970-01-01T00:00:00Z");
        assert_eq!(iso_time(f64::INFINITY), "9999-12-31T23:59:59Z");
    }

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

    #[test]
    fn rates_are_sizes_per_second() {
        assert_eq!(parse_rate("200MB/s").unwrap(), 200 << 20);
        assert_eq!(parse_rate(" 1 GiB/s").unwrap(), 1 << 30);
        assert_eq!(parse_rate("4096/s").unwrap(), 4096);
        for text in ["", "/s", "200MB", "200MB/h", "x/s", "1.5GB/s"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_need_a_unit() {
        for (text, nanoseconds) in
            [("2ms", 2_000_000), ("50us", 50_000), ("1.5 s", 1_500_000_000), ("7ns", 7), ("2min", 120_000_000_000)]
        {
            assert_eq!(parse_duration(text).unwrap(), Duration::from_nanos(nanoseconds), "{text}");
        }
        assert!(parse_duration("0").unwrap().is_zero() && parse_duration("0s").unwrap().is_zero());
        for text in ["", "2", "ms", "-1s", "1.2.3s", "3 weeks", "99999999999999999999999min"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
