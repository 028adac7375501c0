//! Any header comes back as it was, and no bytes make decoding panic.

use super::super::decode::{Flaw, decode};
use super::super::encode::{encode, encoded_len};
use super::super::header::{CdfAttribute, Dimension, Header, Variable};
use super::super::layout::{check, place_all};
use super::super::types::CdfType;
use super::headers::{TIGHT, VERSIONS};
use proptest::prelude::*;

fn attributes(types: usize) -> impl Strategy<Value = Vec<CdfAttribute>> {
    let one = (0..types, proptest::collection::vec(any::<u8>(), 0..5)).prop_map(|(kind, values)| {
        let kind = CdfType::ALL[kind];
        let data = values.iter().flat_map(|value| vec![*value; kind.size() as usize]).collect();
        (kind, data)
    });
    proptest::collection::vec(one, 0..4).prop_map(|all| {
        let named = all.into_iter().enumerate();
        named.map(|(i, (kind, data))| CdfAttribute { name: format!("été {i}"), kind, data }).collect()
    })
}

/// Headers of every version, laid out.
fn headers() -> impl Strategy<Value = Header> {
    (0..3usize, 0..100u64, 0..5usize).prop_flat_map(|(version, records, record_dimension)| {
        let version = VERSIONS[version];
        let types = if version.number() == 5 { 11 } else { 6 };
        let variable = (0..types, proptest::collection::vec(0..4usize, 0..4), attributes(types));
        let variables = proptest::collection::vec(variable, 0..5);
        (proptest::collection::vec(1..50u64, 4), attributes(types), variables).prop_map(
            move |(lengths, attributes, variables)| {
                let lengths = lengths.into_iter().enumerate();
                let dimensions = lengths.map(|(i, len)| {
                    let len = if i == record_dimension { 0 } else { len };
                    Dimension { name: format!("d{i}"), len }
                });
                let variables = variables.into_iter().enumerate().map(|(i, (kind, dimensions, attributes))| {
                    let allowed =
                        dimensions.iter().enumerate().filter(|(at, dim)| *at == 0 || **dim != record_dimension);
                    let dimensions = allowed.map(|(_, dim)| *dim).collect();
                    Variable { name: "v".repeat(i + 1), dimensions, attributes, kind: CdfType::ALL[kind], begin: 0 }
                });
                let (dimensions, variables) = (dimensions.collect(), variables.collect());
                let mut header = Header { version, records, dimensions, attributes, variables };
                place_all(&mut header, 0, &TIGHT).unwrap();
                header
            },
        )
    })
}

proptest! {
    #[test]
    fn headers_come_back(header in headers(), cut in any::<prop::sample::Index>()) {
        let bytes = encode(&header);
        prop_assert_eq!(bytes.len() as u64, encoded_len(&header));
        let decoded = decode(&bytes).unwrap();
        prop_assert_eq!(decoded.len, bytes.len() as u64);
        prop_assert_eq!(&decoded.header, &header);
        prop_assert!(check(&decoded.header).is_ok());
        let part = &bytes[..cut.index(bytes.len())];
        prop_assert!(matches!(decode(part), Err(Flaw::Short(needs)) if needs > part.len() as u64));
    }

    #[test]
    fn damage_never_panics(header in headers(), damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = encode(&header);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(decoded) = decode(&bytes) {
            prop_assert!(decoded.header.end() <= i64::MAX as u64);
            prop_assert_eq!(encode(&decoded.header).len() as u64, decoded.len);
        }
    }
}
