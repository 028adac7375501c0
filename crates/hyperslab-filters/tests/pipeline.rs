//! Chunks go through combinations of filters and come back; damage is found, never a panic.

#![allow(clippy::unwrap_used)]

use hyperslab_core::ErrorKind;
use hyperslab_filters::{Filter, FilterSpec, Pipeline, Workspace};
use proptest::prelude::*;

#[path = "support/damage.rs"]
mod damage;
#[path = "support/data.rs"]
mod data;

fn spec(id: u32, optional: bool, parameters: &[u32]) -> FilterSpec {
    FilterSpec { id, optional, parameters: parameters.to_vec() }
}

fn some_filter() -> impl Strategy<Value = FilterSpec> {
    let parameters = prop_oneof![
        (0u32..10).prop_map(|level| (1, vec![level])),
        prop_oneof![1u32..20, Just(4), Just(8)].prop_map(|element| (2, vec![element])),
        Just((3, vec![])),
        Just((32015, vec![])),
        Just((32000, vec![4, 261, 0])),
        prop_oneof![Just(0u32), 1u32..3000].prop_map(|block| (32004, vec![block])),
        (1u32..20, 0u32..9, prop_oneof![Just(0u32), Just(2), Just(3)])
            .prop_map(|(element, eights, codec)| (32008, vec![0, 4, element, 8 * eights, codec])),
        (some_blosc(), any::<bool>()).prop_map(|(mut parameters, snappy)| {
            parameters[4] = if snappy { 3 } else { parameters[4] };
            (32001, [&[2, 2], &parameters[..]].concat())
        }),
        (prop_oneof![Just(0u32), 1u32..6000], some_blosc())
            .prop_map(|(block, parameters)| (32026, [&[1, block], &parameters[..]].concat())),
        (1u32..12).prop_map(|level| (32015, vec![level])),
    ];
    (parameters, any::<bool>()).prop_map(|((id, parameters), optional)| FilterSpec { id, optional, parameters })
}

fn some_blosc() -> impl Strategy<Value = Vec<u32>> {
    let codec = prop_oneof![Just(0u32), Just(1), Just(2), Just(4), Just(5)];
    (prop_oneof![1u32..20, Just(4), Just(300)], 0u32..8, 0u32..3, codec)
        .prop_map(|(element, level, sorting, codec)| vec![element, 0, level, sorting, codec])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn chunks_come_back(filters in proptest::collection::vec(some_filter(), 0..5), chunk in data::some_chunk()) {
        let pipeline = Pipeline::new(&filters, chunk.len()).unwrap();
        let mut workspace = Workspace::default();
        let encoded = match pipeline.encode(&chunk, &mut workspace) {
            Err(error) => {
                // Bitshuffle wants whole elements.
                prop_assert_eq!(error.kind(), ErrorKind::InvalidInput);
                prop_assert!(filters.iter().any(|filter| filter.id == 32008 && !filter.optional));
                return Ok(());
            }
            Ok(encoded) => encoded,
        };
        let (stored, mask) = (encoded.bytes.to_vec(), encoded.mask);
        prop_assert!(stored.len() <= pipeline.stored_limit());
        let mut back = vec![0xaa; chunk.len()];
        pipeline.decode(&stored, mask, &mut back, &mut workspace).unwrap();
        prop_assert!(back == chunk, "{filters:?}");
    }

    #[test]
    fn damage_is_found_or_harmless(
        filters in proptest::collection::vec(some_filter(), 1..4),
        chunk in data::some_chunk(),
        damages in proptest::collection::vec(damage::some_damage(), 8),
        mask in prop_oneof![4 => Just(None), 1 => any::<u32>().prop_map(Some)],
    ) {
        let pipeline = Pipeline::new(&filters, chunk.len()).unwrap();
        let mut workspace = Workspace::default();
        let Ok(encoded) = pipeline.encode(&chunk, &mut workspace) else { return Ok(()) };
        let (stored, mask) = (encoded.bytes.to_vec(), mask.unwrap_or(encoded.mask));
        for damage in damages {
            let (mut back, damaged) = (vec![0; chunk.len()], damage.done_to(&stored));
            let limit = pipeline.stored_limit();
            let alone = Filter::new(&filters[filters.len() - 1]).unwrap();
            let mut before = Vec::new();
            if alone.decode(&damaged, chunk.len(), limit, &mut before, &mut workspace).is_ok() {
                prop_assert!(before.len() <= limit);
            }
            if let Err(error) = pipeline.decode(&damaged, mask, &mut back, &mut workspace) {
                // A damaged header of Blosc may ask for codecs that there are but not here.
                let unknown = error.kind() == ErrorKind::Unsupported;
                let blosc = filters.iter().any(|filter| [32001, 32026].contains(&filter.id));
                prop_assert!(error.kind() == ErrorKind::Corrupt || unknown && blosc, "{error}");
            }
        }
    }
}

#[test]
fn threads_share_pipelines_and_own_workspaces() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Pipeline>();
    shared::<Filter>();
    sent::<Workspace>();
}

