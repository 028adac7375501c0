//! What the posix format keeps beside the data: descriptions of arrays and groups, and lines of a rank's index.
#![no_main]

use hyperslab_formats::posix::fuzz_api;
use hyperslab_fuzz::read_again;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    read_again(text, fuzz_api::array);
    read_again(text, fuzz_api::group);
    for dimensions in 0..3 {
        let _ = fuzz_api::index_line(text, dimensions);
    }
});
