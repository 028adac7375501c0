//! Machine profiles: read or refused, written as they were read, and predictions by them are numbers or errors.
#![no_main]

use hyperslab_core::{Datatype, Selection};
use hyperslab_model::{Conditions, Configuration, Profile, RankKind, Warmth, count, predict};

#[path = "../../crates/hyperslab-model/tests/common/transfers.rs"]
mod transfers;

const STACKS: [&str; 4] = ["posix", "hdf5(chunk=64)", "async/hdf5(plane=on)", "log/zarr"];

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(profile) = Profile::from_json(text) else { return };
    let written = profile.to_json().expect("what was read can be written");
    let again = Profile::from_json(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(again.to_json().expect("again"), written);
    let all = Selection::all(&[1 << 12]).expect("a selection");
    let work = transfers::Transfers::making(Datatype::F32, &[1 << 12]).write(all.clone()).read(all).workload();
    for stack in STACKS {
        let configuration = Configuration::of(&stack.parse().expect("a stack")).expect("a configuration");
        let costs = count(&work, &configuration).expect("counts");
        for (warmth, ranks) in [(Warmth::Warm, RankKind::Threads), (Warmth::Cold, RankKind::Processes)] {
            let Ok(found) = predict(&costs, configuration.class(), &profile, Conditions { warmth, ranks }) else {
                continue;
            };
            assert!(!found.seconds.is_nan() && !found.low.is_nan() && !found.high.is_nan(), "{stack}: {found:?}");
            assert!(found.seconds >= 0.0 && found.low <= found.high, "{stack}: {found:?}");
        }
    }
});
