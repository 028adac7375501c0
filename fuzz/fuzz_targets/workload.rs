//! Workloads as JSON lines: surveyed or refused.
#![no_main]

use hyperslab_core::workload::JsonLines;
use std::io::{BufRead, Cursor, Result};
use std::sync::Arc;

/// The program refuses more before it walks through them.
const MOST_RANKS: usize = 64;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let text: Arc<[u8]> = text.into();
    let open = move || -> Result<Box<dyn BufRead + Send>> { Ok(Box::new(Cursor::new(text.clone()))) };
    if let Ok(workload) = JsonLines::workload(Box::new(open))
        && workload.header.ranks <= MOST_RANKS
    {
        let _ = workload.validate();
    }
});
