//! What else differs between two results files than the figures.

use hyperslab_core::units::display_size;
use hyperslab_run::{Machine, Results};
use std::collections::BTreeSet;

/// One line for everything that may explain a difference by itself.
pub fn warnings(a: &Results, b: &Results) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut differ = |what: &str, a: &str, b: &str| {
        if a != b {
            warnings.push(format!("different {what}: {a} and {b}"));
        }
    };
    let (of_a, of_b) = (&a.machine, &b.machine);
    differ("machine", &of_a.host, &of_b.host);
    differ("operating system", &of_a.system, &of_b.system);
    differ("processor", &of_a.processor, &of_b.processor);
    differ("number of processors", &of_a.processors.to_string(), &of_b.processors.to_string());
    differ("memory", &display_size(of_a.memory), &display_size(of_b.memory));
    differ("file system", &of_a.file_system, &of_b.file_system);
    differ("device", &of_a.device, &of_b.device);
    let libraries: BTreeSet<&String> = of_a.libraries.keys().chain(of_b.libraries.keys()).collect();
    for name in libraries {
        let version = |m: &Machine| m.libraries.get(name).map_or("unknown", String::as_str).to_owned();
        differ(&format!("version of {name}"), &version(of_a), &version(of_b));
    }
    differ("version of the program", &a.program, &b.program);
    for (results, which) in [(a, "first"), (b, "second")] {
        if !results.complete {
            warnings.push(format!("the run of the {which} file did not come to its end"));
        }
    }
    warnings
}
