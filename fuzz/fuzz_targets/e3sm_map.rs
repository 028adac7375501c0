//! Maps in PIO's text: what is read is checked, and its elements are found again in as few regular pieces.
#![no_main]

use hyperslab_core::Dims;
use hyperslab_kernels::Decomposition;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(map) = Decomposition::parse_pio(text) else { return };
    map.check().expect("what is read is right");
    let elements = map.elements();
    let Ok(all) = map.first_record(0..map.requests.len()) else { return };
    assert_eq!(all.len(), elements);
    if elements < 4096 {
        let shape: Dims = [1].into_iter().chain(map.dims.iter().copied()).collect();
        let runs = all.runs(&shape, 1).expect("it lies inside");
        let mut found: Vec<u64> = runs.flat_map(|run| run.offset..run.offset + run.len).collect();
        let mut expected: Vec<u64> =
            map.requests.iter().flat_map(|of| &of.data).flat_map(|(start, len)| *start..start + len).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
});
