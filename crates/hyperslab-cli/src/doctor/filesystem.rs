//! The file system that benchmarks would use.

use super::{Finding, State};
use crate::mpi_job::find_program;
use hyperslab_core::units::display_size;
use hyperslab_run::{Machine, page_cache_control, space_available};
use std::path::Path;

/// Tools that set or show how files are striped over servers, by file system.
const STRIPING: [(&str, &str, &str); 3] = [
    ("lustre", "lfs", "the Lustre client's tools"),
    ("beegfs", "beegfs-ctl", "beegfs-utils"),
    ("gpfs", "mmlsattr", "the Spectrum Scale client's tools"),
];
/// File systems that live in memory.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// Type, room, striping and page cache of `directory`.
pub fn look(directory: &Path) -> Vec<Finding> {
    let machine = Machine::of(directory);
    let (kind, device) = (machine.file_system.as_str(), &machine.device);
    let mut findings = vec![Finding::good("directory", format!("{} on {kind} ({device})", directory.display()))];
    match space_available(directory) {
        Ok(bytes) => findings.push(Finding::good("room", display_size(bytes))),
        Err(error) => {
            let remedy = "another directory with --directory";
            findings.push(Finding::new("room", State::Bad, error.to_string()).try_this(remedy));
            return findings;
        }
    }
    let striped = STRIPING.iter().find(|(file_system, ..)| kind.starts_with(file_system));
    findings.push(match striped.map(|(_, tool, from)| (tool, from, find_program(tool))) {
        None => Finding::good("striping", format!("{kind} does not stripe files")),
        Some((tool, _, Some(path))) => Finding::good("striping", format!("{tool} ({})", path.display())),
        Some((tool, from, None)) => Finding::new("striping", State::Lacking, format!("{tool} is not on the PATH"))
            .try_this(format!("install {from}")),
    });
    findings.push(match page_cache_control(directory) {
        _ if IN_MEMORY.contains(&kind) => {
            Finding::new("page cache", State::Lacking, format!("{kind} is memory: --cold means nothing here"))
                .try_this("a directory on a disk for cold figures")
        }
        Ok(left) if left < 0.01 => Finding::good("page cache", "files can be dropped from it: --cold works"),
        Ok(left) => {
            Finding::new("page cache", State::Lacking, format!("{:.0} % of a dropped file stayed in it", left * 100.0))
                .try_this("another directory for cold figures")
        }
        Err(error) => Finding::new("page cache", State::Bad, error.to_string().replace('\n', ";")),
    });
    findings
}
