//! The `write` and `read` patterns and their keys.

use super::values::Keys;
use anyhow::{Context, Result, anyhow, bail};
use hyperslab_core::{Dims, Filter, Transfer};
use hyperslab_kernels::{FilePattern, MemoryPattern, Particles, Reading};
use serde_json::{Map, Value};
use std::time::Duration;

/// Which way the particles go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternKind {
    /// Creates a file.
    Write,
    /// Reads one that is there.
    Read,
}

impl PatternKind {
    /// The name in workflow files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// One benchmark of a workflow.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// Write or read.
    pub kind: PatternKind,
    /// The parameters; `ranks` is set when the run is planned.
    pub particles: Particles,
    /// What a read reads.
    pub reading: Reading,
    /// Alignment of objects in the file, and from which size on, if asked for.
    pub alignment: Option<(u64, u64)>,
}

/// Every key of h5bench's patterns.
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
    "COMPRESS",
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

impl Pattern {
    /// Reads a pattern's configuration; `place` names it in messages.
    pub fn parse(
        kind: PatternKind,
        file: String,
        map: &Map<String, Value>,
        place: &str,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let keys = Keys::new(map, place, KEYS)?;
        let absent = |what: &str| Err(anyhow!("{place}: {what} is not available in this build"));
        match keys.word("MODE", &["SYNC", "ASYNC", "LOG"].map(|word| (word, word)))? {
            Some("SYNC") | None => {}
            Some(mode) => return absent(&format!("MODE={mode}")),
        }
        if keys.flag("SUBFILING")? == Some(true) {
            return absent("SUBFILING=YES");
        }
        let memory = keys.word(
            "MEM_PATTERN",
            &[("CONTIG", MemoryPattern::Contiguous), ("INTERLEAVED", MemoryPattern::Interleaved)],
        )?;
        let pattern = keys.word(
            "FILE_PATTERN",
            &[
                ("CONTIG", Some(FilePattern::Contiguous)),
                ("INTERLEAVED", Some(FilePattern::Interleaved)),
                ("STRIDED", None),
            ],
        )?;
        let Some(pattern) = keys.need("FILE_PATTERN", pattern)? else {
            return absent("FILE_PATTERN=STRIDED");
        };
        let extent = parse_extent(&keys, place)?;
        let compress = keys.flag("COMPRESS")?.unwrap_or(false);
        let collective = keys.flag("COLLECTIVE_DATA")?.unwrap_or(false);
        let particles = Particles {
            ranks: 1,
            file,
            file_per_rank: keys.flag("FILE_PER_PROC")?.unwrap_or(false),
            time_steps: keys.need("TIMESTEPS", keys.positive("TIMESTEPS")?)?,
            chunk: compress.then(|| parse_chunk(&keys, extent.len())).transpose()?,
            extent,
            memory: keys.need("MEM_PATTERN", memory)?,
            pattern,
            compute: keys.time("EMULATED_COMPUTE_TIME_PER_TIMESTEP")?.unwrap_or(Duration::ZERO),
            transfer: if collective || compress { Transfer::Collective } else { Transfer::Independent },
            filters: if compress { vec![Filter::Deflate(9)] } else { Vec::new() },
            delayed_close: keys.number("DELAYED_CLOSE_TIMESTEPS")?.unwrap_or(0),
            seed: SEED,
        };
        if particles.delayed_close > 1000 {
            bail!("{place}: DELAYED_CLOSE_TIMESTEPS keeps more than 1000 time steps open");
        }
        check_memory_limit(&keys, &particles, place)?;
        let pattern = Self {
            kind,
            reading: parse_reading(kind, &keys, &particles, place)?,
            alignment: parse_alignment(&keys)?,
            particles,
        };
        if keys.text("CSV_FILE")?.is_some() {
            note(notes, "CSV_FILE is not written; results.json holds every figure");
        }
        Ok(pattern)
    }
}

fn note(notes: &mut Vec<String>, text: &str) {
    if !notes.iter().any(|n| n == text) {
        notes.push(text.to_owned());
    }
}

fn parse_extent(keys: &Keys<'_>, place: &str) -> Result<Dims> {
    let count = keys.number("NUM_DIMS")?.unwrap_or(1);
    if !(1..=3).contains(&count) {
        bail!("{place}: NUM_DIMS is {count}; it should be 1, 2 or 3");
    }
    let mut extent = Dims::new();
    for (d, key) in ["DIM_1", "DIM_2", "DIM_3"].into_iter().enumerate() {
        let value = keys.positive(key)?;
        if (d as u64) < count {
            // NUM_PARTICLES is the older way to say DIM_1.
            let value = if d == 0 && value.is_none() { keys.positive("NUM_PARTICLES")? } else { value };
            extent.push(keys.need(key, value)?);
        } else if let Some(extra @ 2..) = value {
            bail!("{place}: {key} is {extra}, but NUM_DIMS is {count}");
        }
    }
    Ok(extent)
}

fn parse_chunk(keys: &Keys<'_>, rank: usize) -> Result<Dims> {
    ["CHUNK_DIM_1", "CHUNK_DIM_2", "CHUNK_DIM_3"][..rank]
        .iter()
        .map(|key| Ok(keys.positive(key)?.unwrap_or(1)))
        .collect()
}

fn check_memory_limit(keys: &Keys<'_>, particles: &Particles, place: &str) -> Result<()> {
    let limit = keys.number("IO_MEM_LIMIT")?.unwrap_or(0);
    let need = particles.bytes_per_step().with_context(|| place.to_owned())?;
    if limit > 0 && need >= limit {
        bail!("{place}: a time step of one rank has {need} bytes, which IO_MEM_LIMIT={limit} does not allow");
    }
    Ok(())
}

fn parse_reading(kind: PatternKind, keys: &Keys<'_>, particles: &Particles, place: &str) -> Result<Reading> {
    let options = ["FULL", "PARTIAL", "STRIDED", "LDC", "RDC", "PRL", "CS"].map(|word| (word, word));
    let option = keys.word("READ_OPTION", &options)?.unwrap_or("FULL");
    let some = keys.number("TO_READ_NUM_PARTICLES")?.unwrap_or(0);
    if kind == PatternKind::Write {
        return Ok(Reading::Full);
    }
    match option {
        // Without a count, h5bench's PARTIAL reads everything.
        "PARTIAL" if some > 0 => {
            if particles.extent.len() != 1 || some > particles.extent[0] {
                bail!("{place}: TO_READ_NUM_PARTICLES needs NUM_DIMS=1 and at most DIM_1 particles");
            }
            Ok(Reading::First(some))
        }
        "FULL" | "PARTIAL" => Ok(Reading::Full),
        other => bail!("{place}: READ_OPTION={other} is not available in this build"),
    }
}

fn parse_alignment(keys: &Keys<'_>) -> Result<Option<(u64, u64)>> {
    let threshold = keys.number("ALIGN_THRESHOLD")?.unwrap_or(0);
    let length = keys.number("ALIGN_LEN")?.unwrap_or(0);
    Ok((keys.flag("ALIGN")?.unwrap_or(false) && length > 1).then_some((length, threshold)))
}
