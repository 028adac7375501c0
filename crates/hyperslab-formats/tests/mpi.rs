//! Formats on the processes of an MPI job: the conformance suite, and what happens when a rank fails. Starts itself
//! under `mpirun`; a hang is a failure.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "mpi/failing.rs"]
mod failing;
#[path = "mpi/mpiio.rs"]
mod mpiio;
#[path = "mpi/suite.rs"]
mod suite;

use hyperslab_comm::MpiJob;
use hyperslab_testkit::under_mpi;
use std::process::ExitCode;
use std::time::Duration;

/// Long enough for the whole suite of one stack on one rank.
const LIMIT: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    if let Some(task) = under_mpi::task() {
        let job = MpiJob::start().unwrap();
        match task.split_once(' ') {
            Some(("suite", stack)) => suite::run(&job, stack),
            Some(("fail", stack)) => failing::one_has_an_error(&job.world(), stack),
            Some(("die", stack)) => failing::one_dies(&job.world(), stack),
            Some(("mpiio", "")) => mpiio::run(job),
            _ => panic!("there is no task {task:?}"),
        }
        return ExitCode::SUCCESS;
    }
    // A part of the name of a stack may be given, as to other tests.
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    let mut failures = 0;
    for stack in suite::stacks().into_iter().filter(|stack| stack.text.contains(&wanted)) {
        for &ranks in stack.ranks {
            failures += usize::from(!report(stack.text, ranks, "suite", |job| job.success()));
        }
        failures += usize::from(!report(stack.text, 3, "fail", |job| job.success()));
        failures += usize::from(!report(stack.text, 3, "die", |job| !job.status.success() && !job.hung));
    }
    if "mpiio".contains(&wanted) {
        for ranks in [1, 2] {
            failures += usize::from(!report("mpiio", ranks, "mpiio", |job| job.success()));
        }
    }
    println!("{}", if failures == 0 { "all passed".into() } else { format!("{failures} failed") });
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one task on one stack and says in one line how it went; all of it if it failed.
fn report(stack: &str, ranks: usize, task: &str, good: impl Fn(&under_mpi::EndedJob) -> bool) -> bool {
    let stack_of = |task| if task == "mpiio" { "" } else { stack };
    let job = under_mpi::run(ranks, &format!("{task} {}", stack_of(task)), LIMIT).unwrap();
    let what = match task {
        "suite" => job.stdout.trim(),
        "mpiio" => "the files of posix, large calls, refusals and errors",
        "fail" => "an error of one rank is everyone's",
        _ => "a rank that dies ends the job",
    };
    if good(&job) {
        println!("{stack} on {ranks} ranks: {what}");
        return true;
    }
    let ended = if job.hung { "hung".to_owned() } else { job.status.to_string() };
    println!("{stack} on {ranks} ranks: FAILED: {what} ({ended})\n{}{}", job.stdout, job.stderr);
    false
}
