//! A recorded workload, and a few facts of it.

use anyhow::Result;
use hyperslab_core::units::display_size;
use hyperslab_core::workload::{JsonLines, Step, Workload};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A file with a workload.
pub struct Recording {
    /// Where it is.
    pub path: PathBuf,
    /// The file that the program used, without its end; for the name of this one.
    pub subject: String,
    /// What is in it, or why that cannot be said.
    pub about: String,
    /// Whether it can be run.
    pub playable: bool,
}

impl Recording {
    /// Looks into a file.
    pub fn of(path: &Path) -> Self {
        let (subject, about, playable) = match look(path) {
            Ok((subject, about)) => (subject, about, true),
            Err(error) => ("unreadable".to_owned(), format!("cannot be played: {error:#}"), false),
        };
        let subject = Path::new(&subject).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Self { path: path.to_owned(), subject: subject.unwrap_or_else(|| "workload".into()), about, playable }
    }
}

fn look(path: &Path) -> Result<(String, String)> {
    let again = path.to_owned();
    let workload = JsonLines::workload(Box::new(move || Ok(Box::new(BufReader::new(File::open(&again)?)))))?;
    let summary = workload.validate()?;
    let counts = Counts::of(&workload)?;
    let subject = workload.header.files.first().map(|file| file.name.clone()).unwrap_or_default();
    let mut about = format!("{subject}: {}", many(counts.arrays, "array"));
    for (calls, what, bytes) in
        [(counts.writes, "write", summary.bytes_written), (counts.reads, "read", summary.bytes_read)]
    {
        if calls > 0 {
            about += &format!(", {} of {}", many(calls, what), display_size(bytes));
        }
    }
    if let Some(took) = summary.took {
        about += &format!("; calls took {:.3} s", took.as_secs_f64());
    }
    if !summary.compute.is_zero() {
        about += &format!(", pauses {:.3} s", summary.compute.as_secs_f64());
    }
    if workload.header.recorded.as_ref().is_some_and(|recorded| !recorded.complete) {
        about += "; the program ended before it closed the file";
    }
    Ok((subject, about))
}

#[derive(Default)]
struct Counts {
    arrays: usize,
    writes: usize,
    reads: usize,
}

impl Counts {
    fn of(workload: &Workload) -> Result<Self> {
        let (mut counts, mut names) = (Self::default(), BTreeSet::new());
        for rank in 0..workload.header.ranks {
            for step in workload.steps(rank)? {
                match step? {
                    Step::Create { file, name, .. } | Step::Open { file, name, .. } => drop(names.insert((file, name))),
                    Step::Write { .. } => counts.writes += 1,
                    Step::Read { .. } => counts.reads += 1,
                    _ => {}
                }
            }
        }
        counts.arrays = names.len();
        Ok(counts)
    }
}

fn many(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
