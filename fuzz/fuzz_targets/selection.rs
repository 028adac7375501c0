//! Two selections as JSON, one a line, and a shape: everything one can do with them ends soon and takes little memory.
#![no_main]

use hyperslab_core::{ChunkGrid, MemoryLayout, Selection};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default();
    let (a, b) = (serde_json::from_str::<Selection>(next()), serde_json::from_str::<Selection>(next()));
    let (shape, chunk) = (serde_json::from_str::<Vec<u64>>(next()), serde_json::from_str::<Vec<u64>>(next()));
    let _ = serde_json::from_str::<MemoryLayout>(next());
    let (Ok(a), Ok(b)) = (a, b) else { return };
    let written = serde_json::to_string(&a).expect("a selection has a form in JSON");
    assert_eq!(serde_json::from_str::<Selection>(&written).expect("what was written can be read").len(), a.len());
    let both = a.intersect(&b);
    if let (Ok(both), Ok(rest)) = (&both, a.subtract(&b)) {
        assert_eq!(both.len() + rest.len(), a.len());
        assert!(!rest.overlaps(&b));
        assert_eq!(a.overlaps(&b), !both.is_empty());
    }
    let _ = (a.union_with(&b), a.same_elements(&b), a.bounds());
    let (Ok(shape), Ok(chunk)) = (shape, chunk) else { return };
    let _ = (a.check_inside(&shape), a.first_byte(&shape, 8), a.last_byte(&shape, 8));
    if let Ok(runs) = a.runs(&shape, 8) {
        let runs: Vec<_> = runs.take(300).collect();
        assert!(runs.windows(2).all(|pair| pair[0].end() < pair[1].offset));
    }
    if let Ok(grid) = ChunkGrid::new(&shape, &chunk)
        && let Ok(parts) = a.split_by_chunk(&grid)
    {
        parts.take(20).for_each(drop);
    }
});
