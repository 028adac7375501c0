//! The particle patterns and their keys.

use super::subset::parse_part;
use super::values::Keys;
use crate::filter_words::parse_filter;
use anyhow::{Result, bail};
use hyperslab_core::{Dims, Filter, TransferMode};
use hyperslab_kernels::{FilePattern, MemoryPattern, Particles};
use serde_json::{Map, Value};
use std::time::Duration;

/// What happens to the particles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternKind {
    /// Creates a file.
    Write,
    /// Creates one whose arrays may grow.
    WriteUnlimited,
    /// Creates one to which ranks contribute different amounts.
    WriteVarNormalDist,
    /// Replaces the data of one that is there.
    Overwrite,
    /// Lengthens one that is there.
    Append,
    /// Reads one that is there.
    Read,
}

/// How the transfers are to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Calls return when done.
    Sync,
    /// In the background.
    Async,
    /// Through a log.
    Log,
}

/// One particle benchmark of a workflow.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// What happens.
    pub kind: PatternKind,
    /// The parameters; `ranks` and the state of the file are set when the run is planned.
    pub particles: Particles,
    /// Alignment of objects in the file, and from which size on, if asked for.
    pub alignment: Option<(u64, u64)>,
    /// How transfers are made.
    pub mode: Mode,
    /// Bytes of memory that a rank may use for transfers, if limited.
    pub memory_limit: Option<u64>,
    /// Why it cannot run in this build, if so.
    pub unavailable: Option<String>,
    /// What it asks for that is reported but changes nothing here.
    pub asked: Asked,
}

/// Settings that reports repeat.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// COLLECTIVE_DATA.
    pub collective_data: bool,
    /// COLLECTIVE_METADATA.
    pub collective_metadata: bool,
    /// SUBFILING.
    pub subfiling: bool,
    /// CSV_FILE.
    pub csv_file: Option<String>,
    /// ENV_METADATA_FILE.
    pub environment_file: Option<String>,
}

impl PatternKind {
    /// The name in workflow files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::WriteUnlimited => "write-unlimited",
            Self::WriteVarNormalDist => "write_var_normal_dist",
            Self::Overwrite => "overwrite",
            Self::Append => "append",
            Self::Read => "read",
        }
    }

    /// Whether it makes a new file.
    pub fn creates(self) -> bool {
        matches!(self, Self::Write | Self::WriteUnlimited | Self::WriteVarNormalDist)
    }
}

/// Every key of h5bench's patterns, and the two that are our own: CHUNKED and FILTERS.
const KEYS: &[&str] = &[
    "MODE",
    "MEM_PATTERN",
    "FILE_PATTERN",
    "READ_OPTION",
    "TO_READ_NUM_PARTICLES",
    "NUM_PARTICLES",
    "TIMESTEPS",
    "DELAYED_CLOSE_TIMESTEPS",
    "EMULATED_COMPUTE_TIME_PER_TIMESTEP",
    "NUM_DIMS",
    "DIM_1",
    "DIM_2",
    "DIM_3",
    "CHUNK_DIM_1",
    "CHUNK_DIM_2",
    "CHUNK_DIM_3",
    "CHUNKED",
    "COMPRESS",
    "COMPRESS_FILTER",
    "FILTERS",
    "COLLECTIVE_DATA",
    "COLLECTIVE_METADATA",
    "STRIDE_SIZE",
    "STRIDE_SIZE_2",
    "STRIDE_SIZE_3",
    "BLOCK_SIZE",
    "BLOCK_SIZE_2",
    "BLOCK_SIZE_3",
    "BLOCK_CNT",
    "IO_MEM_LIMIT",
    "IO_OPERATION",
    "FILE_PER_PROC",
    "SUBFILING",
    "ALIGN",
    "ALIGN_THRESHOLD",
    "ALIGN_LEN",
    "STDEV_DIM_1",
    "CSV_FILE",
    "ENV_METADATA_FILE",
];

/// Seed of the data of all patterns.
const SEED: u64 = 1;
/// More time steps than this are not kept open.
const MOST_DELAYED: u64 = 1000;

