//! What a file says about the libhdf5 in it.

use super::elf::Elf;
use super::{OLDEST, thread_safety};

/// A function that every libhdf5 has.
pub const FUNCTION: &str = "H5Fopen";

/// Facts of a libhdf5, from the texts that are compiled into it.
#[derive(Debug, PartialEq, Eq)]
pub struct Library {
    pub version: Option<(u32, u32, u32)>,
    thread_safe: Option<bool>,
    parallel: Option<bool>,
}

impl Library {
    /// Reads them; `None` if there is no libhdf5 in the file.
    pub fn of(elf: &Elf) -> Option<Self> {
        let version = elf.texts_after("HDF5 library version").iter().find_map(|text| version(text));
        let choice = |mark: &str| elf.texts_after(mark).iter().find_map(|text| yes_or_no(text));
        let there = version.is_some() || elf.exports(FUNCTION) || elf.contains(FUNCTION);
        there.then(|| Self { version, thread_safe: choice("Threadsafety:"), parallel: choice("Parallel HDF5:") })
    }

    /// Whether it looks for connectors such as ours; not known without a version.
    pub fn new_enough(&self) -> Option<bool> {
        self.version.map(|(major, minor, _)| (major, minor) >= OLDEST)
    }

    /// `HDF5 1.14.5, not thread-safe, parallel`.
    pub fn words(&self) -> String {
        let mut words = match self.version {
            Some((major, minor, patch)) => format!("HDF5 {major}.{minor}.{patch}"),
            None => "HDF5 of an unknown version".to_owned(),
        };
        if let Some(safe) = self.thread_safe {
            words += &format!(", {}", thread_safety(safe));
        }
        if self.parallel == Some(true) {
            words += ", parallel";
        }
        words
    }
}

fn version(text: &str) -> Option<(u32, u32, u32)> {
    let text: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "yes" | "on" => Some(true),
        "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(version("1.14.5"), Some((1, 14, 5)));
        assert_eq!(version("2.0.0-1 and more"), Some((2, 0, 0)));
        assert_eq!(version("%d.%d.%d"), None);
        let library = |version| Library { version, thread_safe: None, parallel: None };
        assert_eq!(library(Some((1, 10, 8))).new_enough(), Some(false));
        assert_eq!(library(Some((2, 0, 0))).new_enough(), Some(true));
        assert_eq!(library(None).new_enough(), None);
    }
}
