//! Compounds: fields in another order, of other types, missing on either side, nested.

use super::library::LibraryType;
use super::values::{Dice, types};
use hyperslab_core::{ByteOrder, Datatype, Field};
use hyperslab_h5direct::Conversion;
use proptest::prelude::*;

fn field(name: &str, offset: u64, dtype: Datatype) -> Field {
    Field { name: name.into(), offset, dtype }
}

fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut dice = Dice(seed);
    (0..bytes).map(|_| dice.next() as u8).collect()
}

/// The bytes of a type that belong to fields which both types have.
fn common(from: &Datatype, to: &Datatype, at: usize, marks: &mut [bool]) {
    for target in to.fields() {
        let Some(source) = from.field(&target.name) else { continue };
        let at = at + target.offset as usize;
        match target.dtype.fields() {
            [] => marks[at..at + target.dtype.size() as usize].fill(true),
            _ => common(&source.dtype, &target.dtype, at, marks),
        }
    }
}

fn compare(from: &Datatype, to: &Datatype, elements: usize, seed: u64) {
    let (from_size, to_size) = (from.size() as usize, to.size() as usize);
    let (source, background) = (noise(elements * from_size, seed), noise(elements * to_size, seed ^ 1));
    let Some(conversion) = Conversion::new(from, to).unwrap() else {
        assert_eq!(from, to);
        return;
    };
    let mut found = background.clone();
    conversion.convert(&source, &mut found).unwrap();
    let expected = LibraryType::new(from).convert(LibraryType::new(to), &source, &background);
    let mut marks = vec![false; to_size];
    common(from, to, 0, &mut marks);
    for (at, (found, expected)) in found.chunks(to_size).zip(expected.chunks(to_size)).enumerate() {
        for byte in 0..to_size {
            // What no field has stays; to libhdf5 padding is nobody's.
            let right = if marks[byte] { expected[byte] } else { background[at * to_size + byte] };
            assert_eq!(found[byte], right, "{from} to {to}, element {at}, byte {byte}");
        }
    }
}

#[test]
fn fields_are_matched_by_name() {
    let parse = |text: &str| text.parse::<Datatype>().unwrap();
    let inner = Datatype::compound(12, vec![field("u", 0, parse(">i2")), field("v", 4, parse("<f8"))]).unwrap();
    let other = Datatype::compound(16, vec![field("v", 0, parse("<f4")), field("w", 8, parse("<i8"))]).unwrap();
    let from = Datatype::compound(
        40,
        vec![
            field("a", 0, parse("<f4")),
            field("b", 4, parse("<i4")),
            field("only here", 8, parse("<i4")),
            field("c", 12, inner.clone()),
            field("same", 24, parse("<u8")),
            field("same too", 32, parse("<u4")),
        ],
    )
    .unwrap();
    let to = Datatype::compound(
        64,
        vec![
            field("b", 2, parse(">f8")),
            field("a", 10, parse("<i2")),
            field("c", 16, other),
            field("only there", 33, parse("|u1")),
            field("same", 40, parse("<u8")),
            field("same too", 48, parse("<u4")),
        ],
    )
    .unwrap();
    for elements in [0, 1, 511, 512, 513, 3000] {
        compare(&from, &to, elements, 7);
        compare(&to, &from, elements, 8);
    }
    compare(&from, &from, 10, 9);
}

/// Fields of the same name and any type, at any place.
fn compound() -> impl Strategy<Value = Datatype> {
    let all: Vec<Datatype> = [ByteOrder::Little, ByteOrder::Big].into_iter().flat_map(types).collect();
    let names = prop::sample::subsequence(vec!["b", "c", "d", "e", "f"], 0..=5).prop_shuffle();
    (names, prop::collection::vec((prop::sample::select(all), 0u64..5), 6), 0u64..9).prop_map(
        |(mut names, kinds, end)| {
            names.insert(names.len() / 2, "a");
            let mut at = 0;
            let fields = names.iter().zip(kinds).map(|(name, (dtype, gap))| {
                let field = field(name, at + gap, dtype);
                at = field.offset + field.dtype.size();
                field
            });
            let fields = fields.collect();
            Datatype::compound(at + end, fields).unwrap()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_compounds_are_converted_as_libhdf5_does(from in compound(), to in compound(), elements in 0usize..1100) {
        compare(&from, &to, elements, elements as u64);
    }
}
