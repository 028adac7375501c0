//! Versions of the format and its types.

/// Which of the three forms of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// CDF-1: counts and offsets of 32 bits.
    Classic,
    /// CDF-2: offsets of 64 bits.
    Offset64,
    /// CDF-5: counts and offsets of 64 bits, and more types.
    Data64,
}

impl Version {
    /// By the fourth byte of a file.
    pub fn of_number(number: u8) -> Option<Self> {
        [Self::Classic, Self::Offset64, Self::Data64].into_iter().find(|version| version.number() == number)
    }

    pub fn number(self) -> u8 {
        match self {
            Self::Classic => 1,
            Self::Offset64 => 2,
            Self::Data64 => 5,
        }
    }

    /// Bytes of counts and lengths.
    pub fn count_bytes(self) -> usize {
        if self == Self::Data64 { 8 } else { 4 }
    }

    /// Bytes of offsets.
    pub fn offset_bytes(self) -> usize {
        if self == Self::Classic { 4 } else { 8 }
    }

    /// The largest length of a dimension, number of records or of values.
    pub fn largest_count(self) -> u64 {
        if self == Self::Data64 { i64::MAX as u64 } else { i32::MAX as u64 }
    }

    /// The last place where a variable may begin.
    pub fn largest_begin(self) -> u64 {
        if self == Self::Classic { i32::MAX as u64 } else { i64::MAX as u64 }
    }

    /// The most bytes of a variable or of its record, where others come after it.
    pub fn largest_variable(self) -> u64 {
        match self {
            Self::Classic => i32::MAX as u64 - 3,
            Self::Offset64 => u64::from(u32::MAX) - 3,
            Self::Data64 => i64::MAX as u64 - 3,
        }
    }
}

/// The type of a variable's elements or an attribute's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CdfType {
    Byte,
    Char,
    Short,
    Int,
    Float,
    Double,
    UnsignedByte,
    UnsignedShort,
    UnsignedInt,
    Int64,
    UnsignedInt64,
}

impl CdfType {
    /// In the order of their numbers, from 1.
    pub const ALL: [Self; 11] = [
        Self::Byte,
        Self::Char,
        Self::Short,
        Self::Int,
        Self::Float,
        Self::Double,
        Self::UnsignedByte,
        Self::UnsignedShort,
        Self::UnsignedInt,
        Self::Int64,
        Self::UnsignedInt64,
    ];

    /// The type with this number, if the version has it.
    pub fn of_number(number: u32, version: Version) -> Option<Self> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        Self::ALL.get(index).copied().filter(|kind| kind.is_in(version))
    }

    pub fn number(self) -> u32 {
        self as u32 + 1
    }

    /// Whether a version has it.
    pub fn is_in(self, version: Version) -> bool {
        version == Version::Data64 || self.number() <= Self::Double.number()
    }

    /// Bytes of one element.
    pub fn size(self) -> u64 {
        match self {
            Self::Byte | Self::Char | Self::UnsignedByte => 1,
            Self::Short | Self::UnsignedShort => 2,
            Self::Int | Self::Float | Self::UnsignedInt => 4,
            Self::Double | Self::Int64 | Self::UnsignedInt64 => 8,
        }
    }
}
