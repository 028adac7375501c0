//! Every format, with representative options, passes the same suite.

use hyperslab_core::{Format, Stack};
use hyperslab_testkit::{Memory, conformance};
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use std::sync::Arc;

/// The stacks that are tested, by the feature they need.
fn stacks() -> Vec<&'static str> {
    let mut out = vec!["null", "posix"];
    if cfg!(feature = "hdf5") {
        out.extend(["hdf5"]);
    }
    if cfg!(feature = "zarr") {
        out.extend(["zarr"]);
    }
    out
}

fn trials(stack: &str) -> Vec<Trial> {
    let built = stack.parse::<Stack>().and_then(|parsed| hyperslab_formats::build(&parsed.format));
    match built {
        Ok(format) => conformance::trials(stack, &format),
        Err(error) => {
            let message = format!("{error:?}");
            vec![Trial::test(format!("{stack}::build"), move || Err(message.into()))]
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let memory: Arc<dyn Format> = Arc::new(Memory);
    let mut all = conformance::trials("memory", &memory);
    all.extend(stacks().into_iter().flat_map(trials));
    libtest_mimic::run(&arguments, all).exit_code()
}
