//! What people and programs read: IOR's tables, its JSON and its CSV.

mod json;
mod node;
mod sections;
mod summary;
mod table;
mod words;

use crate::plan::Plan;
use crate::settings::SummaryFormat;
use crate::test_run::{Audience, Row, TestResult};
use hyperslab_core::{Error, Result};
use node::Node;
use std::io::Write;

pub use table::RANKS_HEADER;

/// Where results go, in one of the forms.
pub struct TestReport {
    out: Box<dyn Write + Send>,
    format: SummaryFormat,
    verbose: u64,
    /// The document so far, where it is one.
    head: Vec<(String, Node)>,
    tests: Vec<Node>,
    results: Vec<Node>,
    failed: Option<Error>,
}

impl std::fmt::Debug for TestReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Report").field("format", &self.format).field("verbose", &self.verbose).finish_non_exhaustive()
    }
}

impl TestReport {
    /// Results in `format` to `out`.
    pub fn new(out: Box<dyn Write + Send>, format: SummaryFormat, verbose: u64) -> Self {
        Self { out, format, verbose, head: Vec::new(), tests: Vec::new(), results: Vec::new(), failed: None }
    }

    fn print(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        if let Err(error) = written {
            self.failed.get_or_insert(Error::io("write results", error));
        }
    }

    /// Before all tests.
    pub fn begin(&mut self, command_line: &str) {
        let head = sections::head(command_line);
        match self.format {
            SummaryFormat::Table => {
                let version = env!("CARGO_PKG_VERSION");
                self.print(&format!("hyperslab {version}: IOR's test of parallel I/O\n{}", table::pairs(&head)));
            }
            SummaryFormat::Json => {
                let version = Node::text(format!("hyperslab {}", env!("CARGO_PKG_VERSION")));
                self.head = std::iter::once(("Version".to_owned(), version)).chain(head).collect();
            }
            SummaryFormat::Csv => self.print(table::CSV_HEADER),
        }
    }

    /// Before a test.
    pub fn begin_test(&mut self, plan: &Plan) {
        if self.format == SummaryFormat::Table {
            let place = table::pairs(&sections::place(plan));
            let options = table::pairs(&sections::options(plan));
            self.print(&format!("{place}\nOptions: \n{options}\nResults: \n\n{}", table::HEADER));
        }
    }

    /// After a test: its verification and spread in words, which for programs are part of the document.
    pub fn end_test(&mut self, plan: &Plan, result: &TestResult) {
        let words = words::of(plan, result);
        match self.format {
            SummaryFormat::Table => {
                if self.verbose > 0 {
                    let most = summary::best_rates(result);
                    self.print(&table::best(&most));
                }
                if plan.settings.summary_every_test {
                    self.print(&format!("\n{}", table::summary(&[(plan, result)])));
                }
                self.print(&format!("\n{}", words.join("\n")));
                self.print("\n");
            }
            SummaryFormat::Json => {
                let results = std::mem::take(&mut self.results);
                let test = json::test(plan, result, results, &words, self.verbose);
                self.tests.push(test);
            }
            SummaryFormat::Csv => words.iter().for_each(|line| eprintln!("{line}")),
        }
    }

    /// After all tests. Tells of results that could not be written.
    pub fn finish(mut self, tests: &[(Plan, TestResult)]) -> Result<()> {
        let all: Vec<(&Plan, &TestResult)> = tests.iter().map(|(plan, result)| (plan, result)).collect();
        match self.format {
            SummaryFormat::Table => {
                let finished = sections::finished();
                self.print(&format!("\nSummary of all tests:\n{}{}", table::summary(&all), table::pairs(&[finished])));
            }
            SummaryFormat::Json => {
                let mut document = std::mem::take(&mut self.head);
                document.push(("tests".into(), Node::List(std::mem::take(&mut self.tests))));
                document.push(("summary".into(), Node::List(json::summaries(&all))));
                document.push(sections::finished());
                let text = serde_json::to_string_pretty(&Node::Object(document))
                    .map_err(|e| Error::io("write results", e.into()))?;
                self.print(&format!("{text}\n"));
            }
            SummaryFormat::Csv => {}
        }
        self.failed.map_or(Ok(()), Err)
    }
}

impl Audience for TestReport {
    fn row(&mut self, plan: &Plan, row: &Row) {
        match self.format {
            SummaryFormat::Table => self.print(&table::row(plan, row)),
            SummaryFormat::Csv => self.print(&table::csv_row(plan, row)),
            SummaryFormat::Json => self.results.push(json::row(plan, row)),
        }
        if let Some(file) = &plan.settings.rank_csv {
            let written = table::append_ranks(file, row);
            if let Err(error) = written {
                self.failed.get_or_insert(error);
            }
        }
    }

    fn removed(&mut self, _: &Plan, repetition: u64, seconds: f64) {
        if self.verbose == 0 {
            return;
        }
        match self.format {
            SummaryFormat::Table => self.print(&table::removal(repetition, seconds)),
            SummaryFormat::Csv => {}
            SummaryFormat::Json => self.results.push(json::removal(seconds)),
        }
    }
}
