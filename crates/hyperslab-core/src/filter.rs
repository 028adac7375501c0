//! Chunk filters, and sets of them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A transformation of chunks. Several are applied in the order given at writing, and undone in reverse at reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// zlib/gzip at level 0 to 9.
    Deflate(u8),
    /// Byte shuffle: bytes of equal significance together.
    Shuffle,
    /// Fletcher-32 checksum.
    Fletcher32,
    /// Zstandard at level 1 to 22.
    Zstd(u8),
    /// Blosc (LZ4 inside, byte shuffle) at level 0 to 9.
    Blosc(u8),
    /// Blosc2 (Zstandard inside, byte shuffle) at level 0 to 9.
    Blosc2(u8),
    /// LZ4.
    Lz4,
    /// LZF.
    Lzf,
    /// Bit shuffle: bits of equal significance together, then LZ4.
    Bitshuffle,
}

impl Filter {
    const KINDS: [(&str, Self); 9] = [
        ("deflate", Self::Deflate(0)),
        ("shuffle", Self::Shuffle),
        ("fletcher32", Self::Fletcher32),
        ("zstd", Self::Zstd(0)),
        ("blosc", Self::Blosc(0)),
        ("blosc2", Self::Blosc2(0)),
        ("lz4", Self::Lz4),
        ("lzf", Self::Lzf),
        ("bitshuffle", Self::Bitshuffle),
    ];

    /// The bit of the filter in a [`FilterSet`].
    const fn bit(&self) -> u16 {
        match self {
            Self::Deflate(_) => 1 << 0,
            Self::Shuffle => 1 << 1,
            Self::Fletcher32 => 1 << 2,
            Self::Zstd(_) => 1 << 3,
            Self::Blosc(_) => 1 << 4,
            Self::Blosc2(_) => 1 << 5,
            Self::Lz4 => 1 << 6,
            Self::Lzf => 1 << 7,
            Self::Bitshuffle => 1 << 8,
        }
    }
}

/// Filters regardless of their levels, such as those that a format supports.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct FilterSet(u16);

impl FilterSet {
    /// No filter.
    pub const NONE: Self = Self(0);
    /// Every filter there is.
    pub const ALL: Self = Self((1 << Filter::KINDS.len()) - 1);

    /// The set of these filters; their levels do not matter.
    pub const fn of(filters: &[Filter]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < filters.len() {
            bits |= filters[i].bit();
            i += 1;
        }
        Self(bits)
    }

    /// Whether the filter is in the set, whatever its level.
    pub const fn contains(self, filter: &Filter) -> bool {
        self.0 & filter.bit() != 0
    }
}

impl fmt::Debug for FilterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(Filter::KINDS.iter().filter(|(_, kind)| self.contains(kind)).map(|(name, _)| name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_its_filters_at_every_level() {
        let set = FilterSet::of(&[Filter::Deflate(1), Filter::Lzf]);
        assert!(set.contains(&Filter::Deflate(9)) && set.contains(&Filter::Lzf) && !set.contains(&Filter::Lz4));
        assert!(Filter::KINDS.iter().all(|(_, kind)| FilterSet::ALL.contains(kind) && !FilterSet::NONE.contains(kind)));
        assert_eq!(FilterSet::of(&Filter::KINDS.map(|(_, kind)| kind)), FilterSet::ALL);
        assert_eq!(format!("{set:?}"), r#"{"deflate", "lzf"}"#);
    }
}
