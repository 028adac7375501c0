//! Every layer over formats of every kind passes the suite that formats pass, and equals the oracle under random
//! operation sequences.

use hyperslab_core::{Format, Result, Stack};
use hyperslab_testkit::{Memory, Overrides, conformance, model};
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

/// Stacks as a user writes them, and how many random sequences each plays. `memory` is the oracle itself, `DIR` a folder for
/// staged writes.
const STACKS: &[(&str, u32)] = &[
    ("async/memory", 40),
    ("async(threads=3,memory=4KiB,ahead=2)/memory", 40),
    ("async/hdf5", 10),
    ("async(threads=3)/zarr", 10),
    ("async/twophase(aggregators=2,buffer=4KiB,unit=64)/posix", 10),
    ("auto(state=off)/memory", 40),
    ("auto(state=DIR)/hdf5", 10),
    ("auto(state=off,dir=DIR)/memory", 20),
    ("auto(state=DIR,dir=DIR)/posix", 20),
    ("cache/memory", 40),
    ("cache(memory=4KiB)/memory", 60),
    ("cache/hdf5", 10),
    ("cache(dir=DIR,stage=64KiB)/memory", 40),
    ("cache(dir=DIR,threads=3,memory=8KiB)/posix", 20),
    ("cache(dir=DIR,stage=64KiB,threads=2)/hdf5", 10),
    ("log(dir=DIR)/memory", 40),
    ("log(dir=DIR,limit=64KiB,buffer=4KiB,memory=4KiB,age=1ms)/memory", 60),
    ("log(dir=DIR,drain=1)/posix", 20),
    ("log(dir=DIR,drain=off)/hdf5", 10),
    ("log(dir=DIR,durability=none,limit=64KiB)/memory", 40),
    ("log(dir=DIR,per=node,limit=256KiB)/memory", 20),
    ("loglayout/memory", 60),
    ("loglayout(room=64)/memory", 60),
    ("loglayout/posix", 20),
    ("loglayout/hdf5", 20),
    ("loglayout/log(dir=DIR)/posix", 10),
    ("twophase/memory", 20),
    ("twophase(aggregators=2,buffer=4KiB,unit=64)/posix", 10),
    ("twophase(aggregators=2,domains=even,buffer=4KiB,unit=64)/hdf5", 10),
    ("slow(8GiB/s,10us)/memory", 5),
    ("trace/memory", 5),
    ("trace(gap=1ms)/hdf5", 0),
    ("async(threads=3)/netcdf3", 10),
    ("cache(dir=DIR,stage=64KiB,threads=2)/netcdf3(header_pad=0)", 10),
    ("log(dir=DIR,drain=1)/netcdf3(header_pad=0)", 10),
    ("twophase(aggregators=2,buffer=4KiB,unit=64)/netcdf3", 10),
    ("trace/netcdf3", 0),
    ("log(dir=DIR,drain=1)/netcdf4", 5),
    ("twophase(aggregators=2,buffer=4KiB,unit=64)/netcdf4", 0),
];

