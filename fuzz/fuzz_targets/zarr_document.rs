//! Zarr metadata of versions 2 and 3, the attributes of version 2 behind a line with a single `=`.
#![no_main]

use hyperslab_formats::zarr::fuzz_api::array;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let between = text.windows(3).position(|bytes| bytes == b"\n=\n");
    let (text, apart) = match between {
        Some(at) => (&text[..at + 1], &text[at + 3..]),
        None => (text, &b"{}"[..]),
    };
    let Ok((spec, written)) = array(text, apart) else { return };
    let (again, _) = array(written.as_bytes(), apart).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!((again.dtype, again.shape, again.chunk), (spec.dtype, spec.shape, spec.chunk), "{written}");
});
