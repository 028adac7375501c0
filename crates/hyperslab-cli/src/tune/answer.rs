//! The answers in words: what to change, by how much that is faster, and what it costs.

use super::comparison::Better;
use super::proposal::{Proposal, StorageChange};
use super::recorded_program::{ArrayGroup, RecordedProgram};
use super::source_calls::{MakingCall, tuple};
use super::timed_run::TimedRun;
use crate::table::{Align, Table};
use hyperslab_core::units::display_size;
use hyperslab_core::{Filter, LayoutOverride};
use std::ffi::OsString;
use std::path::Path;

/// A phase that takes this much longer is harm worth a word.
const HARM: f64 = 0.01;
/// Datasets of a group that are named.
const MOST_NAMED: usize = 3;

/// What the words are made of.
pub struct Told<'a> {
    /// The command.
    pub command: &'a [OsString],
    /// Where the user runs it.
    pub folder: &'a Path,
    /// What it does.
    pub recorded: &'a RecordedProgram,
    /// A run as it is, below a connector that passes all calls on.
    pub watched: &'a TimedRun,
}

impl Told<'_> {
    /// One answer.
    pub fn answer(&self, better: Option<&Better>, nothing: &str, beside: &str) -> String {
        let Some(better) = better else { return format!("  {nothing}.\n") };
        let [before, after] = better.medians;
        let interval = better.ratio.interval.unwrap_or([better.ratio.value; 2]);
        let mut text = format!(
            "  {:.2} times as fast{beside}: {} instead of {}\n  (medians of {} pairs of runs; 95 % interval {:.2} to {:.2})\n",
            1.0 / better.ratio.value,
            seconds(after),
            seconds(before),
            better.pairs,
            1.0 / interval[1],
            1.0 / interval[0]
        );
        if better.of_processors {
            text += "  These are times of processors, since others keep this machine busy. The table\n  has single runs by the clock, which the others lengthen.\n";
        }
        text.push('\n');
        if let Some(modes) = better.proposal.modes {
            let command: Vec<String> = self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            text += &format!("    hyperslab run --mode {modes} -- {}\n", command.join(" "));
        }
        for line in self.changes(&better.proposal) {
            text += &format!("    {line}\n");
        }
        text.push('\n');
        let table = self.phases(better);
        table.lines().for_each(|line| text += &format!("  {line}\n"));
        for line in self.costs(better) {
            text += &format!("  {line}\n");
        }
        text
    }

    /// What the user has to write, in the words of the library that the program uses.
    pub fn changes(&self, proposal: &Proposal) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, change) in &proposal.changes {
            let Some(group) = self.recorded.groups.get(*number) else { continue };
            lines.extend(self.change(group, change));
        }
        if let Some(bytes) = proposal.cache {
            lines.push(match () {
                () if self.watched.netcdf => format!("netCDF4:  variable.set_var_chunk_cache(size={bytes})"),
                () if self.is_python() => format!("h5py:  h5py.File(path, mode, rdcc_nbytes={bytes})"),
                () => format!("C:  H5Pset_cache(access_list, 0, slots, {bytes}, 0.75), slots as before"),
            });
        }
        if let Some(bytes) = proposal.align {
            let threshold = bytes.min(64 << 10);
            lines.push(match self.is_python() {
                true => format!(
                    "h5py:  h5py.File(path, \"w\", alignment_interval={bytes}, alignment_threshold={threshold})"
                ),
                false => format!("C:  H5Pset_alignment(access_list, {threshold}, {bytes})"),
            });
        }
        lines
    }

    fn is_python(&self) -> bool {
        self.watched.programs.iter().any(|program| program.starts_with("python")) || self.watched.programs.is_empty()
    }

    fn change(&self, group: &ArrayGroup, change: &StorageChange) -> Vec<String> {
        let mut lines = Vec::new();
        let chunk = match &change.layout {
            Some(LayoutOverride::Chunked(chunk)) => Some(chunk),
            _ => None,
        };
        let mut unknown = Vec::new();
        for (file, name) in &group.datasets {
            let call = MakingCall::find(self.command, self.folder, name).filter(|_| change.layout.is_some());
            let Some(call) = call else {
                unknown.push(format!("{file}: {name}"));
                continue;
            };
            lines.push(format!("{}:{}  ({file}: {name})", call.file, call.line));
            lines.extend(call.text.lines().map(|line| format!("- {line}")));
            lines.extend(call.with_chunks(chunk).lines().map(|line| format!("+ {line}")));
            if change.filters.is_some() {
                lines.push(format!("+ and its filters: {}", self.filters(change)));
            }
        }
        if unknown.is_empty() {
            return lines;
        }
        let more = unknown.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("{}{more}", unknown[..unknown.len().min(MOST_NAMED)].join(", ")));
        let before =
            group.spec.chunk.as_ref().map_or("in one piece".into(), |chunk| format!("chunks {}", tuple(chunk)));
        if let Some(layout) = &change.layout {
            lines.push(format!("- {before}"));
            lines.push(match layout {
                LayoutOverride::Chunked(chunk) => self.chunked(&tuple(chunk)),
                LayoutOverride::Contiguous if self.watched.netcdf => "+ createVariable(..., contiguous=True)".into(),
                LayoutOverride::Contiguous if self.is_python() => "+ create_dataset(...) without chunks".into(),
                LayoutOverride::Contiguous => "+ H5Pset_layout(creation_list, H5D_CONTIGUOUS)".into(),
            });
        }
        if change.filters.is_some() {
            lines.push(format!("- filters: {}", named(&group.spec.filters)));
            lines.push(format!("+ filters: {}", self.filters(change)));
        }
        lines
    }

    fn chunked(&self, chunk: &str) -> String {
        match () {
            () if self.watched.netcdf => format!(
                "+ createVariable(..., chunksizes={chunk}); xarray: encoding={{name: {{\"chunksizes\": {chunk}}}}}"
            ),
            () if self.is_python() => format!("+ create_dataset(..., chunks={chunk})"),
            () => format!("+ H5Pset_chunk(creation_list, rank, {chunk})"),
        }
    }

    fn filters(&self, change: &StorageChange) -> String {
        let filters = change.filters.clone().unwrap_or_default();
        let level = filters.iter().find_map(|filter| match filter {
            Filter::Deflate(level) => Some(*level),
            _ => None,
        });
        let shuffle = filters.contains(&Filter::Shuffle);
        match level {
            Some(level) if self.watched.netcdf => {
                format!("compression=\"zlib\", complevel={level}, shuffle={}", python(shuffle))
            }
            Some(level) if self.is_python() => {
                format!("compression=\"gzip\", compression_opts={level}, shuffle={}", python(shuffle))
            }
            _ => named(&filters),
        }
    }

    fn phases(&self, better: &Better) -> String {
        let mut table =
            Table::new(&[("", Align::Left), ("before", Align::Right), ("then", Align::Right), ("", Align::Left)]);
        let (before, after) = (&better.before, &better.middle);
        // Reads and writes of several processes may go on at a time.
        let rest = |run: &TimedRun| (run.seconds - run.writing - run.reading).max(0.0);
        let (whole_before, whole_after) = (before.seconds, after.seconds);
        let rows = [
            ("writing", before.writing, after.writing),
            ("reading", before.reading, after.reading),
            ("all else", rest(before), rest(after)),
            ("one run", whole_before, whole_after),
        ];
        for (name, before, after) in rows {
            if before.max(after) <= 0.0 {
                continue;
            }
            let harm = after - before > HARM * whole_before && name != "one run";
            table.row(vec![name.into(), seconds(before), seconds(after), if harm { "slower" } else { "" }.into()]);
        }
        if before.stored > 0 {
            let larger = after.stored as f64 > (1.0 + HARM) * before.stored as f64;
            let note = if larger { "larger" } else { "" };
            table.row(vec!["on storage".into(), display_size(before.stored), display_size(after.stored), note.into()]);
        }
        table.render()
    }

    fn costs(&self, better: &Better) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(cache) = better.proposal.cache {
            lines.push(format!("Each open dataset may hold {} of chunks in memory.", display_size(cache)));
        }
        let modes = better.proposal.modes.unwrap_or_default();
        if modes.contains("async") {
            lines.push("Writes wait in memory for up to a second; a flush or close writes them.".into());
        }
        if modes.contains("cache") {
            lines.push("What was read is kept in memory, 256 MiB in each process (HYPERSLAB_MEMORY).".into());
        }
        if !better.proposal.changes.is_empty() {
            lines.push("Programs that read these files in another way were not looked at.".into());
        }
        lines
    }
}

fn python(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// Filters in words.
fn named(filters: &[Filter]) -> String {
    let names: Vec<String> = filters.iter().map(|filter| format!("{filter:?}").to_lowercase()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// A time for people.
pub fn seconds(value: f64) -> String {
    if value >= 0.1 { format!("{value:.2} s") } else { format!("{:.1} ms", value * 1e3) }
}
