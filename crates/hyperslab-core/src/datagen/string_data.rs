//! Strings of variable length that follow from their place.

use super::{Fill, mix};
use crate::{Error, Result, Strings};

/// A random string has fewer letters than this.
const LENGTHS: u64 = 13;

/// The strings of one array.
#[derive(Debug, Clone)]
pub(super) enum StringRule {
    /// Up to 12 letters.
    Letters { salt: u64 },
    /// The index plus a constant, in decimal digits.
    Digits { base: u64 },
    /// The same everywhere.
    Same(Vec<u8>),
}

impl StringRule {
    /// The rule that `fill` means for strings.
    pub(super) fn new(fill: &Fill, salt: u64) -> Result<Self> {
        Ok(match fill {
            Fill::Random => Self::Letters { salt },
            Fill::Index | Fill::Ramp => Self::Digits { base: salt % 4096 },
            Fill::Text(text) => {
                Strings::check(text.as_bytes())?;
                Self::Same(text.as_bytes().to_vec())
            }
            Fill::Fields(_) | Fill::Literal(_) => {
                let message = "strings of variable length have neither fields nor literal bytes";
                return Err(Error::invalid("check workload", message).hint("use random, index or {\"text\":\"...\"}"));
            }
        })
    }

    /// The string at a row-major index.
    pub(super) fn text(&self, index: u64) -> Vec<u8> {
        match self {
            Self::Same(text) => text.clone(),
            Self::Digits { base } => index.wrapping_add(*base).to_string().into_bytes(),
            Self::Letters { salt } => {
                let mut bits = mix(index ^ salt);
                let length = bits % LENGTHS;
                let letter = |_| {
                    bits = mix(bits);
                    b'a' + (bits % 26) as u8
                };
                (0..length).map(letter).collect()
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::{DataRules, Datatype, Fill, Selection, Strings};

    fn strings(fill: &Fill, selection: &Selection) -> Strings {
        DataRules::new(&Datatype::VariableString, fill, "Timestep_0/x", 1)
            .unwrap()
            .strings(&[40, 5], selection)
            .unwrap()
    }

    #[test]
    fn a_part_has_the_strings_of_the_whole() {
        let whole = Selection::all(&[40, 5]).unwrap();
        let part = Selection::strided(&[1, 0], &[2, 2], &[2, 2], &[1, 1]).unwrap();
        let text = Fill::Text("abcd".into());
        for fill in [&Fill::Random, &Fill::Index, &text] {
            let all = strings(fill, &whole);
            let expected: Strings = [5, 7, 15, 17].iter().map(|i| all.get(*i).unwrap()).collect();
            assert_eq!(strings(fill, &part), expected);
        }
        assert_eq!(strings(&text, &whole).get(99), Some(&b"abcd"[..]));
        // docs/workload-format.md has these.
        assert_eq!(strings(&Fill::Index, &whole).iter().take(2).collect::<Vec<_>>(), [b"840", b"841"]);
        let random = strings(&Fill::Random, &whole);
        let lengths: std::collections::BTreeSet<usize> = random.iter().map(<[u8]>::len).collect();
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), (0..13).collect::<Vec<_>>());
        assert!(random.iter().flatten().all(u8::is_ascii_lowercase));
    }

    #[test]
    fn rules_for_other_types_are_refused() {
        for fill in [Fill::Literal(vec![1]), Fill::Fields(Vec::new()), Fill::Text("a\0".into())] {
            assert!(DataRules::new(&Datatype::VariableString, &fill, "x", 0).is_err(), "{fill:?}");
        }
        assert!(DataRules::new(&Datatype::F32, &Fill::Text("a".into()), "x", 0).is_err());
        let written: Fill = serde_json::from_str(r#"{"text":"abcd"}"#).unwrap();
        assert_eq!(written, Fill::Text("abcd".into()));
    }
}
