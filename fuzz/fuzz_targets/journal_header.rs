//! The head of a journal and the head of a segment.
#![no_main]

use hyperslab_fuzz::{checksums, read_again};
use hyperslab_journal::{Id, fuzz_api};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut bytes = input.to_vec();
    checksums::header(&mut bytes);
    read_again(&bytes, fuzz_api::header);
    let mut bytes = input.to_vec();
    checksums::end(&mut bytes, 0);
    read_again(&bytes, |bytes| fuzz_api::segment_head(bytes, &Id([1; 16]), 1));
});
