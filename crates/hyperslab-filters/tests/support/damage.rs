//! What can happen to stored bytes.

use proptest::prelude::*;

/// One thing that goes wrong.
#[derive(Debug, Clone)]
pub enum Damage {
    /// Bits are flipped at these places, counted modulo the length.
    Flipped(Vec<(usize, u8)>),
    /// The same near the front, where headers are.
    HeaderFlipped(Vec<(usize, u8)>),
    /// Only so much is left, in parts of 1000.
    Cut(usize),
    /// These bytes follow.
    Longer(Vec<u8>),
    /// Something else altogether.
    Replaced(Vec<u8>),
    /// The front stays, the rest is something else.
    BodyReplaced(usize, Vec<u8>),
    /// Four bytes at a place near the front become these.
    Number(usize, [u8; 4]),
}

impl Damage {
    /// The damaged form of `stored`.
    pub fn done_to(&self, stored: &[u8]) -> Vec<u8> {
        let mut bytes = stored.to_vec();
        match self {
            Self::Flipped(places) if !bytes.is_empty() => {
                for (place, bits) in places {
                    let place = place % bytes.len();
                    bytes[place] ^= bits;
                }
            }
            Self::HeaderFlipped(places) if !bytes.is_empty() => {
                for (place, bits) in places {
                    let place = place % bytes.len().min(200);
                    bytes[place] ^= bits;
                }
            }
            Self::Flipped(_) | Self::HeaderFlipped(_) => {}
            Self::Cut(parts) => bytes.truncate(stored.len() * parts / 1000),
            Self::Longer(more) => bytes.extend_from_slice(more),
            Self::Replaced(other) => bytes = other.clone(),
            Self::BodyReplaced(kept, other) => {
                bytes.truncate(*kept);
                bytes.extend_from_slice(other);
            }
            Self::Number(place, number) => {
                if let Some(four) = bytes.get_mut(*place..place + 4) {
                    four.copy_from_slice(number);
                }
            }
        }
        bytes
    }
}

/// Any damage.
pub fn some_damage() -> impl Strategy<Value = Damage> {
    let places = proptest::collection::vec((any::<usize>(), 1u8..), 1..6);
    let near = proptest::collection::vec((0usize..200, 1u8..), 1..4);
    let bytes = || proptest::collection::vec(any::<u8>(), 0..400);
    let number = prop_oneof![
        any::<[u8; 4]>(),
        Just([0xff; 4]),
        Just([0; 4]),
        Just([0xff, 0xff, 0xff, 0x7f]),
        Just([0x7f, 0xff, 0xff, 0xff]),
        Just([1, 0, 0, 0]),
        Just([0, 0, 0, 0x80]),
    ];
    prop_oneof![
        places.prop_map(Damage::Flipped),
        near.prop_map(Damage::HeaderFlipped),
        (0usize..1000).prop_map(Damage::Cut),
        bytes().prop_map(Damage::Longer),
        bytes().prop_map(Damage::Replaced),
        (0usize..120, bytes()).prop_map(|(kept, other)| Damage::BodyReplaced(kept, other)),
        (0usize..200, number).prop_map(|(place, number)| Damage::Number(place, number)),
    ]
}
