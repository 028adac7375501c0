//! A test: all its repetitions, each with its phases, as every rank goes through them together.

use crate::measured::{Access, Measured, gather};
use crate::memory_hog::MemoryHog;
use crate::plain_file::PlainFile;
use crate::plan::Plan;
use crate::play::{Kind, PlayPhase, play};
use crate::settings::Packets;
use crate::stonewall::Limit;
use crate::warnings::Warnings;
use hyperslab_core::{Communicator, Error, Format, Result, agree};
use hyperslab_kernels::ior::Readers;
use hyperslab_run::open_stack;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One phase of one repetition.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Which phase.
    pub access: Access,
    /// Which repetition, from 0.
    pub repetition: u64,
    /// Its figures.
    pub measured: Measured,
}

/// What came of a test.
#[derive(Debug, Clone, Default)]
pub struct TestResult {
    /// The measured phases in their order.
    pub rows: Vec<Row>,
    /// What checks of writes found, over all repetitions.
    pub checked_writes: Measured,
    /// Seconds of each removal, with its repetition.
    pub removals: Vec<(u64, f64)>,
    /// The stack does not keep data, so nothing could be compared.
    pub keeps_nothing: bool,
}

/// What the first rank is told while a test runs.
pub trait Audience {
    /// A phase was measured.
    fn row(&mut self, plan: &Plan, row: &Row);
    /// A file was removed.
    fn removed(&mut self, plan: &Plan, repetition: u64, seconds: f64);
}

/// One rank's part in a test.
struct Rank<'a> {
    plan: &'a Plan,
    comm: &'a Arc<dyn Communicator>,
    format: Arc<dyn Format>,
    warnings: Warnings,
    result: TestResult,
    /// Transfers of each rank in the last write that was stopped by time.
    stopped_at: Option<Vec<u64>>,
    /// The seed or signature of this repetition.
    signature: u32,
}

