//! Campaigns: every prefix of recorded programs, and the order of all campaigns.

use crate::acks::Progress;
use crate::checker::Program;
use crate::disk::Disk;
use crate::options::Options;
use crate::report::{self, CaseTally, ReportRow};
use crate::subject::{self, Promise, Subject};
use crate::tools::Tools;
use crate::trace::{self, Action, Event};
use crate::workshop::{Preload, Workshop};
use crate::{faults, jobs, kills, power};
use anyhow::{Context as _, Result, bail, ensure};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What all campaigns share.
pub struct Laboratory<'a> {
    pub tools: &'a Tools,
    pub options: &'a Options,
    pub scratch: &'a Path,
}

/// A program that was recorded.
pub struct Recorded {
    pub events: Vec<Event>,
    /// The file of acknowledgements.
    pub acks: PathBuf,
    /// What it said on standard error.
    pub said: String,
}

/// Runs what the command line asks for; whether all promises were kept.
pub fn run(options: &Options) -> Result<bool> {
    let subjects: Vec<Subject> = options.mode.iter().map(|name| subject::named(name)).collect::<Result<_>>()?;
    let mut builder = tempfile::Builder::new();
    builder.prefix("hyperslab-crashlab-");
    let scratch = builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir())?;
    let beside = std::env::current_exe()?.parent().map(Path::to_owned);
    let built = options.built.clone().or(beside).context("where is this program?")?;
    let tools = Tools::find(&built, scratch.path())?;
    let laboratory = Laboratory { tools: &tools, options, scratch: scratch.path() };
    if options.prefix.is_some() {
        return one_prefix(&laboratory, *subjects.first().context("which mode?")?);
    }
    println!("crashlab: seeds from {}, programs of {} operations", options.seed, options.length);
    let mut rows = Vec::new();
    for subject in subjects {
        laboratory.campaigns(subject, &mut rows)?;
    }
    Ok(report::print(&rows, options.failures))
}

impl Laboratory<'_> {
    fn campaigns(&self, subject: Subject, rows: &mut Vec<ReportRow>) -> Result<()> {
        let Options { images, kills, power, long, .. } = *self.options;
        let promises = subject.promise != Promise::None;
        let (images, kills, power) =
            if long { (images.max(2000), kills.max(200), power.max(200)) } else { (images, kills, power) };
        let mut row = |what: &'static str, wanted: u64, work: Work| -> Result<()> {
            if wanted > 0 {
                let began = Instant::now();
                let tally = self.in_parallel(subject, wanted, work)?;
                println!("{what}, {}: {} cases, {:.1} s", subject.name, tally.cases(), began.elapsed().as_secs_f64());
                rows.push(ReportRow { what, subject, tally });
            }
            Ok(())
        };
        row("every prefix", images, prefixes)?;
        row("kills", kills, kills::every_call)?;
        if promises {
            row("killed recoveries", kills, kills::recoveries)?;
            row("faults", images / 2, faults::faults)?;
            row("16 jobs", kills / 10, jobs::together)?;
        }
        if subject.is_durable() {
            row("loss of power", power, power::losses)?;
            row("loss in recovery", power, power::recoveries)?;
        }
        Ok(())
    }

    /// Programs of consecutive seeds on several threads, until there are enough cases.
    fn in_parallel(&self, subject: Subject, wanted: u64, work: Work) -> Result<CaseTally> {
        let seed = AtomicU64::new(self.options.seed);
        let done = AtomicU64::new(0);
        let workers: Vec<Result<CaseTally>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.options.workers.max(1))
                .map(|worker| {
                    let (seed, done) = (&seed, &done);
                    scope.spawn(move || {
                        let mut workshop = Workshop::new(self.tools, self.scratch, &format!("worker{worker}"))?;
                        let mut tally = CaseTally::default();
                        while done.load(Ordering::Relaxed) < wanted {
                            let seed = seed.fetch_add(1, Ordering::Relaxed);
                            let program = self.options.program(seed);
                            let mut mine = CaseTally::default();
                            let rest = wanted.saturating_sub(done.load(Ordering::Relaxed));
                            work(&mut workshop, subject, program, rest, &mut mine)
                                .with_context(|| format!("mode {}, seed {seed}", subject.name))?;
                            done.fetch_add(mine.cases(), Ordering::Relaxed);
                            tally.add(mine);
                        }
                        Ok(tally)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a worker panicked"))).collect()
        });
        let mut sum = CaseTally::default();
        for tally in workers {
            sum.add(tally?);
        }
        Ok(sum)
    }
}

