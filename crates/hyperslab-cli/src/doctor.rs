//! `hyperslab doctor`: what this program can do here, what is missing, and what provides it.

mod building;
mod connector;
mod filesystem;
mod program;
mod ranks;

use crate::cli::DoctorOptions;
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab doctor
      this machine, and the Python on the PATH
  hyperslab doctor .venv/bin/python
      whether its h5py, netCDF4 and others load the HDF5 connector
  hyperslab doctor ./simulation
      which libhdf5 it is linked with; the program is not run

Exit codes: 0 nothing is wrong; 1 something that must work does not, or a
program that was named does not load the connector.";

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

/// Looks at everything, or at the programs that were named, and prints it. Fails when something that must work does not.
pub fn run(options: &DoctorOptions) -> Result<ExitCode> {
    if !options.programs.is_empty() {
        let sections = connector::look_at(&options.programs);
        let usable =
            count(&sections, State::Lacking) + count(&sections, State::Absent) + count(&sections, State::Bad) == 0;
        let verdict = if usable {
            "All of it loads the connector: hyperslab run -- COMMAND"
        } else {
            "What is not marked ok does not load the connector."
        };
        print(&sections, verdict, options.json);
        return Ok(if usable { ExitCode::SUCCESS } else { ExitCode::from(crate::cli::EXIT_FAILED) });
    }
    let mut sections = vec![
        ("This program".to_owned(), program::look()),
        ("Ranks".to_owned(), ranks::look()),
        ("Storage".to_owned(), filesystem::look(&options.directory)),
        ("To build it anew".to_owned(), building::look()),
    ];
    sections.extend(connector::look());
    let verdict = match (count(&sections, State::Lacking), count(&sections, State::Bad)) {
        (0, 0) => "All that benchmarks need is there.",
        (_, 0) => "Benchmarks run; what is marked `lack` cannot be used or limits what can be measured.",
        _ => "What is marked BAD must be mended first.",
    };
    print(&sections, verdict, options.json);
    let bad = count(&sections, State::Bad) > 0;
    Ok(if bad { ExitCode::from(crate::cli::EXIT_FAILED) } else { ExitCode::SUCCESS })
}

fn count(sections: &[(String, Vec<Finding>)], state: State) -> usize {
    sections.iter().flat_map(|(_, all)| all).filter(|finding| finding.state == state).count()
}

impl State {
    /// As it is printed, and in JSON.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            State::Good => ("ok  ", "ok"),
            State::Lacking => ("lack", "lacking"),
            State::Absent => ("-   ", "absent"),
            State::Bad => ("BAD ", "bad"),
        }
    }
}

fn document(sections: &[(String, Vec<Finding>)], verdict: &str) -> Value {
    let finding = |finding: &Finding| json!({"what": finding.what, "state": finding.state.words().1, "seen": finding.seen, "try": finding.remedy});
    let section = |(title, all): &(String, Vec<Finding>)| json!({"title": title, "findings": all.iter().map(finding).collect::<Vec<_>>()});
    json!({"verdict": verdict, "sections": sections.iter().map(section).collect::<Vec<_>>()})
}

fn print(sections: &[(String, Vec<Finding>)], verdict: &str, as_json: bool) {
    if as_json {
        println!("{:#}", document(sections, verdict));
        return;
    }
    for (title, findings) in sections {
        println!("{title}");
        let width = findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
        for finding in findings {
            println!("  {}  {:<width$}  {}", finding.state.words().0, finding.what, finding.seen);
            if let Some(remedy) = &finding.remedy {
                println!("        {:<width$}  try: {remedy}", "");
            }
        }
        println!();
    }
    println!("{verdict}");
}
