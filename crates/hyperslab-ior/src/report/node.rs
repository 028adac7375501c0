//! A JSON document whose keys keep their order.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// A part of the document.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Object(Vec<(String, Node)>),
    List(Vec<Node>),
    Text(String),
    Number(f64),
    Count(i64),
}

impl Node {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number that is known to be below 2^63.
    pub fn count(number: u64) -> Self {
        Self::Count(i64::try_from(number).unwrap_or(i64::MAX))
    }

    pub fn flag(on: bool) -> Self {
        Self::Count(i64::from(on))
    }

    /// As it stands in a line of text.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => format!("{number:.4}"),
            Self::Count(count) => count.to_string(),
            Self::Object(_) | Self::List(_) => String::new(),
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Object(pairs) => {
                let mut map = serializer.serialize_map(Some(pairs.len()))?;
                pairs.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
            Self::List(all) => {
                let mut list = serializer.serialize_seq(Some(all.len()))?;
                all.iter().try_for_each(|one| list.serialize_element(one))?;
                list.end()
            }
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Count(count) => serializer.serialize_i64(*count),
        }
    }
}
