//! IOR's command line, scripts and reports over every stack, with verified data.
//!
//! [`run`] reads flags or a script into tests, makes a [pattern](hyperslab_kernels::ior) of each, and plays it on ranks that are
//! threads, or on those of an MPI job. The patterns are workloads, so that what is run here can also be predicted.
//!
//! IOR has its own way to measure: moments of all ranks against each other, a deadline that ranks wear out, wrong transfers
//! counted. `play` does that; ranks and formats are those of every other run.

mod api;
mod data;
mod directives;
mod flags;
pub mod mdtest;
mod measured;
mod memory_hog;
mod plain_file;
mod plan;
mod play;
mod report;
mod script;
mod settings;
mod size;
mod stonewall;
mod striping;
mod test_run;
mod timestamp;
mod warnings;

pub use directives::help;
pub use settings::Settings;

use crate::flags::Asked;
use crate::plan::Plan;
use crate::report::TestReport;
use crate::test_run::{Audience, TestResult};
use crate::warnings::Warnings;
use hyperslab_core::workload::Workload;
use hyperslab_core::{Communicator, Error, Result, Stack, agree};
use hyperslab_run::{on_threads, open_stack};
use std::fs::{self, File};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// What ranks are.
#[derive(Debug, Clone, Copy)]
pub enum RanksAre<'a> {
    /// Threads of this process; as many as `-N` says, or one.
    Threads,
    /// This process and the others of an MPI job, each of which calls [`run`] with the same arguments.
    Job(&'a Arc<dyn Communicator>),
}

/// How a run ended, if all tests were run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// All data that were compared were right.
    Right,
    /// Some were not.
    WrongData,
}

/// What kept a run from its end.
#[derive(Debug)]
pub enum Failure {
    /// The options; nothing was started.
    Asked(Error),
    /// A test.
    Ran(Error),
}

/// Parses a command line and, if it names one, its script; nothing is opened but that. `Ok(None)` asks for help.
pub fn parse(arguments: &[String], notes: &mut Vec<String>) -> Result<Option<Vec<Settings>>> {
    let settings = match flags::parse(arguments, notes)? {
        Asked::Help => return Ok(None),
        Asked::Tests(settings) => *settings,
    };
    let Some(path) = settings.script.clone() else { return Ok(Some(vec![settings])) };
    let text = fs::read_to_string(&path).map_err(|e| Error::io("read script", e).target(&path))?;
    parse_script(&text, &settings, notes).map(Some).map_err(|error| error.target(&path))
}

/// Parses the text of a script whose settings begin with `initial`.
pub fn parse_script(text: &str, initial: &Settings, notes: &mut Vec<String>) -> Result<Vec<Settings>> {
    script::parse(text, initial, notes)
}

/// The workloads of a test on so many ranks, the write and the read of its first repetition: what is run can also be predicted.
pub fn workloads(settings: &Settings, ranks: usize) -> Result<[Workload; 2]> {
    let plan = Plan::new(settings.clone(), 0, ranks, ranks, 0, &mut Warnings::default())?;
    Ok([plan.ior.write()?, plan.ior.read(plan.readers(0))?])
}

/// The stack that the API of a test stands for. MPI-IO is told by its name in builds without MPI, too.
pub fn stack(settings: &Settings) -> Result<Stack> {
    let mut stack = api::stack(settings, &mut Vec::new())?;
    stack.format.name.make_ascii_lowercase();
    Ok(stack)
}

/// Runs all tests of a command line; `arguments` are those after the name of the program, `command_line` is shown. Results go
/// to `out` or the file that they name, everything else to standard error. With MPI collective.
pub fn run(
    arguments: &[String],
    ranks: RanksAre<'_>,
    command_line: &str,
    out: Box<dyn Write + Send>,
) -> Result<RunEnd, Failure> {
    let mut notes = Vec::new();
    let first = matches!(ranks, RanksAre::Threads) || matches!(ranks, RanksAre::Job(comm) if comm.rank() == 0);
    let parsed = parse(arguments, &mut notes);
    let parsed = match ranks {
        RanksAre::Job(comm) => agree(&**comm, parsed),
        RanksAre::Threads => parsed,
    };
    let mut out = out;
    let Some(tests) = parsed.map_err(Failure::Asked)? else {
        if first {
            out.write_all(help().as_bytes()).map_err(|e| Failure::Ran(Error::io("write help", e)))?;
        }
        return Ok(RunEnd::Right);
    };
    let mut warnings = Warnings::default();
    notes.into_iter().for_each(|note| warnings.note(note));
    let plans = plans(tests, ranks, &mut warnings);
    if first {
        warnings.tell();
    }
    let plans = plans.map_err(Failure::Asked)?;
    let report = first.then(|| open_report(&plans, command_line, out)).transpose();
    let report = match ranks {
        RanksAre::Job(comm) => agree(&**comm, report),
        RanksAre::Threads => report,
    };
    run_all(plans, ranks, report.map_err(Failure::Asked)?).map_err(Failure::Ran)
}

