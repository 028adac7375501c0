//! Stored chunks of Zarr arrays; the first byte chooses the codecs. A panic inside a codec is an error to the caller.
#![no_main]

use hyperslab_formats::zarr::fuzz_api::chunk;

const BYTES: usize = 4096;

libfuzzer_sys::fuzz_target!(
    // The usual hook would end the process although the panic is caught.
    init: std::panic::set_hook(Box::new(|_| {})),
    |input: &[u8]| {
        let Some((how, stored)) = input.split_first() else { return };
        if let Ok(bytes) = chunk(stored, *how, BYTES) {
            if bytes.len() != BYTES {
                std::process::abort();
            }
        }
    }
);
