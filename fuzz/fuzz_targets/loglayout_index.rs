//! A generation of the log layout's index, with the right lengths and checksums.
#![no_main]

use hyperslab_core::Datatype;
use hyperslab_layers::loglayout_fuzz_api::generation;

/// The head begins with these: magic, version, flags.
const BEGIN: &[u8; 16] = b"HSLBLAYT\x01\0\0\0\0\0\0\0";

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (dtype, shape) = (Datatype::Opaque(20), [100, 1 << 40]);
    let read = |bytes: &[u8]| generation(bytes, &dtype, &shape);
    let _ = read(input);
    // Generation and the one before it, then what the one rank says.
    let Some((numbers, said)) = input.split_at_checked(16) else { return };
    let body = [&(said.len() as u64).to_le_bytes(), said].concat();
    let mut head = [&BEGIN[..], numbers, &(body.len() as u64).to_le_bytes()].concat();
    head.extend(crc32c::crc32c(&body).to_le_bytes());
    head.extend(crc32c::crc32c(&head).to_le_bytes());
    if let Ok(Some(written)) = read(&[head, body].concat()) {
        assert_eq!(read(&written).expect("what was written can be read"), Some(written));
    }
});