fn plans(tests: Vec<Settings>, ranks: RanksAre<'_>, warnings: &mut Warnings) -> Result<Vec<Plan>> {
    let now = match ranks {
        RanksAre::Threads => timestamp::seconds() as u32,
        RanksAre::Job(comm) => {
            // The same for all.
            let mut said = (timestamp::seconds() as u32).to_le_bytes().to_vec();
            comm.broadcast(0, &mut said)?;
            said.try_into().map_or(0, u32::from_le_bytes)
        }
    };
    let mut plans = Vec::with_capacity(tests.len());
    for (id, settings) in tests.into_iter().enumerate() {
        warnings.are_errors = settings.warnings_are_errors;
        let (ranks, per_node) = match ranks {
            RanksAre::Threads => {
                let ranks = settings.tasks.unwrap_or(1);
                if ranks > MOST_THREADS {
                    return Err(Error::invalid("plan test", format!("{ranks} ranks are too many threads"))
                        .hint(format!("at most {MOST_THREADS}; start an MPI job for more")));
                }
                (ranks, ranks)
            }
            RanksAre::Job(comm) => {
                let size = comm.size();
                match settings.tasks {
                    Some(ranks) if ranks < size => {
                        return Err(Error::unsupported(
                            "plan test",
                            format!("-N {ranks} of the {size} ranks of this job: all of them take part"),
                        )
                        .hint(format!("start a job of {ranks} ranks")));
                    }
                    Some(ranks) if ranks > size => {
                        warnings.warn(format!(
                            "More tasks requested ({ranks}) than available ({size}), running with {size} tasks"
                        ))?;
                    }
                    _ => {}
                }
                (size, comm.split_by_node()?.size())
            }
        };
        let mut plan = Plan::new(settings, id, ranks, per_node, now, warnings)?;
        // What this build does not have is told before anything is opened.
        plan.ior.chunks = open_stack(&plan.stack)?.caps().data.chunks;
        plans.push(plan);
    }
    Ok(plans)
}

/// The most ranks that are threads of one process.
const MOST_THREADS: usize = 4096;

/// Results have one form and one place: those of the last test that names some.
fn open_report(plans: &[Plan], command_line: &str, out: Box<dyn Write + Send>) -> Result<TestReport> {
    let settings = || plans.iter().map(|plan| &plan.settings);
    let Some(last) = settings().next_back() else {
        return Err(Error::invalid("read script", "it has no tests"));
    };
    let mut out = out;
    if let Some(path) = &last.summary_file {
        let file = File::create(path).map_err(|e| Error::io("write results", e).target(path))?;
        eprintln!("Writing output to {path}");
        out = Box::new(file);
    }
    let mut files: Vec<&String> = settings().filter_map(|settings| settings.rank_csv.as_ref()).collect();
    files.dedup();
    for path in files {
        fs::write(path, report::RANKS_HEADER).map_err(|e| Error::io("write times of ranks", e).target(path))?;
    }
    let mut report = TestReport::new(out, last.summary_format, last.verbose);
    report.begin(command_line);
    Ok(report)
}

fn run_all(plans: Vec<Plan>, ranks: RanksAre<'_>, mut report: Option<TestReport>) -> Result<RunEnd> {
    let mut done: Vec<(Plan, TestResult)> = Vec::with_capacity(plans.len());
    let mut failed = None;
    for plan in plans {
        if let Some(report) = &mut report {
            report.begin_test(&plan);
        }
        let result = if plan.settings.dry_run {
            Ok(TestResult::default())
        } else {
            match ranks {
                RanksAre::Threads => on_threads_of(&plan, report.as_mut()),
                RanksAre::Job(comm) => {
                    test_run::run(&plan, comm, report.as_mut().map(|report| report as &mut dyn Audience))
                }
            }
        };
        match result {
            Ok(result) => {
                if let Some(report) = &mut report {
                    report.end_test(&plan, &result);
                }
                done.push((plan, result));
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let wrong = |result: &TestResult| {
        result.checked_writes.wrong.bytes > 0 || result.rows.iter().any(|row| row.measured.wrong.bytes > 0)
    };
    let outcome = if done.iter().any(|(_, result)| wrong(result)) { RunEnd::WrongData } else { RunEnd::Right };
    let finished = report.map_or(Ok(()), |report| report.finish(&done));
    match failed {
        Some(error) => Err(error),
        None => finished.map(|()| outcome),
    }
}

/// Runs a test on threads; the first of them speaks to `audience`.
fn on_threads_of(plan: &Plan, audience: Option<&mut TestReport>) -> Result<TestResult> {
    let audience = Mutex::new(audience);
    let mut results = on_threads(plan.ranks, |comm| {
        let mut mine = None;
        let mut guard = None;
        if comm.rank() == 0 {
            let guard = guard.insert(audience.lock().unwrap_or_else(PoisonError::into_inner));
            mine = guard.as_mut().map(|report| &mut **report as &mut dyn Audience);
        }
        test_run::run(plan, &comm, mine)
    })?;
    Ok(results.swap_remove(0))
}
