//! `cargo xtask test`: every check there is, one after the other, and a summary. A failed check does not stop the next.

mod durations;
mod mpi;
mod tally;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::fuzz;
use crate::memory_checks;
use crate::setup::{self, Environment, Wish};
use crate::shell;
use crate::tidy;
use crate::workspace::Workspace;

use durations::Durations;
use tally::Tally;

/// How a step ended.
enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    time: Duration,
}

/// The command `test`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let arguments = Arguments::parse(words, &["--fast", "--no-python", "--mpi", "--no-apt", "--long"], false)?;
    let wish = Wish {
        tests: true,
        clients: !arguments.has("--no-python"),
        long: arguments.has("--long"),
        mpi: arguments.has("--mpi"),
        apt: !arguments.has("--no-apt"),
    };
    let begin = Instant::now();
    let environment = setup::prepare(workspace, wish)?;
    let mut steps = vec![Step { name: "set-up", outcome: Outcome::Passed(String::new()), time: begin.elapsed() }];
    let mut tallies = Vec::new();
    let mut durations = Durations::default();

    steps.push(step("tidy", || Ok(Outcome::Passed(format!("{} warnings", tidy::check(workspace)?)))));
    steps.push(step("format", || {
        let words = ["fmt", "--all", "--check"];
        cargo_check(workspace, &Environment::default(), &words, "cargo fmt --all")
    }));
    steps.push(step("clippy", || {
        if arguments.has("--fast") {
            return Ok(Outcome::Skipped("--fast".to_owned()));
        }
        let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        cargo_check(workspace, &environment, &words, "mend what clippy lists above")
    }));
    let mut tests = |name, words: &[String]| {
        let mut tally = Tally::default();
        steps.push(step(name, || {
            Ok(match run_tests(workspace, &environment, words, &mut tally, &mut durations) {
                Ok(()) => Outcome::Passed(tally.to_string()),
                Err(error) => {
                    eprintln!("error: {error:#}");
                    Outcome::Failed(tally.to_string())
                }
            })
        }));
        tallies.push(tally);
    };
    let long = arguments.has("--long");
    tests("tests", &arguments.passed_on);
    if long {
        tests("long", &with_ignored(&arguments.passed_on));
        steps.push(step("fuzz", || {
            fuzz::build(workspace, &environment)?;
            fuzz::run_all(workspace, 5).map(|count| Outcome::Passed(format!("{count} targets")))
        }));
        steps.push(step("sanitize", || {
            memory_checks::run_sanitized(workspace, &environment, &[])?;
            Ok(Outcome::Passed(String::new()))
        }));
        steps.push(step("miri", || {
            let missing = memory_checks::miri_if_there(workspace)?;
            Ok(missing.map_or_else(|| Outcome::Passed(String::new()), |why| Outcome::Skipped(why.to_owned())))
        }));
    }
    if wish.mpi {
        mpi::run(workspace, &environment, long, &mut steps, &mut durations);
    }

    summarise(&steps, &environment, &tallies, &durations);
    if steps.iter().any(|step| matches!(step.outcome, Outcome::Failed(_))) {
        bail!("not all checks passed");
    }
    Ok(())
}

fn step(name: &'static str, work: impl FnOnce() -> Result<Outcome>) -> Step {
    println!("\n{name}");
    let begin = Instant::now();
    let outcome = work().unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        Outcome::Failed("see above".to_owned())
    });
    Step { name, outcome, time: begin.elapsed() }
}

/// Runs `cargo WORDS`; skipped where this Rust has no such subcommand.
fn cargo_check(workspace: &Workspace, environment: &Environment, words: &[&str], hint: &str) -> Result<Outcome> {
    if !setup::has_subcommand(workspace, words[0]) {
        return Ok(Outcome::Skipped(format!("this Rust has no cargo {}", words[0])));
    }
    shell::run_visibly(environment.apply(&mut workspace.cargo(words)), hint)?;
    Ok(Outcome::Passed(String::new()))
}

/// Plain `cargo test`, so that doc tests and test programs without the usual harness run everywhere alike.
fn run_tests(
    workspace: &Workspace,
    environment: &Environment,
    passed_on: &[String],
    tally: &mut Tally,
    durations: &mut Durations,
) -> Result<()> {
    let mut command = workspace.cargo(&["test", "--no-fail-fast"]);
    let chosen = |word: &String| word.starts_with("-p") || word.starts_with("--package");
    if !passed_on.iter().take_while(|word| *word != "--").any(chosen) {
        command.arg("--workspace");
    }
    command.args(passed_on);
    let hint = "look for `failures:` above; run one alone with cargo xtask test --fast -- -p CRATE NAME";
    shell::run_watched(environment.apply(&mut command), hint, |line| {
        tally.see(line);
        durations.see(line);
    })
}

/// The same tests, but those that take minutes.
fn with_ignored(passed_on: &[String]) -> Vec<String> {
    let separator = (!passed_on.iter().any(|word| word == "--")).then_some("--");
    passed_on.iter().map(String::as_str).chain(separator).chain(["--ignored"]).map(str::to_owned).collect()
}

fn summarise(steps: &[Step], environment: &Environment, tallies: &[Tally], durations: &Durations) {
    println!("\nsummary");
    for step in steps {
        let (result, detail) = match &step.outcome {
            Outcome::Passed(detail) => ("passed", detail.as_str()),
            Outcome::Failed(detail) => ("FAILED", detail.as_str()),
            Outcome::Skipped(why) => ("skipped", why.as_str()),
        };
        let line = format!("  {:<8} {result:<8} {:>7.1} s  {detail}", step.name, step.time.as_secs_f64());
        println!("{}", line.trim_end());
    }
    let total: Duration = steps.iter().map(|step| step.time).sum();
    println!("  {:<8} {:<8} {:>7.1} s", "all", "", total.as_secs_f64());
    let longest = durations.longest();
    if !longest.is_empty() {
        println!("what took longest");
        longest.iter().for_each(|line| println!("  {line}"));
    }
    if tallies.iter().any(|tally| !tally.failures().is_empty()) {
        println!("what failed");
        for line in tallies.iter().flat_map(Tally::failures) {
            println!("  {line}");
        }
    }
    // What the first tests leave to the second ones is run.
    let skipped = tallies.last().map(Tally::skipped).unwrap_or_default();
    if environment.missing.is_empty() && skipped.is_empty() {
        return;
    }
    println!("not checked here");
    for line in environment.missing.iter().chain(&skipped) {
        println!("  {line}");
    }
}