impl Pattern {
    /// Reads a pattern's configuration; `place` names it in messages, `notes` gets what differs from h5bench.
    pub fn parse(
        kind: PatternKind,
        file: String,
        map: &Map<String, Value>,
        place: &str,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let keys = Keys::new(map, place, KEYS)?;
        let mut note = |text: String| {
            if !notes.contains(&text) {
                notes.push(text);
            }
        };
        check_operation(&keys, kind, place)?;
        let mode = keys.word("MODE", &[("SYNC", Mode::Sync), ("ASYNC", Mode::Async), ("LOG", Mode::Log)])?;
        let memory = keys.word(
            "MEM_PATTERN",
            &[("CONTIG", MemoryPattern::Contiguous), ("INTERLEAVED", MemoryPattern::Interleaved)],
        )?;
        let words = [("CONTIG", (false, false)), ("INTERLEAVED", (true, false)), ("STRIDED", (false, true))];
        let (interleaved, strided) = keys.need("FILE_PATTERN", keys.word("FILE_PATTERN", &words)?)?;
        let extent = parse_extent(&keys, place, &mut note)?;
        let asked = Asked {
            collective_data: keys.flag("COLLECTIVE_DATA")?.unwrap_or(false),
            collective_metadata: keys.flag("COLLECTIVE_METADATA")?.unwrap_or(false),
            subfiling: keys.flag("SUBFILING")?.unwrap_or(false),
            csv_file: parse_file_name(&keys, "CSV_FILE", place)?,
            environment_file: keys.text("ENV_METADATA_FILE")?,
        };
        let mut unavailable = None;
        let filters = parse_filters(&keys, place, &mut unavailable)?;
        let compressed = !filters.is_empty();
        let unlimited = kind == PatternKind::WriteUnlimited;
        let chunked = compressed || unlimited || keys.flag("CHUNKED")?.unwrap_or(false);
        let chunk =
            parse_chunk(&keys, &extent, if interleaved { 32 } else { 4 }, chunked && kind.creates(), &mut note)?;
        if asked.subfiling && asked.collective_data {
            bail!("{place}: SUBFILING=YES cannot go with COLLECTIVE_DATA=YES");
        }
        let particles = Particles {
            file_per_rank: keys.flag("FILE_PER_PROC")?.unwrap_or(false),
            time_steps: keys.need("TIMESTEPS", keys.positive("TIMESTEPS")?)?,
            chunk,
            deviation: parse_deviation(kind, &keys)?,
            part: parse_part(kind, strided, &keys, &extent, place, &mut note)?,
            memory: keys.need("MEM_PATTERN", memory)?,
            pattern: if interleaved { FilePattern::Interleaved } else { FilePattern::Contiguous },
            compute: keys.time("EMULATED_COMPUTE_TIME_PER_TIMESTEP")?.unwrap_or(Duration::ZERO),
            transfer: if asked.collective_data || compressed {
                TransferMode::Collective
            } else {
                TransferMode::Independent
            },
            filters,
            unlimited,
            delayed_close: keys.number("DELAYED_CLOSE_TIMESTEPS")?.unwrap_or(0),
            seed: SEED,
            ..Particles::new(file, 1, &extent)
        };
        if particles.delayed_close > MOST_DELAYED {
            bail!("{place}: DELAYED_CLOSE_TIMESTEPS keeps more than {MOST_DELAYED} time steps open");
        }
        let memory_limit = memory_limit(&keys, &particles, place)?;
        differences(kind, &particles).into_iter().for_each(|text| note(text.into()));
        Ok(Self {
            kind,
            alignment: parse_alignment(&keys)?,
            particles,
            mode: mode.unwrap_or(Mode::Sync),
            memory_limit,
            unavailable,
            asked,
        })
    }
}

/// What h5bench would measure instead, in cases where that is not what it says.
fn differences(kind: PatternKind, particles: &Particles) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if matches!(kind, PatternKind::Overwrite | PatternKind::Append) && particles.extent.len() > 1 {
        notes
            .push("overwrite and append in 2-D and 3-D write particles; h5bench writes addresses of its buffers there");
    }
    if kind == PatternKind::WriteUnlimited && particles.filters.is_empty() {
        notes.push("write-unlimited without COMPRESS writes chunks without filters; h5bench stops and writes nothing");
    }
    if kind == PatternKind::WriteVarNormalDist {
        notes.push("write_var_normal_dist: bytes are those of all ranks; h5bench takes one rank's for every rank");
    }
    if kind == PatternKind::Read && particles.file_per_rank {
        notes.push("FILE_PER_PROC: every rank reads its own file; h5bench does not open those files");
    }
    notes
}

/// IO_OPERATION must say what the benchmark is, if anything.
fn check_operation(keys: &Keys<'_>, kind: PatternKind, place: &str) -> Result<()> {
    let expected = match kind {
        PatternKind::Read => "READ",
        PatternKind::Overwrite => "OVERWRITE",
        PatternKind::Append => "APPEND",
        _ => "WRITE",
    };
    let words = ["READ", "WRITE", "OVERWRITE", "APPEND"].map(|word| (word, word));
    match keys.word("IO_OPERATION", &words)? {
        Some(other) if other != expected => {
            bail!("{place}: IO_OPERATION is {other}, but the benchmark is {:?}", kind.name())
        }
        _ => Ok(()),
    }
}

