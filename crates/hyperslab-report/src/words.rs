//! Numbers for people.

use hyperslab_core::units::display_size;

/// Bytes.
pub fn size(bytes: f64) -> String {
    display_size(bytes.max(0.0) as u64)
}

/// Bytes per second.
pub fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", size(bytes_per_second))
}

/// A time.
pub fn seconds(value: f64) -> String {
    match value {
        v if v < 1e-6 => format!("{:.0} ns", v * 1e9),
        v if v < 1e-3 => format!("{:.1} us", v * 1e6),
        v if v < 1.0 => format!("{:.1} ms", v * 1e3),
        v if v < 1000.0 => format!("{v:.2} s"),
        v => format!("{v:.0} s"),
    }
}

/// A ratio.
pub fn ratio(value: f64) -> String {
    match value {
        v if v < 0.01 => format!("{v:.4}"),
        v if v < 100.0 => format!("{v:.2}"),
        v => format!("{v:.0}"),
    }
}

/// A part of one.
pub fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// A number and what is counted.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A number on an axis that may be anything.
pub fn plain(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value}") }
}
