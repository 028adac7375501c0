//! Every format, with options that change what it does, passes the same suite and equals the oracle under random
//! operation sequences.

#[path = "conformance/stacks.rs"]
mod stacks;

use hyperslab_core::Format;
use hyperslab_testkit::{Memory, Overrides, conformance, model};
use libtest_mimic::{Arguments, Trial};
use stacks::{Tested, build, tested};
use std::process::ExitCode;
use std::sync::Arc;

fn trials(stack: &Tested) -> Vec<Trial> {
    let format = match build(stack.text) {
        Ok(format) => format,
        Err(error) => {
            let message = format!("{error:?}");
            return vec![Trial::test(format!("{}::build", stack.text), move || Err(message.into()))];
        }
    };
    let mut trials = conformance::trials(stack.text, &format, stack.overrides);
    if !stack.only.is_empty() {
        trials.retain(|trial| stack.only.iter().any(|part| trial.name().contains(part)));
    }
    trials.retain(|trial| !stack.without.iter().any(|part| trial.name().contains(part)));
    if stack.sequences > 0 {
        trials.extend(model::trials(stack.text, &format, stack.sequences));
    }
    trials
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let memory: Arc<dyn Format> = Arc::new(Memory);
    let mut all = conformance::trials("memory", &memory, Overrides::default());
    all.extend(model::trials("memory", &memory, 40));
    all.extend(tested().iter().flat_map(trials));
    libtest_mimic::run(&arguments, all).exit_code()
}
