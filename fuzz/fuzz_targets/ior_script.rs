//! Scripts and command lines of IOR: read or refused, and what is planned from them has steps.
#![no_main]

use hyperslab_ior::{Settings, parse, parse_script, workloads};

/// The first steps of each rank that are looked at.
const STEPS: usize = 64;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut notes = Vec::new();
    let mut tests = parse_script(text, &Settings::default(), &mut notes).unwrap_or_default();
    // A script that a command line names is a file of this machine, and so are hints.
    let names_file = ["scriptfile", "hints", "-f", "f=", "U"].iter().any(|word| text.contains(word));
    if !names_file && !text.contains('f') {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        tests.extend(parse(&words, &mut notes).ok().flatten().unwrap_or_default());
    }
    for test in tests.iter().take(4) {
        let slots = test.block_size.saturating_mul(4) / test.transfer_size.max(1);
        if test.hints_file.is_some() || (test.random_offset > 0 && slots > 1 << 12) {
            continue;
        }
        for workload in workloads(test, 4).into_iter().flatten() {
            for rank in 0..4 {
                for step in workload.steps(rank).expect("a plan has steps").take(STEPS) {
                    step.expect("what was planned can be done");
                }
            }
        }
    }
});
