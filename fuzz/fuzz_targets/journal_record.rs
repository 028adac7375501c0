//! One record of a journal, with the right length and checksums.
#![no_main]

use hyperslab_fuzz::{checksums, read_again};
use hyperslab_journal::fuzz_api;

const SEED: u32 = 9;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // Length, kind, check, sequence number and body, then the checksum.
    let mut bytes = [input, &[0; 4]].concat();
    checksums::record(&mut bytes, SEED);
    read_again(&bytes, |bytes| fuzz_api::record(bytes, SEED));
});
