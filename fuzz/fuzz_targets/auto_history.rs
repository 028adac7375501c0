//! What the layer `auto` keeps between runs: read or refused, used for decisions without a panic, and written as it was read.
#![no_main]

use hyperslab_fuzz::read_again;
use hyperslab_layers::auto_fuzz_api::history;

libfuzzer_sys::fuzz_target!(|text: &[u8]| read_again(text, history));
