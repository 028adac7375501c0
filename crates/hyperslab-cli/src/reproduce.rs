//! `hyperslab reproduce`: published figures and tables as small studies of this machine.

mod judge;
mod published;
mod studies;

use crate::table::{Align, Table, wrapped};
use crate::terminal;
use anyhow::{Context, Result, bail};
use clap::Args;
use hyperslab_core::suggest;
use hyperslab_report::{Claim, Form, Input, Report};
use hyperslab_run::Results;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use studies::{STUDIES, Study, StudyWork, Trial};

pub const EXAMPLES: &str = "\
Examples:
  hyperslab reproduce --list
      what there is, and where it was published
  hyperslab reproduce locality metadata-time  two of them
  hyperslab reproduce                         all; some minutes

A study holds when the ratio that was published goes the same way here, with its
95 % interval. Sizes are those of a laptop; storage is the page cache, or
emulated by the layer slow where a figure is about slow storage. The page says
which.

Exit codes: 0 all studies ran, 1 one could not, 2 bad input.";

/// Options of `reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceOptions {
    /// Studies [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List the studies and where they were published
    #[arg(long)]
    list: bool,
    /// Sizes that only show that everything works
    #[arg(long)]
    tiny: bool,
    /// Repetitions of each case
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Where data, results and the page go
    #[arg(long, value_name = "DIR", default_value = "hyperslab-reproduce")]
    directory: PathBuf,
    /// Print the claims as JSON
    #[arg(long)]
    json: bool,
}

/// Runs studies, and sets what comes out beside what was published.
pub fn run(options: &ReproduceOptions) -> Result<ExitCode> {
    if options.list {
        println!("{}", list().render());
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = choose(&options.names)?;
    let program = std::env::current_exe().context("find this program")?;
    let data = options.directory.join("data");
    let mut claims: Vec<Claim> = Vec::new();
    let mut inputs = Vec::new();
    let mut failed = false;
    for (number, study) in chosen.iter().enumerate() {
        let mut results = Vec::new();
        for trial in study.trials {
            eprintln!("[{}/{}] {}: {}", number + 1, chosen.len(), study.name, trial.name);
            let out = options.directory.join(format!("{}-{}", study.name, trial.name));
            measure(&program, trial, &data, &out, options)
                .with_context(|| format!("study {}, {}", study.name, trial.name))?;
            let path = out.join("results.json");
            results.push((trial.name, Results::load(&path)?));
            inputs.push(Input::load(&path)?);
        }
        failed |= results.iter().any(|(_, r)| r.cases.iter().any(|c| c.status == hyperslab_run::Status::Failed));
        claims.extend(study.claims.iter().map(|claim| judge::judge(study, claim, &results)));
        // What was measured is in the results; the data are of no use any more.
        let _ = fs::remove_dir_all(&data);
    }
    let mut report = Report::of(inputs);
    report.title = "Published figures on this machine".into();
    report.verdict = verdict(&claims);
    report.details.insert(
        0,
        "Scaled down to one machine: a claim holds when its ratio goes the same way here, with the 95 % interval."
            .into(),
    );
    report.changes.clear();
    report.claims = claims;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report.claims).context("print claims")?);
    } else {
        println!("{}\n", report.verdict);
        print!("{}", table(&report.claims));
    }
    let page = options.directory.join("report.html");
    crate::report::write(&page, &Form::Html.of(&report), true)?;
    if !options.json {
        println!("Report: {}", page.display());
    }
    Ok(if failed { ExitCode::from(crate::cli::EXIT_FAILED) } else { ExitCode::SUCCESS })
}

fn choose(names: &[String]) -> Result<Vec<&'static Study>> {
    if names.is_empty() {
        return Ok(STUDIES.iter().collect());
    }
    let find = |name: &String| match STUDIES.iter().find(|study| study.name == name) {
        Some(study) => Ok(study),
        None => bail!("there is no study {name:?}\n  try: {}", suggest::hint(name, STUDIES.iter().map(|s| s.name))),
    };
    names.iter().map(find).collect()
}

fn list() -> Table {
    let mut table = Table::new(&[("study", Align::Left), ("what", Align::Left), ("published", Align::Left)]);
    for study in STUDIES {
        let claims = study.claims.iter().filter_map(|claim| published::find(claim.published));
        let mut places: Vec<String> = claims.map(|row| row.cited()).collect();
        places.dedup();
        table.row(vec![study.name.into(), study.about.into(), places.join("; ")]);
    }
    table.dropping(&["published"])
}

/// Runs `bench` as a user would, so that the results say how to do it again. What it prints is kept beside them.
fn measure(program: &Path, trial: &Trial, data: &Path, out: &Path, options: &ReproduceOptions) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
    let mut command = Command::new(program);
    command.arg("bench");
    match trial.work {
        StudyWork::Kernel { usual, tiny } => {
            command.args((if options.tiny { tiny } else { usual }).split_whitespace());
        }
        StudyWork::Workflow { text, usual, tiny } => {
            let path = out.join("workflow.json");
            let size = if options.tiny { tiny } else { usual };
            fs::write(&path, text.replace("SIZE", size)).with_context(|| format!("write {}", path.display()))?;
            command.arg(path);
        }
    }
    let log_directory = options.directory.join("log");
    fs::create_dir_all(&log_directory).with_context(|| format!("make {}", log_directory.display()))?;
    let stacks = trial.stacks.replace("LOG", &log_directory.display().to_string());
    command.args(["--stack", &stacks, "--ranks", &trial.ranks.to_string(), "--launcher", "threads"]);
    command.args(["--repeat", &options.repeat.to_string(), "--overwrite", "--directory"]).arg(data);
    command.arg("--out").arg(out);
    let log = out.join("bench.log");
    let file = File::create(&log).with_context(|| format!("write {}", log.display()))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file.try_clone().context("use a file twice")?)
        .stderr(file)
        .status()
        .context("start hyperslab bench")?;
    // Cases that failed or were skipped are told by the results.
    if ![0, 1, 3].contains(&status.code().unwrap_or(-1)) {
        let said = fs::read_to_string(&log).unwrap_or_default();
        bail!("hyperslab bench ended with {status}: {}", said.lines().rev().take(3).collect::<Vec<_>>().join("; "));
    }
    Ok(())
}

fn verdict(claims: &[Claim]) -> String {
    let of = |word: &str| claims.iter().filter(|claim| claim.verdict == word).count();
    format!(
        "Of {} published claims {} hold here, {} do not, {} cannot be told.",
        claims.len(),
        of(judge::HOLDS),
        of(judge::FAILS),
        of(judge::UNSURE)
    )
}

/// Claims for a terminal: a block of lines each, since their words are long.
fn table(claims: &[Claim]) -> String {
    let width = terminal::width().unwrap_or(100).min(100);
    let block = |claim: &Claim| {
        let head = wrapped(&format!("{}: {}", claim.study, claim.verdict), width, 2);
        let lines = [
            ("published", format!("{} ({})", claim.published, claim.source)),
            ("here", claim.here.clone()),
            ("why", claim.reason.clone()),
        ];
        head + &lines.map(|(name, words)| wrapped(&format!("  {name}: {words}"), width, 4)).concat()
    };
    claims.iter().map(block).collect::<Vec<_>>().join("\n") + "\n"
}
