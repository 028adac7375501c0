//! Stack strings: parsed or refused, and printed as they are parsed.
#![no_main]

use hyperslab_core::units::{parse_duration, parse_rate, parse_size};
use hyperslab_core::{Stack, parse_stacks};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = (parse_size(text), parse_rate(text), parse_duration(text));
    for stack in parse_stacks(text).unwrap_or_default() {
        let printed = stack.to_string();
        assert_eq!(printed.parse::<Stack>().expect("what was printed can be parsed"), stack);
        // Options are checked here; nothing is opened.
        if let Ok(format) = hyperslab_formats::build(&stack.format) {
            let _ = hyperslab_layers::build(&stack, format);
        }
    }
});
