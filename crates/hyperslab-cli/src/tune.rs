//! `hyperslab tune`: records a program, looks for what would make it faster, tries that by running the program again, and
//! says what was measured better. docs/tune.md is the user's side of it.

mod answer;
mod comparison;
mod model_search;
mod proposal;
mod recorded_program;
mod report_json;
mod source_calls;
mod timed_run;
pub mod work_folder;

use crate::cli::EXIT_FAILED;
use answer::{Told, seconds};
use anyhow::{Context, Result, bail};
use comparison::{Better, Comparison};
use hyperslab_advisor::{busy_machine, profile_path};
use hyperslab_bench::stop_on_ctrl_c;
use hyperslab_core::units::{display_size, parse_duration};
use hyperslab_core::{CacheState, Filter};
use hyperslab_model::Profile;
use model_search::{Calibration, ModelSearch};
use proposal::{Proposal, StorageChange};
use recorded_program::RecordedProgram;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use timed_run::{Manner, Runner, TimedRun, Unusable};
use work_folder::WorkFolder;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab tune -- python script.py
      what would make it faster, measured by running it again
  hyperslab tune -- sh -c 'python write.py && python read.py'
      several programs on the same files, judged together
  hyperslab tune --may-change filters -- python script.py
      compression may be another
  hyperslab tune --budget 30min --json -- ./simulation > tuned.json

The program is run many times, in copies of the folder it is started in, and
what it prints is not shown. It keeps what it chose (compression, data types,
when it flushes) unless --may-change says otherwise. There are two answers, each
complete: with its libraries as they are, and below hyperslab run. What was not
measured faster is not advised.

Exit codes: 0 an answer was found, \"leave it as it is\" among them; 1 the program
does not end well; 2 bad input or nothing was recorded; 130 stopped.";

/// What may be changed though the program chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MayChange {
    /// Compression and other filters.
    Filters,
    /// The format: said to be out of reach, since the program's own libraries decide it.
    Format,
}

/// Options of `tune`.
#[derive(Debug, clap::Args)]
pub struct TuneOptions {
    /// What may be changed though the program chose it
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    may_change: Vec<MayChange>,
    /// Try at most so many kinds of storage
    #[arg(long = "try", value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=32))]
    tried: u32,
    /// Begin nothing new after so long
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = duration)]
    budget: Duration,
    /// Run the program where it is, and not in copies of the folder: what it writes is replaced each time
    #[arg(long)]
    in_place: bool,
    /// The profile to search with [default: that of this machine, or of ordinary ones]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// Everything that was found.
pub struct Findings<'a> {
    /// What the program does.
    pub recorded: &'a RecordedProgram,
    /// How the words of the program's library are found.
    pub told: Told<'a>,
    /// The profile and the recording side by side.
    pub calibration: Calibration,
    /// Whether the profile is of this machine.
    pub measured: bool,
    /// Proposals that the model compared.
    pub predicted: usize,
    /// What was compared by runs.
    pub comparison: &'a Comparison<'a>,
    /// With its libraries as they are.
    pub plain: Option<Better>,
    /// Below `hyperslab run`.
    pub with_run: Option<Better>,
    /// Modes of it on top of the plain answer, compared with that.
    pub both: Option<Better>,
    /// Whether time was lacking anywhere.
    pub partial: bool,
}

