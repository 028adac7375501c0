//! `hyperslab doctor`: what this program can do here, what is missing, and what provides it.

mod building;
mod place;
mod program;
mod ranks;

use crate::arguments::DoctorOptions;
use anyhow::Result;
use std::process::ExitCode;

/// How something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// There, and works.
    Good,
    /// Not there, or only in part; something cannot be done.
    Lacking,
    /// Not there, and only needed for special wishes.
    Absent,
    /// Does not do what it must.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug)]
struct Finding {
    what: String,
    state: State,
    /// What was seen.
    seen: String,
    /// What provides or mends it.
    remedy: Option<String>,
}

impl Finding {
    fn new(what: impl Into<String>, state: State, seen: impl Into<String>) -> Self {
        Self { what: what.into(), state, seen: seen.into(), remedy: None }
    }

    fn good(what: impl Into<String>, seen: impl Into<String>) -> Self {
        Self::new(what, State::Good, seen)
    }

    fn try_this(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// Looks at everything and prints it. Fails when something that must work does not.
pub fn run(options: &DoctorOptions) -> Result<ExitCode> {
    let sections = [
        ("This program", program::look()),
        ("Ranks", ranks::look()),
        ("Storage", place::look(&options.directory)),
        ("To build it anew", building::look()),
    ];
    for (title, findings) in &sections {
        println!("{title}");
        let width = findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
        for finding in findings {
            let mark = match finding.state {
                State::Good => "ok  ",
                State::Lacking => "lack",
                State::Absent => "-   ",
                State::Bad => "BAD ",
            };
            println!("  {mark}  {:<width$}  {}", finding.what, finding.seen);
            if let Some(remedy) = &finding.remedy {
                println!("        {:<width$}  try: {remedy}", "");
            }
        }
        println!();
    }
    let count = |state| sections.iter().flat_map(|(_, all)| all).filter(|finding| finding.state == state).count();
    let (lacking, bad) = (count(State::Lacking), count(State::Bad));
    match (lacking, bad) {
        (0, 0) => println!("All that benchmarks need is there."),
        (_, 0) => println!("Benchmarks run; what is marked `lack` cannot be used or limits what can be measured."),
        _ => println!("What is marked BAD must be mended first."),
    }
    Ok(if bad > 0 { ExitCode::from(crate::arguments::EXIT_FAILED) } else { ExitCode::SUCCESS })
}
