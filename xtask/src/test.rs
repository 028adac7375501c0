//! `cargo xtask test`: every check there is, one after the other, and a summary. A failed check does not stop the next.

mod durations;
mod mpi;
mod parts;
pub mod programs;
mod side_by_side;
mod summary;
mod tally;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::arguments::{Arguments, take_value};
use crate::fuzz;
use crate::memory_checks;
use crate::setup::{self, Environment, SetupOptions};
use crate::shell;
use crate::tidy;
use crate::workspace::Workspace;

use durations::Durations;
use parts::{Chosen, Part};
use programs::{Meanwhile, Program, Targets};
use side_by_side::{Ended, Job};
use tally::Tally;

/// How long one test program may take before it counts as hung; each of its trials has a limit of its own, far below.
const LIMIT: Duration = Duration::from_secs(15 * 60);
const LONG_LIMIT: Duration = Duration::from_secs(4 * 3600);

/// How a step ended.
pub enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

/// A check, and how it went.
pub struct Step {
    name: &'static str,
    outcome: Outcome,
    time: Duration,
}

/// All that was done.
#[derive(Default)]
pub struct Report {
    steps: Vec<Step>,
    tally: Tally,
    durations: Durations,
}

/// The command `test`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let (part, words) = take_value(words, "--part", "a part of the tests, such as --part layers,mpi")?;
    let chosen = Chosen::parse(part.as_deref())?;
    let arguments = Arguments::parse(&words, &["--fast", "--no-python", "--mpi", "--no-apt", "--long"], false)?;
    let long = arguments.has("--long");
    let options = SetupOptions {
        tests: true,
        clients: !arguments.has("--no-python"),
        long,
        mpi: arguments.has("--mpi") || (chosen.some() && chosen.has("mpi")),
        apt: !arguments.has("--no-apt"),
    };
    // Words for cargo choose among the tests in cargo's way; with a part, they are for its programs.
    let by_cargo = !chosen.some() && !arguments.passed_on.is_empty();
    let own = !by_cargo && chosen.parts().next().is_some();

    let mut report = Report::default();
    let begin = Instant::now();
    let begun = setup::begin(workspace, options)?;
    let meanwhile = if own { Some(Meanwhile::begin(workspace, begun.environment(), Targets::All)?) } else { None };
    let environment = begun.finish(workspace)?;
    report.add("set-up", begin.elapsed(), Outcome::Passed(String::new()));

    if chosen.has("checks") {
        report.step("tidy", || tidied(workspace));
        report.step("format", || formatted(workspace));
    }
    let mut built = Vec::new();
    if let Some(meanwhile) = meanwhile {
        report.step("build", || {
            println!("  begun during the set-up; its progress is in target/xtask/log/build.txt");
            meanwhile.wait()?;
            built = programs::build(workspace, &environment, Targets::All)?;
            Ok(Outcome::Passed(format!("{} test programs", built.len())))
        });
    }
    if chosen.has("checks") {
        report.step("clippy", || match arguments.has("--fast") {
            true => Ok(Outcome::Skipped("--fast".to_owned())),
            false => linted(workspace, &environment),
        });
    }
    if by_cargo {
        report.tests_by_cargo("tests", workspace, &environment, &arguments.passed_on);
        if long {
            report.tests_by_cargo("long", workspace, &environment, &with_ignored(&arguments.passed_on));
        }
    } else if !built.is_empty() {
        let parts: Vec<&'static Part> = chosen.parts().collect();
        report.tests(workspace, &environment, &built, &parts, long, &arguments.passed_on);
        if parts.iter().any(|part| part.has_documentation()) && arguments.passed_on.is_empty() {
            report.tests_by_cargo("examples", workspace, &environment, &["--doc".to_owned()]);
        }
    }
    if long {
        report.long_steps(workspace, &environment, &chosen);
    }
    if options.mpi && chosen.has("mpi") {
        mpi::run(workspace, &environment, long, &mut report);
    }
    report.finish(&environment)
}

/// What needs no build: tidy.
pub fn tidied(workspace: &Workspace) -> Result<Outcome> {
    Ok(Outcome::Passed(format!("{} warnings", tidy::check(workspace)?)))
}

/// What needs no build: the format of sources.
pub fn formatted(workspace: &Workspace) -> Result<Outcome> {
    cargo_check(workspace, &Environment::default(), &["fmt", "--all", "--check"], "cargo fmt --all")
}

/// Clippy, which looks again only at what changed since it last passed, and at what is built on that. Always the whole workspace:
/// for some of it, cargo would choose other features of shared crates, and check these anew.
pub fn linted(workspace: &Workspace, environment: &Environment) -> Result<Outcome> {
    let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    cargo_check(workspace, environment, &words, "mend what clippy lists above")
}

impl Report {
    fn add(&mut self, name: &'static str, time: Duration, outcome: Outcome) {
        self.steps.push(Step { name, outcome, time });
    }

