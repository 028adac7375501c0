//! Classes of comparable epochs: same direction and similar request size.

use hyperslab_core::units::display_size;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Direction, and size of the first request to within a factor of 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct RequestClass {
    pub writes: bool,
    /// The minimum request size is 4 to this power.
    power: u8,
}

/// Maximum power; larger requests have the same class.
const MOST: u8 = 24;

impl RequestClass {
    /// The class of a request.
    pub fn of(bytes: u64, writes: bool) -> Self {
        Self { writes, power: ((bytes.max(1).ilog2() / 2) as u8).min(MOST) }
    }

    /// Encodes the class as a number greater than 0.
    pub fn code(self) -> u16 {
        1 + 2 * u16::from(self.power) + u16::from(self.writes)
    }

    /// Decodes a number.
    pub fn from_code(code: u16) -> Option<Self> {
        let code = code.checked_sub(1)?;
        let power = u8::try_from(code / 2).ok().filter(|power| *power <= MOST)?;
        Some(Self { writes: code % 2 == 1, power })
    }
}

impl fmt::Display for RequestClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.writes { "writes" } else { "reads" };
        write!(f, "{what} from {}", display_size(1 << (2 * self.power)))
    }
}

impl From<RequestClass> for String {
    fn from(class: RequestClass) -> Self {
        format!("{}-{}", if class.writes { "write" } else { "read" }, 1u64 << (2 * class.power))
    }
}

impl TryFrom<String> for RequestClass {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parsed = text.split_once('-').and_then(|(what, bytes)| {
            let writes = ["read", "write"].iter().position(|word| *word == what)? == 1;
            Some(Self::of(bytes.parse().ok()?, writes))
        });
        parsed.filter(|class| String::from(*class) == text).ok_or_else(|| format!("{text:?} is no class of requests"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_written_and_numbered() {
        for (bytes, writes, text) in
            [(0, true, "write-1"), (1 << 20, true, "write-1048576"), (5000, false, "read-4096")]
        {
            let class = RequestClass::of(bytes, writes);
            assert_eq!(String::from(class), text);
            assert_eq!(RequestClass::try_from(text.to_owned()).unwrap(), class);
            assert_eq!(RequestClass::from_code(class.code()), Some(class));
        }
        assert_eq!(RequestClass::of(1 << 20, true), RequestClass::of((4 << 20) - 1, true));
        assert_eq!(
            RequestClass::from_code(RequestClass::of(u64::MAX, true).code()),
            Some(RequestClass::of(u64::MAX, true))
        );
        assert_eq!((RequestClass::from_code(0), RequestClass::from_code(5000)), (None, None));
        for text in ["write", "write-3", "copy-4", "read--1", "read-99999999999999999999"] {
            assert!(RequestClass::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
