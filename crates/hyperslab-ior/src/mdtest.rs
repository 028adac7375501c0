//! mdtest: how fast directories and files are made, looked at, read and removed.
//!
//! Files are plain ones, or containers of any stack, so that what a format costs per file can be seen next to what the file
//! system costs.

mod items;
mod options;
mod phases;
mod table;
mod tree;

use crate::warnings::Warnings;
use crate::{Failure, RanksAre, RunEnd, timestamp};
use hyperslab_core::{Error, agree};
use hyperslab_run::on_threads;
use options::MdtestRequest;
use phases::Iteration;
use std::io::Write;

/// The options of mdtest, for people.
pub fn help() -> String {
    options::help()
}

/// Runs mdtest with `arguments`. Results go to `out`, everything else to standard error. With MPI collective.
pub fn run(
    arguments: &[String],
    ranks: RanksAre<'_>,
    command_line: &str,
    mut out: Box<dyn Write + Send>,
) -> Result<RunEnd, Failure> {
    let first = matches!(ranks, RanksAre::Threads) || matches!(ranks, RanksAre::Job(comm) if comm.rank() == 0);
    let mut warnings = Warnings::default();
    let parsed = options::parse(arguments, &mut warnings);
    let parsed = match ranks {
        RanksAre::Job(comm) => agree(&**comm, parsed),
        RanksAre::Threads => parsed,
    };
    let written = |e| Failure::Ran(Error::io("write results", e));
    let options = match parsed.map_err(Failure::Asked)? {
        MdtestRequest::Test(options) => *options,
        MdtestRequest::Help => {
            return match first {
                true => out.write_all(help().as_bytes()).map_err(written).map(|()| RunEnd::Right),
                false => Ok(RunEnd::Right),
            };
        }
    };
    if first {
        warnings.tell();
    }
    let size = match ranks {
        RanksAre::Threads => options.ranks,
        RanksAre::Job(comm) => comm.size(),
    };
    let tree = options.tree().map_err(Failure::Asked)?;
    if first {
        let total = options.items(&tree) * size as u64;
        writeln!(
            out,
            "-- started at {} --\n\nmdtest of hyperslab {} was launched with {size} total task(s)\nCommand line used: {command_line}\n\
             Path                : {}\n{size} tasks, {total} files/directories",
            timestamp::now(),
            env!("CARGO_PKG_VERSION"),
            options.directories.join("@"),
        )
        .map_err(written)?;
    }
    let iterations = match ranks {
        RanksAre::Threads => {
            on_threads(size, |comm| phases::run(&options, &tree, &comm)).map(|mut all| all.swap_remove(0))
        }
        RanksAre::Job(comm) => phases::run(&options, &tree, comm),
    };
    let iterations: Vec<Iteration> = iterations.map_err(Failure::Ran)?;
    let wrong: u64 = iterations.iter().map(|iteration| iteration.wrong).sum();
    if first {
        let verified = match (options.verifies(), wrong) {
            (false, _) => "Not verified: -X compares what is read.".to_owned(),
            (true, 0) => "Verified: all bytes that were read were right.".to_owned(),
            (true, wrong) => format!("WRONG DATA: {wrong} bytes."),
        };
        write!(out, "{}{verified}\n-- finished at {} --\n", table::summary(&options, &iterations), timestamp::now())
            .map_err(written)?;
    }
    Ok(if wrong == 0 { RunEnd::Right } else { RunEnd::WrongData })
}
