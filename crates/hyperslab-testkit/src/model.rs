//! Random operation sequences: whatever happens to a container, it must equal the oracle.
//!
//! Sequences are the same at every run. `PROPTEST_CASES` asks for more of them, `HYPERSLAB_SEED` for others; a failure
//! prints the seed and the shortest sequence found.

mod operation;
mod world;

use crate::{Overrides, Subject, watchdog};
use hyperslab_core::Format;
use libtest_mimic::{Failed, Trial};
use operation::{Operation, operations};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use std::sync::Arc;
use std::time::Duration;
use world::World;

const LIMIT: Duration = Duration::from_secs(600);

/// The trial for `format`, which test reports call `stack`. Runs `cases` sequences unless told otherwise.
pub fn trials(stack: &str, format: &Arc<dyn Format>, cases: u32) -> Vec<Trial> {
    if !format.caps().data.readable {
        return Vec::new();
    }
    let format = format.clone();
    vec![Trial::test(format!("{stack}::equals the oracle"), move || {
        watchdog::within(LIMIT, move || equals_the_oracle(&format, cases))
    })]
}

/// Plays `cases` sequences on `format` and on the oracle.
pub fn equals_the_oracle(format: &Arc<dyn Format>, cases: u32) -> Result<(), Failed> {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    let seed: u64 = match std::env::var("HYPERSLAB_SEED") {
        Ok(text) => text.parse().map_err(|_| format!("HYPERSLAB_SEED={text:?} is not a number"))?,
        Err(_) => 0,
    };
    let mut bytes = [0x5A; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let result = runner.run(&operations(), |sequence| {
        play(format, &sequence).map_err(|failed| {
            TestCaseError::fail(failed.message().unwrap_or("it failed without a message").to_string())
        })
    });
    result.map_err(|error| format!("with HYPERSLAB_SEED={seed}: {error}").into())
}

fn play(format: &Arc<dyn Format>, sequence: &[Operation]) -> Result<(), Failed> {
    let subject = Subject::new(format.clone(), Overrides::default())?;
    let mut world = World::new(&subject)?;
    let mut played = sequence.iter().try_for_each(|operation| world.apply(operation));
    if played.is_ok() {
        played = world.finish();
    }
    played.map_err(|failed| {
        let story = world.story.join("\n  ");
        format!("{}\nafter\n  {story}\n", failed.message().unwrap_or("no message")).into()
    })
}
