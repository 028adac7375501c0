//! Numbers of every type to every other.

use super::library::LibraryType;
use super::values::{interesting, packed, types};
use hyperslab_core::{ByteOrder, Datatype};
use hyperslab_h5direct::Conversion;
use proptest::prelude::*;

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

fn all_types() -> Vec<Datatype> {
    ORDERS.into_iter().flat_map(types).collect()
}

fn order(dtype: &Datatype) -> ByteOrder {
    match dtype {
        Datatype::Integer { order, .. } | Datatype::Float { order, .. } => *order,
        _ => unreachable!("numbers only"),
    }
}

/// Compares one pair of types, and says where the first difference is.
fn compare(from: &Datatype, to: &Datatype, elements: &[u8]) {
    let Some(conversion) = Conversion::new(from, to).unwrap() else {
        assert_eq!(from, to);
        return;
    };
    let (from_size, to_size) = (from.size() as usize, to.size() as usize);
    let expected = LibraryType::new(from).convert(LibraryType::new(to), elements, &[]);
    let count = elements.len() / from_size;
    let mut found = vec![0xA5; count * to_size];
    conversion.convert(elements, &mut found).unwrap();
    let mut in_place = elements.to_vec();
    in_place.resize(count * from_size.max(to_size), 0);
    conversion.convert_in_place(&mut in_place, count).unwrap();
    for at in 0..count {
        let of = |all: &[u8], size: usize| all[at * size..][..size].to_vec();
        let (source, expected) = (of(elements, from_size), of(&expected, to_size));
        let what = format!("{from} {:?} to {to} {:?}, element {at}: {source:02x?}", order(from), order(to));
        assert_eq!(format!("{:02x?}", of(&found, to_size)), format!("{expected:02x?}"), "{what}");
        assert_eq!(of(&in_place, to_size), expected, "{what}, in place");
    }
}

#[test]
fn every_pair_is_converted_as_libhdf5_does() {
    let all = all_types();
    for from in &all {
        let elements = packed(from, &interesting(from, 4000, from.size()));
        for to in &all {
            compare(from, to, &elements);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any number of any bits, so that all ends of blocks are met.
    #[test]
    fn any_bits_are_converted_as_libhdf5_does(
        from in prop::sample::select(all_types()),
        to in prop::sample::select(all_types()),
        bits in prop::collection::vec(any::<u64>(), 0..5000),
    ) {
        compare(&from, &to, &packed(&from, &bits));
    }
}

/// What results from integers is the same everywhere; the rest depends on the libhdf5 that it is compared with.
#[test]
fn what_depends_on_the_library_is_known() {
    let depends = |from: &str, to: &str| {
        Conversion::new(&from.parse().unwrap(), &to.parse().unwrap()).unwrap().unwrap().depends_on_library()
    };
    for (from, to) in [("<i4", ">i2"), ("<u8", "<f4"), (">i8", "<f8"), ("<f4", ">f4"), ("<f2", ">f2")] {
        assert!(!depends(from, to), "{from} to {to}");
    }
    for (from, to) in [("<f4", "<i4"), (">f8", "<f4"), ("<f4", "<f8"), ("<i4", "<f2"), ("<f2", "<f4")] {
        assert!(depends(from, to), "{from} to {to}");
    }
}