/// Tunes.
pub fn run(options: &TuneOptions) -> Result<ExitCode> {
    if options.may_change.contains(&MayChange::Format) {
        bail!(
            "--may-change format: the program's own libraries decide the format, so another one cannot be tried with it\n  \
             try: hyperslab trace -- COMMAND, then hyperslab advise on the recording"
        );
    }
    let here = std::env::current_dir().context("cannot tell the folder")?;
    let folder = WorkFolder::new(&here, options.in_place)?;
    let progress = Arc::new(hyperslab_run::Progress::default());
    stop_on_ctrl_c(&progress)?;
    let runner = Runner { folder: &folder, command: &options.command, progress };
    let end = Comparison::until(options.budget);

    let recorded = match record(&runner)? {
        Ok(recorded) => recorded,
        Err(why) => {
            eprintln!("hyperslab: the program does not end well, so there is nothing to tune: {why}");
            return Ok(ExitCode::from(EXIT_FAILED));
        }
    };
    let watched = watch(&runner, &recorded)?;
    let (profile, measured) = profile(options.profile.as_deref(), &here)?;
    let memory = profile.machine.memory;
    let first_series = watched.libraries.iter().any(|version| version.starts_with("1."));
    let share = stored_share(&recorded, &watched);
    let (mut search, calibration) = ModelSearch::new(&recorded, profile, first_series, share)?;
    let mut proposals = search.proposals(options.tried as usize, memory);
    if options.may_change.contains(&MayChange::Filters) {
        proposals.extend(filter_proposals(&recorded, proposals.first()));
    }
    let (predicted, not_all) = (search.compared, search.partial);
    eprintln!(
        "tune: one run takes {}; {} kinds of storage and the modes of hyperslab run are tried",
        seconds(watched.seconds),
        proposals.len()
    );
    let mut comparison = Comparison {
        runner: &runner,
        recorded: &recorded,
        netcdf: watched.netcdf,
        usual: watched.seconds,
        end,
        runs: 0,
        busy: busy_machine::is_busy(),
        partial: false,
        tried: Vec::new(),
    };
    let plain = comparison.best_of(&proposals, None)?;
    let with_run = comparison.best_of(&modes(&recorded, &Proposal::default()), None)?;
    let both = match &plain {
        Some(plain) => comparison.best_of(&modes(&recorded, &plain.proposal), Some(&plain.proposal))?,
        None => None,
    };
    let partial = not_all || comparison.partial || recorded.partial;
    let told = Told { command: &options.command, folder: &here, recorded: &recorded, watched: &watched };
    let found = Findings {
        recorded: &recorded,
        told,
        calibration,
        measured,
        predicted,
        comparison: &comparison,
        plain,
        with_run,
        both,
        partial,
    };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report_json::of(&found))?);
    } else {
        print!("{}", words(&found, options));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the program once and reads what it did; or why it did not end well.
fn record(runner: &Runner<'_>) -> Result<Result<RecordedProgram, String>> {
    let place = runner.folder.private()?;
    let outcome = runner.run(&Manner::Recorded(place.path()), &Default::default(), None)?;
    match outcome.fate {
        Err(Unusable::Failed(why)) => return Ok(Err(why)),
        Err(Unusable::TooLong) => return Ok(Err("it did not end".into())),
        Ok(()) => {}
    }
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(place.path())?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    paths.sort();
    if paths.is_empty() {
        bail!(
            "no file was opened by an HDF5 that loads the connector, so nothing was recorded\n  try: hyperslab doctor \
             PROGRAM says why; programs on Zarr or other formats cannot be tuned yet"
        );
    }
    let recorded = RecordedProgram::load(paths.iter().map(PathBuf::as_path))?;
    if !runner.folder.copies() && !recorded.updated.is_empty() {
        bail!(
            "the program changes files that are there ({}), so running it again where it is would not be the same\n  \
             try: without --in-place",
            recorded.updated.iter().cloned().collect::<Vec<_>>().join(", ")
        );
    }
    Ok(Ok(recorded))
}

/// Runs it below a connector that passes all calls on, and sees that its files are in the copy.
fn watch(runner: &Runner<'_>, recorded: &RecordedProgram) -> Result<TimedRun> {
    let outcome = runner.run(&Manner::Watched(recorded), &recorded.outputs(), None)?;
    if let Err(Unusable::Failed(why)) = outcome.fate {
        bail!("the program ended well once and then not: {why}");
    }
    let outputs = recorded.outputs();
    if outcome.files < outputs.len() && runner.folder.copies() {
        bail!(
            "the program writes files that are not in the folder it was started in, or removes them ({})\n  try: start it \
             where its files are, with relative names; or --in-place, if it may replace them many times",
            outputs.into_iter().collect::<Vec<_>>().join(", ")
        );
    }
    Ok(outcome.run)
}

/// The profile that was asked for, that of this machine, or that of an ordinary one, and whether it is of this one.
fn profile(said: Option<&Path>, folder: &Path) -> Result<(Profile, bool)> {
    if let Some(path) = said {
        return Ok((profile_path::load(path, folder, false)?, true));
    }
    let usual = profile_path::usual().and_then(|path| profile_path::load(&path, folder, false));
    let known = usual.ok().filter(|profile| profile.fit(hyperslab_model::Class::Hdf5, CacheState::Warm).is_ok());
    Ok(match known {
        Some(profile) => (profile, true),
        None => (Profile::unmeasured(profile_path::facts(folder)), false),
    })
}

/// The part of its data that filters leave, as far as the files tell.
fn stored_share(recorded: &RecordedProgram, watched: &TimedRun) -> f64 {
    let all: u64 = recorded.groups.iter().map(|group| group.size().saturating_mul(group.datasets.len() as u64)).sum();
    if all == 0 || watched.stored == 0 { 1.0 } else { (watched.stored as f64 / all as f64).clamp(0.001, 1.0) }
}

/// Other filters for what the program creates: none, and the fastest of zlib; with the best chunks, too.
fn filter_proposals(recorded: &RecordedProgram, best: Option<&Proposal>) -> Vec<Proposal> {
    let kinds: [&[Filter]; 2] = [&[], &[Filter::Shuffle, Filter::Deflate(1)]];
    let mut found = Vec::new();
    for base in [Some(&Proposal::default()), best].into_iter().flatten() {
        for filters in kinds {
            let mut one = Proposal { predicted: None, ..base.clone() };
            for (number, group) in recorded.groups.iter().enumerate() {
                let chunked = one.is_chunked(number, group);
                if !group.created || group.spec.filters == filters || !(chunked || filters.is_empty()) {
                    continue;
                }
                let known = one.changes.iter_mut().find(|(changed, _)| *changed == number);
                match known {
                    Some((_, change)) => change.filters = Some(filters.to_vec()),
                    None => one.changes.push((number, StorageChange { layout: None, filters: Some(filters.to_vec()) })),
                }
            }
            if one.changes != base.changes {
                found.push(one);
            }
        }
    }
    found
}

/// Modes of `hyperslab run` that may help such a program, on this storage.
fn modes(recorded: &RecordedProgram, base: &Proposal) -> Vec<Proposal> {
    let mut words = vec!["codec"];
    words.extend((recorded.written.calls > 0).then_some("codec+async"));
    words.extend((recorded.read.calls > 0).then_some("codec+cache"));
    words.into_iter().map(|modes| base.with_modes(modes)).collect()
}

fn words(found: &Findings<'_>, options: &TuneOptions) -> String {
    let recorded = found.recorded;
    let mut text = String::from("Recorded\n");
    let datasets: usize = recorded.groups.iter().map(|group| group.datasets.len()).sum();
    let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    text += &format!("  {}, {}", many(recorded.files().len(), "file"), many(datasets, "dataset"));
    for (what, moved) in [("write", recorded.written), ("read", recorded.read)] {
        if moved.calls > 0 {
            text += &format!(", {} of {}", many(moved.calls as usize, what), display_size(moved.bytes));
        }
    }
    let Calibration { recorded: took, predicted } = found.calibration;
    text += &format!(
        "\n  transfers took {}; {} said {}, and was corrected by that\n\n",
        seconds(took.reading + took.writing),
        if found.measured { "the profile" } else { "costs of ordinary machines" },
        seconds(predicted.reading + predicted.writing)
    );
    let late = "Nothing was measured faster, but there was no time to try all: see below";
    let nothing = match found.comparison.tried.iter().any(|tried| tried.proposal.modes.is_none()) {
        _ if found.partial => late,
        true => "Leave it as it is: nothing that was tried is faster beyond noise",
        false => "Leave it as it is: no other storage is predicted to be faster",
    };
    text += "Plain, with its libraries as they are\n";
    text += &found.told.answer(found.plain.as_ref(), nothing, "");
    text += "\nWith hyperslab run, and the program as it is\n";
    let nothing = if found.partial { late } else { "Leave it as it is: no mode is faster beyond noise" };
    text += &found.told.answer(found.with_run.as_ref(), nothing, "");
    if found.plain.is_some() {
        text += "\nBoth\n";
        let gains = "No mode of hyperslab run gains anything beyond noise on top of the plain answer";
        let nothing = if found.partial { late } else { gains };
        text += &found.told.answer(found.both.as_ref(), nothing, " as the plain answer");
    }
    text += "\nHow this was found\n";
    text += &format!(
        "  {} ways to store were predicted and {} tried by {} runs {}.\n  Files were in memory.\n",
        found.predicted,
        found.comparison.tried.len(),
        found.comparison.runs + 2,
        if options.in_place { "of the program where it is" } else { "in copies of the folder" },
    );
    for tried in &found.comparison.tried {
        let what = tried.proposal.modes.map_or(String::new(), |modes| format!("run --mode {modes}"));
        let storage = found.told.changes(&tried.proposal);
        let storage: Vec<&str> = storage.iter().filter_map(|line| line.strip_prefix("+ ")).collect();
        let storage = match (storage.is_empty(), tried.proposal.keeps_storage()) {
            (_, true) => "storage as it is".to_owned(),
            (true, false) => found.told.changes(&tried.proposal).join("; "),
            (false, false) => storage.join("; "),
        };
        let what = [what, storage].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
        let took = match tried.seconds {
            Some(took) if tried.why.is_empty() => format!("{} beside {}", seconds(took), seconds(tried.beside)),
            Some(took) => format!("{} beside {}: {}", seconds(took), seconds(tried.beside), tried.why),
            None => tried.why.clone(),
        };
        text += &format!("  - {what}: {took}\n");
    }
    if found.partial {
        text += "  This answer is partial: there was no time for all, or the recording was too long\n  to be kept whole. --budget gives more time.\n";
    }
    text
}