/// Runs the test on this rank. Collective. The first rank tells `audience` what happens.
pub fn run(
    plan: &Plan,
    comm: &Arc<dyn Communicator>,
    mut audience: Option<&mut (dyn Audience + '_)>,
) -> Result<TestResult> {
    let warnings = Warnings::new(plan.settings.warnings_are_errors);
    let format = agree(&**comm, open_stack(&plan.stack))?;
    let _hog = agree(&**comm, MemoryHog::of(plan))?;
    let keeps_nothing = !format.caps().data.readable;
    let result = TestResult { keeps_nothing, ..TestResult::default() };
    let mut rank = Rank { plan, comm, format, warnings, result, stopped_at: None, signature: plan.signature };
    let began = Instant::now();
    let settings = &plan.settings;
    for repetition in 0..settings.repetitions {
        if settings.max_time > 0 && repetition > 0 && rank.is_late(began)? {
            rank.note_once(format!("-T {} minutes are over after {repetition} repetitions", settings.max_time));
            break;
        }
        // Another seed each time, so that data of the repetition before are wrong.
        if settings.signature.is_none() {
            rank.signature = plan.signature.wrapping_add(repetition as u32);
        }
        let errors_before = rank.wrong_bytes();
        if settings.write_file {
            rank.write(repetition, &mut audience)?;
        }
        if settings.check_write {
            rank.check_write(repetition)?;
        }
        if settings.read_file || settings.check_read {
            rank.read(repetition, &mut audience)?;
        }
        let wrong = rank.wrong_bytes() > errors_before;
        let keeps = settings.keep_file || wrong && settings.keep_file_with_error;
        if keeps {
            comm.barrier()?;
        } else {
            rank.remove_afterwards(repetition, &mut audience)?;
        }
    }
    rank.warnings.tell();
    Ok(rank.result)
}

impl Rank<'_> {
    fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    fn note_once(&mut self, words: String) {
        if self.is_first() {
            self.warnings.note(words);
        }
    }

    /// The first rank's clock decides.
    fn is_late(&self, began: Instant) -> Result<bool> {
        let late = began.elapsed() >= Duration::from_secs(self.plan.settings.max_time.saturating_mul(60));
        let mut said = vec![u8::from(late)];
        self.comm.broadcast(0, &mut said)?;
        Ok(said == [1])
    }

    fn wrong_bytes(&self) -> u64 {
        let rows = self.result.rows.iter().map(|row| row.measured.wrong.bytes).sum::<u64>();
        rows + self.result.checked_writes.wrong.bytes
    }

    fn own_path(&self, repetition: u64) -> PathBuf {
        self.plan.path(self.comm.rank(), repetition)
    }

    /// Whether this rank looks after a file.
    fn has_file(&self) -> bool {
        self.plan.settings.file_per_proc || self.is_first()
    }

    fn pause(&self) {
        std::thread::sleep(Duration::from_secs(self.plan.settings.inter_test_delay));
    }

    /// Which data a rank's file has.
    fn kind(&self, owner: usize, written_here: bool) -> Kind {
        match self.plan.settings.packets {
            Packets::ByPlace if written_here || self.plan.settings.signature.is_some() => {
                // Files of different ranks differ.
                let of_file = if self.plan.settings.file_per_proc { owner as u64 } else { 0 };
                Kind::ByPlace(Some(u64::from(self.signature) + (of_file << 32)))
            }
            Packets::ByPlace => Kind::ByPlace(None),
            packets => Kind::Ior(packets, self.signature),
        }
    }

    fn limit(&self) -> Limit {
        let settings = &self.plan.settings;
        Limit {
            deadline: (settings.deadline > 0).then(|| Duration::from_secs(settings.deadline)),
            calls: (settings.wear_out_iterations > 0).then_some(settings.wear_out_iterations),
            wear_out: settings.wear_out,
            in_step: self.plan.ior.in_step(),
        }
    }

    fn write(&mut self, repetition: u64, audience: &mut Option<&mut (dyn Audience + '_)>) -> Result<()> {
        let (plan, rank) = (self.plan, self.comm.rank());
        let path = self.own_path(repetition);
        let prepared = self.prepare(&path, repetition);
        let exists = agree(&**self.comm, prepared)?;
        // All or none write into what is there.
        let mut there = [u64::from(exists)];
        self.comm.all_reduce(&mut there, hyperslab_core::Reduce::Max)?;
        self.pause();
        let workload = if there[0] == 1 { plan.ior.overwrite()? } else { plan.ior.write()? };
        let phase = PlayPhase {
            ior: &plan.ior,
            workload: &workload,
            format: &*self.format,
            path: &path,
            owner: rank,
            kind: self.kind(rank, true),
            compare: false,
            limit: self.limit(),
            prefill: plan.settings.random_prefill,
            per_op: self.per_op(repetition, Access::Write),
        };
        let measured = gather(&**self.comm, play(&phase, self.comm)?)?;
        if plan.settings.deadline > 0 {
            self.stopped_at = Some(measured.ranks.iter().map(|rank| rank.calls).collect());
        }
        if let (Some(file), true) = (&plan.settings.stonewall_status_file, self.is_first()) {
            let most = measured.ranks.iter().map(|rank| rank.calls).max().unwrap_or(0);
            fs::write(file, format!("{most}\n")).map_err(|e| Error::io("write status file", e).target(file))?;
        }
        self.keep(Access::Write, repetition, measured, audience);
        Ok(())
    }

    /// Makes room for the file of this rank; returns whether it is there and stays.
    fn prepare(&mut self, path: &Path, repetition: u64) -> Result<bool> {
        if !self.has_file() {
            return Ok(false);
        }
        let settings = &self.plan.settings;
        if let (true, true, Some(directory)) = (settings.unique_dir, settings.file_per_proc, path.parent()) {
            fs::create_dir_all(directory).map_err(|e| Error::io("create directory", e).target(directory.display()))?;
        }
        if self.result.keeps_nothing {
            // Names may be remembered all the same.
            self.format.remove(path)?;
        } else if self.format.exists(path)? {
            if repetition == 0 {
                let fate = if settings.use_existing { "overwritten" } else { "deleted" };
                self.warnings
                    .warn(format!("The file {:?} exists already and will be {fate}", path.display().to_string()))?;
                self.warnings.tell();
            }
            if settings.use_existing {
                return Ok(true);
            }
            self.format.remove(path)?;
        }
        crate::striping::apply(settings, path, &mut self.warnings)?;
        Ok(false)
    }

    fn check_write(&mut self, repetition: u64) -> Result<()> {
        if self.result.keeps_nothing {
            return Ok(());
        }
        let measured = self.play_read(repetition, &self.plan.checkers(), true, None)?;
        let sum = &mut self.result.checked_writes;
        sum.bytes += measured.bytes;
        sum.calls += measured.calls;
        sum.wrong.bytes += measured.wrong.bytes;
        sum.wrong.transfers += measured.wrong.transfers;
        sum.wrong.compared += measured.wrong.compared;
        sum.wrong.first = sum.wrong.first.take().or(measured.wrong.first);
        Ok(())
    }

    fn read(&mut self, repetition: u64, audience: &mut Option<&mut (dyn Audience + '_)>) -> Result<()> {
        self.pause();
        let compare = self.plan.settings.check_read && !self.result.keeps_nothing;
        let per_op = self.per_op(repetition, Access::Read);
        let measured = self.play_read(repetition, &self.plan.readers(repetition), compare, per_op)?;
        self.keep(Access::Read, repetition, measured, audience);
        Ok(())
    }

    fn play_read(
        &mut self,
        repetition: u64,
        readers: &Readers,
        compare: bool,
        per_op: Option<PathBuf>,
    ) -> Result<Measured> {
        let plan = self.plan;
        let owner = readers.of(self.comm.rank(), plan.ranks);
        let path = plan.path(owner, repetition);
        let mut limit = self.limit();
        if let Some(stopped_at) = &self.stopped_at {
            // What was not written cannot be read.
            limit.calls = Some(stopped_at[owner]);
        } else if let (Some(file), true) = (&plan.settings.stonewall_status_file, !plan.settings.write_file) {
            limit.calls = Some(self.status(file)?);
        }
        let workload = plan.ior.read(readers.clone())?;
        let plain = PlainFile::instead_of(&plan.stack, &path, &workload.header.arrays[0].spec);
        if plain.is_some() {
            let words = format!("{} is a plain file, as IOR writes them, and read as such", path.display());
            self.note_once(words);
        }
        let phase = PlayPhase {
            ior: &plan.ior,
            workload: &workload,
            format: plain.as_ref().map_or(&*self.format, |plain| plain as &dyn Format),
            path: &path,
            owner,
            kind: self.kind(owner, plan.settings.write_file),
            compare,
            limit,
            prefill: 0,
            per_op,
        };
        gather(&**self.comm, play(&phase, self.comm)?)
    }

    /// The transfers of each rank in an earlier run. All ranks get what the first reads.
    fn status(&self, file: &str) -> Result<u64> {
        let mut said = Vec::new();
        if self.is_first() {
            said = fs::read(file).unwrap_or_default();
        }
        self.comm.broadcast(0, &mut said)?;
        let number = std::str::from_utf8(&said).ok().and_then(|text| text.trim().parse::<u64>().ok());
        number.filter(|number| *number > 0).ok_or_else(|| {
            Error::invalid("read status file", "it does not say how many transfers were made")
                .target(file)
                .hint("write with -D, stoneWallingWearOut=1 and the same stoneWallingStatusFile first")
        })
    }

    fn per_op(&self, repetition: u64, access: Access) -> Option<PathBuf> {
        let prefix = self.plan.settings.per_op_csv.as_ref()?;
        // IOR lets reads replace the file of writes; here both stay.
        let of_reads = if access == Access::Read && self.plan.settings.write_file { "-read" } else { "" };
        Some(format!("{prefix}{of_reads}-{repetition}-{:05}.csv", self.comm.rank()).into())
    }

    fn keep(
        &mut self,
        access: Access,
        repetition: u64,
        measured: Measured,
        audience: &mut Option<&mut (dyn Audience + '_)>,
    ) {
        self.warn_of_outliers(access, &measured);
        let row = Row { access, repetition, measured };
        if let Some(audience) = audience {
            audience.row(self.plan, &row);
        }
        self.result.rows.push(row);
    }

    fn warn_of_outliers(&mut self, access: Access, measured: &Measured) {
        let threshold = self.plan.settings.outlier_threshold as f64;
        if threshold == 0.0 || !self.is_first() {
            return;
        }
        for (what, time) in [
            ("transfers", (|rank| rank.transfers) as fn(&crate::measured::RankTimes) -> f64),
            ("all", |rank| rank.total),
        ] {
            let mean = measured.ranks.iter().map(time).sum::<f64>() / measured.ranks.len() as f64;
            for (rank, times) in measured.ranks.iter().enumerate() {
                let took = time(times);
                if (took - mean).abs() > threshold {
                    let words = format!("{} of task {rank}, {what}: {took:.3} s (mean {mean:.3} s)", access.word());
                    self.warnings.note(words);
                }
            }
        }
    }

    fn remove_afterwards(&mut self, repetition: u64, audience: &mut Option<&mut (dyn Audience + '_)>) -> Result<()> {
        self.comm.barrier()?;
        let began = Instant::now();
        let path = self.own_path(repetition);
        let plain = PlainFile::is_instead_of(&self.plan.stack, &path);
        let removed = match self.has_file() && !plain && self.format.exists(&path)? {
            true => self.format.remove(&path),
            false => Ok(()),
        };
        agree(&**self.comm, removed)?;
        if plain {
            self.note_once(format!(
                "{} is left as it is: it is a plain file that Hyperslab did not write",
                path.display()
            ));
        }
        let seconds = began.elapsed().as_secs_f64();
        self.result.removals.push((repetition, seconds));
        if let Some(audience) = audience {
            audience.removed(self.plan, repetition, seconds);
        }
        Ok(())
    }
}