/// Others, which repeat much of the above: `cargo xtask test --long`.
const LONG: &[(&str, u32)] = &[
    ("auto(state=off,memory=8KiB)/zarr", 10),
    ("auto(state=off)/twophase(aggregators=2,buffer=4KiB,unit=64)/posix", 10),
    ("cache(memory=64KiB,block=2x3)/posix", 20),
    ("cache/zarr", 10),
    ("cache/async/memory", 20),
    ("log(dir=DIR)/zarr", 10),
    ("log(dir=DIR)/async/posix", 10),
    ("loglayout(room=100)/zarr", 20),
    ("loglayout/twophase(aggregators=2,buffer=4KiB,unit=64)/posix", 10),
    ("loglayout(room=300)/cache(dir=DIR)/memory", 20),
    ("twophase(aggregators=2,domains=even,buffer=64,unit=16)/memory", 10),
    ("twophase(aggregators=2,buffer=4KiB,unit=64)/zarr", 10),
    ("slow(8GiB/s,0)/hdf5", 0),
    ("async(threads=3)/netcdf4(plane=on)", 10),
    ("cache(dir=DIR,stage=64KiB,threads=2)/netcdf4", 10),
    ("trace/netcdf4", 0),
    ("trace/posix", 10),
    ("async(memory=4KiB)/posix", 10),
    ("async(threads=2,memory=8KiB)/hdf5(layout=chunked)", 0),
    ("async(threads=2)/twophase(aggregators=2,buffer=4KiB,unit=64)/hdf5", 10),
    ("auto(choices=async,state=off)/posix", 10),
    ("auto(choices=log,state=off,dir=DIR)/hdf5(layout=chunked)", 10),
    ("loglayout/auto(state=off)/posix", 10),
    ("cache(memory=16KiB,block=64)/memory", 60),
    ("cache/posix(files=per_rank)", 0),
    ("cache(memory=8KiB)/hdf5(layout=chunked)", 10),
    ("cache(memory=8KiB,block=64)/async(threads=3,memory=4KiB,ahead=2)/posix", 20),
    ("cache(dir=DIR)/hdf5(layout=chunked)", 0),
    ("log(dir=DIR,buffer=4KiB)/hdf5(layout=chunked)", 0),
    ("log(dir=DIR)/twophase(aggregators=2,buffer=4KiB,unit=64)/posix", 0),
    ("log(dir=DIR,io=direct)/posix", 0),
    ("loglayout(room=500)/hdf5(layout=chunked)", 10),
    ("loglayout/async(threads=2)/posix", 10),
    ("cache/loglayout(room=300)/memory", 20),
    ("twophase(aggregators=3,domains=static-cyclic,buffer=128,unit=32)/posix", 10),
    ("twophase(aggregators=5,domains=group-cyclic,group=2,buffer=96,unit=24)/posix(files=per_rank)", 0),
    ("twophase(aggregators=2,buffer=100,unit=64)/hdf5(layout=chunked)", 0),
    ("slow(8GiB/s,10us,jitter=50%)/posix", 0),
    ("twophase(aggregators=2)/slow(8GiB/s,10us)/posix", 0),
    ("twophase(aggregators=2)/trace/posix", 0),
];

/// Where writes are staged, while the tests run.
static STAGED: LazyLock<std::io::Result<tempfile::TempDir>> = LazyLock::new(tempfile::tempdir);

fn build(text: &str) -> Result<Arc<dyn Format>> {
    let folder = STAGED.as_ref().map(|folder| folder.path().display().to_string()).unwrap_or_default();
    let stack: Stack = text.replace("DIR", &folder).parse()?;
    let bottom: Arc<dyn Format> = match stack.format.name.as_str() {
        "memory" => Arc::new(Memory),
        _ => hyperslab_formats::build(&stack.format)?,
    };
    hyperslab_layers::build(&stack, bottom)
}

fn trials((text, sequences): &(&'static str, u32)) -> Vec<Trial> {
    match build(text) {
        Err(error) => {
            let message = format!("{error:?}");
            vec![Trial::test(format!("{text}::build"), move || Err(message.into()))]
        }
        Ok(format) => {
            // A trace is kept when its container goes.
            let overrides = Overrides { beside: text.contains("trace"), ..Overrides::default() };
            let mut trials = conformance::trials(text, &format, overrides);
            if text.starts_with("loglayout") && text.ends_with("/memory") {
                // The log is an array of bytes, each of which the oracle keeps as an element: half a minute.
                let slow = |trial: &Trial| trial.name().ends_with("::a larger array than any buffer inside");
                trials = trials
                    .into_iter()
                    .map(|trial| if slow(&trial) { trial.with_ignored_flag(true) } else { trial })
                    .collect();
            }
            if text.contains("netcdf3") {
                // A dimension of length 0 is the one that grows there.
                let empty = ["::rank/without elements", "::1 ranks/more ranks than rows"];
                trials.retain(|trial| !empty.iter().any(|name| trial.name().ends_with(name)));
            }
            if text.contains("netcdf4") {
                // Opaque types, which few of its readers know.
                let opaque =
                    ["datatype/nested", "fields/nested", "fields/in chunks", "fields/of elements never written"];
                trials.retain(|trial| !opaque.iter().any(|name| trial.name().contains(name)));
            }
            if *sequences > 0 {
                trials.extend(model::trials(text, &format, *sequences));
            }
            trials
        }
    }
}

fn main() -> ExitCode {
    hyperslab_testkit::temporary_files_in_memory();
    let arguments = Arguments::from_args();
    let long = LONG.iter().flat_map(trials).map(|trial| trial.with_ignored_flag(true));
    let conclusion = libtest_mimic::run(&arguments, STACKS.iter().flat_map(trials).chain(long).collect());
    if let Ok(folder) = STAGED.as_ref() {
        // Nobody drops what is static. What ranks that failed had staged is left in it.
        let _ = std::fs::remove_dir_all(folder.path());
    }
    conclusion.exit_code()
}
