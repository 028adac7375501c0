//! Strings of variable length, in memory: one after another, with the place where each ends.

use crate::{Error, Result};

/// A list of strings. They have no NUL inside; UTF-8 where the format demands it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses what is no string: one with a NUL inside.
    pub fn check(text: &[u8]) -> Result<()> {
        match text.contains(&0) {
            true => Err(Error::unsupported("check string", "a string has a NUL inside").hint("use opaque bytes (|V8)")),
            false => Ok(()),
        }
    }

    /// Adds a string.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// String number `index`.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }

    /// One after another.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// Refuses another number of strings than elements, and strings that are none.
    pub fn check_for(&self, elements: u64) -> Result<()> {
        if self.len() as u64 != elements {
            let message = format!("{} strings for {elements} elements", self.len());
            return Err(Error::invalid("check memory", message));
        }
        Self::check(&self.bytes)
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Strings {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut all = Self::new();
        texts.into_iter().for_each(|text| all.push(text.as_ref()));
        all
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{ArraySpec, Attribute, Datatype};

    #[test]
    fn strings_keep_their_order_and_length() {
        let all: Strings = ["a", "", "é"].iter().collect();
        assert_eq!(all.iter().collect::<Vec<_>>(), [&b"a"[..], b"", "é".as_bytes()]);
        assert_eq!((all.len(), all.bytes(), all.get(3)), (3, 3, None));
        assert!(all.check_for(3).is_ok() && all.check_for(2).is_err());
        assert!(["a\0b"].iter().collect::<Strings>().check_for(1).is_err());
    }

    #[test]
    fn attributes_hold_strings_of_their_own_length() {
        let value = Attribute::strings(&[2], &["été", ""].iter().collect());
        value.check().unwrap();
        assert_eq!(value.texts().unwrap(), ["été".as_bytes(), b""]);
        assert_eq!(Attribute::strings(&[], &["x"].iter().collect()).as_text(), Some("x"));
        assert_eq!(Attribute::text("ab").texts().unwrap(), [b"ab"]);
        for data in [&b"a"[..], b"a\0b\0c\0", b"a\0b"] {
            assert!(Attribute { data: data.to_vec(), ..value.clone() }.check().is_err(), "{data:?}");
        }
    }

    #[test]
    fn strings_have_no_packed_form() {
        let mut spec = ArraySpec::new(Datatype::VariableString, &[2]);
        assert!(spec.check().is_ok() && spec.refuse_strings().is_err());
        assert!(crate::MemoryView::packed(&[0; 32]).check(&spec.dtype, 2).is_err());
        spec.fill_value = Some(b"any length".to_vec());
        assert!(spec.check().is_ok());
        spec.fill_value = Some(vec![0]);
        assert!(spec.check().is_err());
        assert!(Datatype::packed_compound([("t", Datatype::VariableString)]).is_err());
    }
}