#[test]
fn a_filter_alone_finds_the_size_or_keeps_the_limit() {
    let chunk = vec![7; 10_000];
    let mut workspace = Workspace::default();
    let filters = [
        spec(1, true, &[6]),
        spec(32000, true, &[]),
        spec(32001, true, &[2, 2, 4, 0, 5, 1, 1]),
        spec(32004, true, &[0]),
        spec(32008, true, &[0, 4, 4, 0, 2]),
        spec(32015, true, &[]),
        spec(32026, true, &[1, 0, 4, 0, 5, 1, 5]),
    ];
    for filter in filters {
        let alone = Filter::new(&filter).unwrap();
        let (mut stored, mut plain) = (Vec::new(), Vec::new());
        assert!(alone.encode(&chunk, &mut stored, &mut workspace).unwrap());
        assert!(stored.len() < chunk.len(), "{filter:?}");
        for expected in [0, 1, 100, 10_000, 50_000] {
            alone.decode(&stored, expected, 60_000, &mut plain, &mut workspace).unwrap();
            assert!(plain == chunk, "{filter:?}");
        }
        let error = alone.decode(&stored, 10_000, 9_999, &mut plain, &mut workspace).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{filter:?}");
        assert!(!alone.encode(&data::noise(1000), &mut stored, &mut workspace).unwrap(), "{filter:?}");
    }
}

#[test]
fn a_checksum_finds_every_flipped_bit() {
    let chunk = data::smooth(300);
    let pipeline = Pipeline::new(&[spec(2, true, &[4]), spec(1, true, &[4]), spec(3, false, &[])], 1200).unwrap();
    let mut workspace = Workspace::default();
    let stored = pipeline.encode(&chunk, &mut workspace).unwrap().bytes.to_vec();
    let mut back = vec![0; chunk.len()];
    for bit in 0..stored.len() * 8 {
        let mut damaged = stored.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = pipeline.decode(&damaged, 0, &mut back, &mut workspace).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "bit {bit}");
    }
}

#[test]
fn a_checksum_with_bytes_swapped_in_each_half_is_an_old_one() {
    let chunk = data::smooth(100);
    let pipeline = Pipeline::new(&[spec(3, false, &[])], 400).unwrap();
    let mut workspace = Workspace::default();
    let mut stored = pipeline.encode(&chunk, &mut workspace).unwrap().bytes.to_vec();
    assert_eq!(stored.len(), 404);
    stored[400..402].reverse();
    stored[402..404].reverse();
    let mut back = vec![0; chunk.len()];
    pipeline.decode(&stored, 0, &mut back, &mut workspace).unwrap();
    assert_eq!(back, chunk);
    stored[400..404].reverse();
    assert!(pipeline.decode(&stored, 0, &mut back, &mut workspace).is_err());
}

#[test]
fn what_cannot_shrink_leaves_optional_filters_out() {
    let chunk = data::noise(5000);
    let mut workspace = Workspace::default();
    for (id, parameters) in [
        (1, &[4][..]),
        (32000, &[]),
        (32001, &[2, 2, 4, 5000, 5, 1, 1]),
        (32004, &[0]),
        (32008, &[0, 4, 4, 0, 2]),
        (32015, &[3]),
        (32026, &[1, 0, 4, 5000, 5, 1, 5]),
    ] {
        let optional = Pipeline::new(&[spec(2, true, &[4]), spec(id, true, parameters)], 5000).unwrap();
        let encoded = optional.encode(&chunk, &mut workspace).unwrap();
        assert_eq!((encoded.bytes.len(), encoded.mask), (5000, 2), "{id}");
        let mandatory = Pipeline::new(&[spec(id, false, parameters)], 5000).unwrap();
        let encoded = mandatory.encode(&chunk, &mut workspace).unwrap();
        assert!(encoded.bytes.len() > 5000 && encoded.mask == 0, "{id}");
        let (stored, mut back) = (encoded.bytes.to_vec(), vec![0; 5000]);
        mandatory.decode(&stored, 0, &mut back, &mut workspace).unwrap();
        assert!(back == chunk, "{id}");
    }
}

#[test]
fn masks_are_honoured() {
    let chunk = data::smooth(1000);
    let filters = [spec(2, true, &[4]), spec(1, true, &[6]), spec(3, false, &[])];
    let mut workspace = Workspace::default();
    let whole = Pipeline::new(&filters, 4000).unwrap();
    for mask in 0u32..8 {
        let kept: Vec<FilterSpec> =
            (0..3).filter(|bit| mask & (1 << bit) == 0).map(|bit| filters[bit].clone()).collect();
        let part = Pipeline::new(&kept, 4000).unwrap();
        let encoded = part.encode(&chunk, &mut workspace).unwrap();
        assert_eq!(encoded.mask, 0);
        let stored = encoded.bytes.to_vec();
        let mut back = vec![0; 4000];
        whole.decode(&stored, mask, &mut back, &mut workspace).unwrap();
        assert_eq!(back, chunk, "{mask}");
    }
}

#[test]
fn unknown_filters_are_refused_by_name() {
    for (id, name) in [(4, "szip"), (5, "n-bit"), (6, "scale-offset"), (32013, "zfp"), (4711, "4711")] {
        let error = Pipeline::new(&[spec(id, true, &[0; 8])], 100).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(name), "{error}");
    }
    for bad in [spec(1, true, &[10]), spec(1, true, &[]), spec(2, true, &[0]), spec(2, true, &[])] {
        assert_eq!(Pipeline::new(&[bad], 100).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn chunks_of_the_wrong_size_are_refused() {
    let pipeline = Pipeline::new(&[spec(2, true, &[4])], 100).unwrap();
    let mut workspace = Workspace::default();
    assert_eq!(pipeline.encode(&[0; 99], &mut workspace).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(
        pipeline.decode(&[0; 100], 0, &mut [0; 99], &mut workspace).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    assert_eq!(pipeline.decode(&[0; 99], 0, &mut [0; 100], &mut workspace).unwrap_err().kind(), ErrorKind::Corrupt);
}