/// What a campaign does with one program; at most so many cases.
type Work = fn(&mut Workshop<'_>, Subject, Program, u64, &mut CaseTally) -> Result<()>;

/// Records a program, which must not fail.
pub fn record(workshop: &Workshop<'_>, subject: Subject, program: Program) -> Result<Recorded> {
    record_with(workshop, subject, program, None)
}

/// Records a program that may meet a fault, and may fail then.
pub fn record_with(
    workshop: &Workshop<'_>,
    subject: Subject,
    program: Program,
    fault: Option<&str>,
) -> Result<Recorded> {
    let (status, said) = workshop.execute(subject, program, &Preload::Record(fault))?;
    let events = trace::read(&workshop.trace())?;
    let acks = workshop.acks(0);
    ensure!(!said.contains("nothing is accelerated"), "the connector is not at work: {said}");
    if fault.is_none() {
        if let Some(failure) = workshop.progress(0).1 {
            bail!("the program failed: {failure}\n{said}");
        }
        // Programs that do not close their file end as if they were killed, by a SIGKILL of their own.
        if !status.success() && status.signal() != Some(9) {
            bail!("the program ended with {status}: {said}");
        }
    }
    Ok(Recorded { events, acks, said })
}

/// How to see an image again.
pub fn images_of(subject: Subject, program: Program, number: usize, progress: Progress) -> String {
    let next = if progress.begun > progress.acked { ", the next had begun" } else { "" };
    format!(
        "--mode {}{} --seed {} --length {} --prefix {number} (operation {} had returned{next})",
        subject.name,
        if program.flavour == "netcdf" { " --netcdf" } else { "" },
        program.seed,
        program.length,
        progress.acked
    )
}

/// Goes through a recorded program: calls `at` for each image with the number of changes in it, before the change that follows.
pub fn each_image(
    recorded: &Recorded,
    logs: &Path,
    mut at: impl FnMut(&Disk, usize, Progress) -> Result<bool>,
) -> Result<()> {
    let (mut disk, mut progress, mut changed) = (Disk::default(), Progress::default(), false);
    disk.make_directory(logs);
    for (number, event) in recorded.events.iter().enumerate() {
        if event.path == recorded.acks {
            if let Action::Write { data, .. } = &event.action {
                progress.see(&String::from_utf8_lossy(data));
            }
            continue;
        }
        if !Disk::sees(event) {
            continue;
        }
        if changed && !at(&disk, number, progress)? {
            return Ok(());
        }
        disk.apply(event)?;
        changed = true;
    }
    at(&disk, recorded.events.len(), progress)?;
    Ok(())
}

/// Every prefix of one program.
fn prefixes(
    workshop: &mut Workshop<'_>,
    subject: Subject,
    program: Program,
    _: u64,
    tally: &mut CaseTally,
) -> Result<()> {
    let recorded = record(workshop, subject, program)?;
    let logs = workshop.logs();
    each_image(&recorded, &logs, |disk, number, progress| {
        if progress.acked < 0 {
            return Ok(true);
        }
        disk.place(&workshop.data())?;
        let replay = images_of(subject, program, number, progress);
        let case = workshop.case(subject, program, progress, replay)?;
        tally.count(&case);
        Ok(true)
    })
}

/// One image of one program, told in detail.
fn one_prefix(laboratory: &Laboratory<'_>, subject: Subject) -> Result<bool> {
    let Options { seed, prefix, keep, .. } = laboratory.options;
    let program = laboratory.options.program(*seed);
    let mut workshop = Workshop::new(laboratory.tools, laboratory.scratch, "worker0")?;
    let fault =
        laboratory.options.fault.as_ref().map(|fault| fault.replace("DATA", &workshop.data().to_string_lossy()));
    let recorded = record_with(&workshop, subject, program, fault.as_deref())?;
    let logs = workshop.logs();
    let mut kept = true;
    each_image(&recorded, &logs, |disk, number, progress| {
        if Some(number) < *prefix && number < recorded.events.len() {
            return Ok(true);
        }
        disk.place(&workshop.data())?;
        if let Some(keep) = keep {
            copy(&workshop.data(), &keep.join("before"))?;
        }
        let case = workshop.case(subject, program, progress, String::new())?;
        if let Some(keep) = keep {
            copy(&workshop.data(), &keep.join("after"))?;
        }
        println!("operations begun until {}, returned until {}", progress.begun, progress.acked);
        println!("as it was found: {:?}\nafter recovery: {:?}\nrecover: {:?}", case.before, case.after, case.refused);
        let mut tally = CaseTally::default();
        tally.count(&case);
        kept = report::print(&[ReportRow { what: "one prefix", subject, tally }], 0);
        Ok(false)
    })?;
    Ok(kept)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name()))?,
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name()))?),
        }
    }
    Ok(())
}