    /// Does `work` and keeps how it went.
    pub fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<Outcome>) {
        println!("\n{name}");
        let begin = Instant::now();
        let outcome = work().unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            Outcome::Failed("see above".to_owned())
        });
        self.add(name, begin.elapsed(), outcome);
    }

    /// Runs what `parts` have of the test programs, as many side by side as there are cores.
    pub fn tests(
        &mut self,
        workspace: &Workspace,
        environment: &Environment,
        built: &[Program],
        parts: &[&'static Part],
        long: bool,
        words: &[String],
    ) {
        let job = |part: &Part, program: &Program| {
            let mut command = programs::command(environment, program);
            command.args(part.words(program)).args(long.then_some("--include-ignored")).args(words);
            Job { title: part.title(program), command, limit: if long { LONG_LIMIT } else { LIMIT } }
        };
        let of_part =
            |part: &'static Part| built.iter().filter(|program| part.has(program)).map(|program| job(part, program));
        let jobs: Vec<Job> = parts.iter().flat_map(|part| of_part(part)).collect();
        self.run_jobs(workspace, jobs);
    }

    /// Runs the tests within libraries and programs.
    pub fn unit_tests(&mut self, workspace: &Workspace, environment: &Environment, built: &[Program]) {
        let parts: Vec<&'static Part> = parts::PARTS.iter().filter(|part| part.has_documentation()).collect();
        self.tests(workspace, environment, built, &parts, false, &[]);
    }

    fn run_jobs(&mut self, workspace: &Workspace, jobs: Vec<Job>) {
        println!("\ntests");
        let begin = Instant::now();
        let (mut tally, mut wrong) = (Tally::default(), 0);
        let count = jobs.len();
        println!("  {count} programs; the output of each comes when it ends, and stays in target/xtask/log/tests");
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let durations = &mut self.durations;
        let ran = side_by_side::run(jobs, cores, &workspace.state().join("log/tests"), |ended: &Ended| {
            println!("\n     Running {} ({:.1} s)", ended.title, ended.time.as_secs_f64());
            print!("{}", ended.output);
            ended.output.lines().for_each(|line| tally.see(line));
            durations.add(ended.title.clone(), ended.time);
            if let Some(why) = &ended.wrong {
                wrong += 1;
                println!("error: {}: {why}", ended.title);
                tally.fail(format!("{}: {why}", ended.title));
            }
        });
        if let Err(error) = &ran {
            eprintln!("error: {error:#}");
        }
        let well = ran.is_ok() && wrong == 0;
        let outcome = if well { Outcome::Passed(tally.to_string()) } else { Outcome::Failed(tally.to_string()) };
        self.tally.take_in(tally);
        self.add("tests", begin.elapsed(), outcome);
    }

    /// Plain `cargo test`: examples in the documentation, and what a person names.
    fn tests_by_cargo(
        &mut self,
        name: &'static str,
        workspace: &Workspace,
        environment: &Environment,
        words: &[String],
    ) {
        let (mut tally, mut durations) = (Tally::default(), std::mem::take(&mut self.durations));
        self.step(name, || {
            let hint = "look for `failures:` above; run one alone with cargo xtask test --fast -- -p CRATE NAME";
            let mut command = workspace.cargo(&["test", "--no-fail-fast"]);
            let chosen = |word: &String| word.starts_with("-p") || word.starts_with("--package");
            if !words.iter().take_while(|word| *word != "--").any(chosen) {
                command.arg("--workspace");
            }
            let ran = shell::run_watched(environment.apply(command.args(words)), hint, |line| {
                tally.see(line);
                durations.see(line);
            });
            Ok(match ran {
                Ok(()) => Outcome::Passed(tally.to_string()),
                Err(error) => {
                    eprintln!("error: {error:#}");
                    Outcome::Failed(tally.to_string())
                }
            })
        });
        self.durations = durations;
        self.tally.take_in(tally);
    }

    /// What is no test program and takes minutes.
    fn long_steps(&mut self, workspace: &Workspace, environment: &Environment, chosen: &Chosen) {
        if chosen.has("fuzz") {
            self.step("fuzz", || {
                fuzz::build(workspace, environment)?;
                fuzz::run_all(workspace, 5).map(|count| Outcome::Passed(format!("{count} targets")))
            });
        }
        if chosen.has("sanitize") {
            self.step("sanitize", || {
                memory_checks::run_sanitized(workspace, environment, &[])?;
                Ok(Outcome::Passed(String::new()))
            });
        }
        if chosen.has("miri") {
            self.step("miri", || {
                let missing = memory_checks::miri_if_there(workspace)?;
                Ok(missing.map_or_else(|| Outcome::Passed(String::new()), |why| Outcome::Skipped(why.to_owned())))
            });
        }
    }

    /// Prints the summary; fails if a step has.
    pub fn finish(&self, environment: &Environment) -> Result<()> {
        summary::print(self, environment);
        if self.steps.iter().any(|step| matches!(step.outcome, Outcome::Failed(_))) {
            bail!("not all checks passed");
        }
        Ok(())
    }
}

/// Runs `cargo WORDS`; skipped where this Rust has no such subcommand.
fn cargo_check(workspace: &Workspace, environment: &Environment, words: &[&str], hint: &str) -> Result<Outcome> {
    if !setup::has_subcommand(workspace, words[0]) {
        return Ok(Outcome::Skipped(format!("this Rust has no cargo {}", words[0])));
    }
    shell::run_visibly(environment.apply(&mut workspace.cargo(words)), hint)?;
    Ok(Outcome::Passed(String::new()))
}

/// The same tests, but those that take minutes.
fn with_ignored(passed_on: &[String]) -> Vec<String> {
    let separator = (!passed_on.iter().any(|word| word == "--")).then_some("--");
    passed_on.iter().map(String::as_str).chain(separator).chain(["--ignored"]).map(str::to_owned).collect()
}
