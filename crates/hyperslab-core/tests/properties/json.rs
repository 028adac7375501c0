use crate::oracle::{rank, union};
use hyperslab_core::{MemoryLayout, Selection};
use proptest::prelude::*;

proptest! {
    #[test]
    fn selections_round_trip((selection, _) in rank().prop_flat_map(union)) {
        let text = serde_json::to_string(&selection).unwrap();
        let back: Selection = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back, selection);
    }

    #[test]
    fn layouts_round_trip(
        (selection, set) in rank().prop_flat_map(union),
        members in prop::collection::vec((prop::option::of("[a-z]{1,3}"), any::<u64>()), 0..3),
        size in prop::option::of(any::<u64>()),
        strided in any::<bool>(),
    ) {
        let shape = crate::oracle::shape_around(selection.rank(), &set, &[0; 4]);
        let mut layout = if strided { MemoryLayout::strided(&shape, selection) } else { MemoryLayout::packed() };
        layout.structure = size.map(|size| hyperslab_core::StructLayout {
            size,
            members: members.into_iter().map(|(field, offset)| hyperslab_core::StructField { field, offset }).collect(),
        });
        let text = serde_json::to_string(&layout).unwrap();
        prop_assert_eq!(serde_json::from_str::<MemoryLayout>(&text).unwrap(), layout);
    }
}

#[test]
fn the_written_form_is_stable() {
    let dense = Selection::dense(&[1, 2], &[3, 4]).unwrap();
    assert_eq!(serde_json::to_string(&dense).unwrap(), r#"{"start":[1,2],"count":[3,4]}"#);
    let text = r#"{"start":[0],"stride":[4],"count":[3],"block":[2]}"#;
    assert_eq!(serde_json::to_string(&serde_json::from_str::<Selection>(text).unwrap()).unwrap(), text);
    let empty: Selection = serde_json::from_str(r#"{"start":[0],"count":[0]}"#).unwrap();
    assert_eq!(serde_json::to_string(&empty).unwrap(), r#"{"rank":1,"union":[]}"#);
}