fn parse_extent(keys: &Keys<'_>, place: &str, note: &mut impl FnMut(String)) -> Result<Dims> {
    let count = keys.number("NUM_DIMS")?.unwrap_or(1);
    if !(1..=3).contains(&count) {
        bail!("{place}: NUM_DIMS is {count}; it should be 1, 2 or 3");
    }
    let mut extent = Dims::new();
    for (d, key) in ["DIM_1", "DIM_2", "DIM_3"].into_iter().enumerate() {
        let mut value = keys.positive(key)?;
        if d as u64 >= count {
            if let Some(extra @ 2..) = value {
                note(format!("{key}={extra} has no effect, since NUM_DIMS is {count}"));
            }
            continue;
        }
        // NUM_PARTICLES is the older way to say DIM_1.
        if d == 0 && value.is_none() {
            value = keys.positive("NUM_PARTICLES")?;
        }
        extent.push(value.unwrap_or_else(|| {
            note(format!("{key} is missing: 1 is taken, as in h5bench"));
            1
        }));
    }
    Ok(extent)
}

/// A name of a file in the run's directory.
fn parse_file_name(keys: &Keys<'_>, key: &str, place: &str) -> Result<Option<String>> {
    let name = keys.text(key)?;
    if let Some(name) = &name
        && (name.contains(['/', '\0']) || name == "." || name == "..")
    {
        bail!("{place}: {key} is {name:?}; it should be a plain file name");
    }
    Ok(name)
}

fn parse_filters(keys: &Keys<'_>, place: &str, unavailable: &mut Option<String>) -> Result<Vec<Filter>> {
    let compress = keys.flag("COMPRESS")?.unwrap_or(false);
    let text = keys.text("FILTERS")?;
    let word = keys.text("COMPRESS_FILTER")?;
    match (text, word) {
        (Some(_), Some(_)) => bail!("{place}: give FILTERS or COMPRESS_FILTER, not both"),
        (Some(text), None) => {
            let place = format!("{place}: FILTERS");
            text.split(',').map(|one| parse_filter(one.trim(), &place)).collect()
        }
        (None, Some(word)) if compress && !["GZIP", "DEFLATE"].contains(&word.to_ascii_uppercase().as_str()) => {
            *unavailable = Some(format!("COMPRESS_FILTER={word} is not available in this build"));
            Ok(Vec::new())
        }
        // The level that h5bench always uses.
        _ if compress => Ok(vec![Filter::Deflate(9)]),
        _ => Ok(Vec::new()),
    }
}

/// Chunks of at most about this many bytes, where the configuration names none.
const USUAL_CHUNK: u64 = 1 << 20;

fn parse_chunk(
    keys: &Keys<'_>,
    extent: &[u64],
    element: u64,
    wanted: bool,
    note: &mut impl FnMut(String),
) -> Result<Option<Dims>> {
    let given = ["CHUNK_DIM_1", "CHUNK_DIM_2", "CHUNK_DIM_3"].map(|key| keys.positive(key));
    let mut given = given.into_iter().collect::<Result<Vec<_>>>()?;
    given.truncate(extent.len());
    if !wanted {
        return Ok(None);
    }
    if given.iter().any(Option::is_some) {
        return Ok(Some(given.into_iter().map(|size| size.unwrap_or(1)).collect()));
    }
    let mut chunk: Dims = extent.into();
    while chunk.iter().fold(element, |bytes, n| bytes.saturating_mul(*n)) > USUAL_CHUNK {
        if let Some(largest) = chunk.iter_mut().max() {
            *largest = largest.div_ceil(2);
        }
    }
    let shown = hyperslab_core::dims::display(&chunk);
    note(format!("no CHUNK_DIM is given: chunks of {shown} are used; h5bench would make a chunk of every element"));
    Ok(Some(chunk))
}

fn parse_deviation(kind: PatternKind, keys: &Keys<'_>) -> Result<u64> {
    let deviation = keys.number("STDEV_DIM_1")?;
    Ok(match kind {
        PatternKind::WriteVarNormalDist => deviation.unwrap_or(1),
        _ => deviation.unwrap_or(0),
    })
}

/// The limit of memory for a time step or, in the background, for all; `None` without one.
fn memory_limit(keys: &Keys<'_>, particles: &Particles, place: &str) -> Result<Option<u64>> {
    let limit = keys.number("IO_MEM_LIMIT")?.unwrap_or(0);
    let need = particles.bytes_per_step().map_err(|e| anyhow::anyhow!("{place}: {e}"))?;
    if limit > 0 && need >= limit {
        bail!("{place}: a time step of one rank has {need} bytes, which IO_MEM_LIMIT={limit} does not allow");
    }
    Ok((limit > 0).then_some(limit))
}

fn parse_alignment(keys: &Keys<'_>) -> Result<Option<(u64, u64)>> {
    let threshold = keys.number("ALIGN_THRESHOLD")?.unwrap_or(0);
    let length = keys.number("ALIGN_LEN")?.unwrap_or(0);
    Ok((keys.flag("ALIGN")?.unwrap_or(false) && length > 1).then_some((length, threshold)))
}
