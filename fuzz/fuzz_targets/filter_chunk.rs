//! Stored chunks of HDF5 arrays; the first byte chooses the filters. Nothing but a whole chunk or an error may come out.
#![no_main]

use hyperslab_filters::{Filter, Pipeline, FilterSpec, Workspace};
use std::cell::RefCell;

/// 30 x 40 elements of 4 bytes.
const BYTES: usize = 4800;

/// In an order that seeds rely on.
const FILTERS: [&[(u32, &[u32])]; 12] = [
    &[(2, &[4]), (1, &[4]), (3, &[])],
    &[(1, &[6])],
    &[(3, &[])],
    &[(32000, &[4, 261, 4800])],
    &[(32001, &[2, 2, 4, 4800, 5, 1, 0])],
    &[(32004, &[0])],
    &[(32008, &[0, 4, 4, 0, 0])],
    &[(32008, &[0, 4, 4, 0, 2])],
    &[(32008, &[0, 4, 4, 0, 3, 3])],
    &[(32015, &[3])],
    &[(32026, &[1, 0, 4, 4800, 5, 1, 0, 2, 30, 40])],
    &[(32026, &[1, 0, 4, 4800, 5, 1, 5]), (32015, &[3])],
];

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((how, stored)) = input.split_first() else { return };
    let filters: Vec<FilterSpec> = FILTERS[usize::from(*how) % FILTERS.len()]
        .iter()
        .map(|(id, parameters)| FilterSpec { id: *id, optional: true, parameters: parameters.to_vec() })
        .collect();
    let pipeline = Pipeline::new(&filters, BYTES).expect("known filters");
    let last = Filter::new(&filters[filters.len() - 1]).expect("a known filter");
    WORKSPACE.with_borrow_mut(|workspace| {
        let mut chunk = vec![0; BYTES];
        let decoded = pipeline.decode(stored, 0, &mut chunk, workspace).is_ok();
        let mut alone = Vec::new();
        let limit = pipeline.stored_limit();
        if last.decode(stored, BYTES, limit, &mut alone, workspace).is_ok() {
            assert!(alone.len() <= limit);
            assert!(!decoded || filters.len() > 1 || alone == chunk);
        } else {
            assert!(!decoded);
        }
    });
});
