//! The keys of `openpmd`.

use super::SEED;
use crate::values::Keys;
use anyhow::{Context, Result, bail};
use hyperslab_core::{Dims, TransferMode};
use hyperslab_kernels::{Encoding, OpenPmd, Phase, ReadPattern};
use serde_json::{Map, Value};

const WRITE_KEYS: &[&str] =
    &["operation", "fileLocation", "dim", "balanced", "ratio", "steps", "minBlock", "grid", "encoding", "rankBlocks"];
const READ_KEYS: &[&str] = &["operation", "pattern", "fileLocation"];

/// What is written.
#[derive(Debug, Clone)]
pub struct WriterKeys {
    balanced: bool,
    ratio: f64,
    steps: u64,
    block: Dims,
    /// Without it, as many mini-blocks along the first dimension as ranks, and 8 along the others.
    grid: Option<Dims>,
    encoding: Encoding,
    rank_blocks: bool,
}

/// An `openpmd` benchmark.
#[derive(Debug, Clone)]
pub enum OpenPmdKeys {
    Write(WriterKeys),
    Read {
        /// The name of the pattern, for people.
        name: String,
        pattern: ReadPattern,
        /// What is in the files.
        writer: WriterKeys,
    },
}

impl OpenPmdKeys {
    pub fn parse(map: &Map<String, Value>, place: &str, notes: &mut Vec<String>) -> Result<Self> {
        let all: Vec<&str> = WRITE_KEYS.iter().chain(READ_KEYS).copied().collect();
        let keys = Keys::new(map, place, &all)?;
        let operation = keys.word("operation", &[("write", true), ("read", false)])?;
        if keys.need("operation", operation)? {
            let keys = Keys::new(map, place, WRITE_KEYS)?;
            return Ok(Self::Write(WriterKeys::parse(&keys, place, notes)?));
        }
        let keys = Keys::new(map, place, READ_KEYS)?;
        let name = keys.need("pattern", keys.text("pattern")?)?;
        let pattern = name.parse().with_context(|| format!("{place}: pattern"))?;
        Ok(Self::Read { name, pattern, writer: WriterKeys::usual(3) })
    }

    /// A reader reads what the last writer before it writes.
    pub fn follow(&mut self, last: &mut Option<WriterKeys>, notes: &mut Vec<String>) {
        match (self, last) {
            (Self::Write(keys), last) => *last = Some(keys.clone()),
            (Self::Read { writer, .. }, Some(last)) => *writer = last.clone(),
            (Self::Read { .. }, None) => {
                notes.push("openpmd: the workflow writes nothing before; what is read is made first".into());
            }
        }
    }

    pub fn phases(&self, ranks: usize) -> Result<Vec<Phase>> {
        Ok(match self {
            Self::Write(writer) => vec![Phase::new("openpmd write", writer.kernel(ranks).write()?)],
            Self::Read { name, pattern, writer } => {
                vec![Phase::new(format!("openpmd read {name}"), writer.kernel(ranks).read(pattern)?)]
            }
        })
    }
}

impl WriterKeys {
    /// What the program writes without any keys.
    fn usual(dimensions: usize) -> Self {
        Self {
            balanced: true,
            ratio: 1.0,
            steps: 1,
            block: Dims::from_slice(&[64, 32, 32][..dimensions]),
            grid: None,
            encoding: Encoding::Group,
            rank_blocks: true,
        }
    }

    fn parse(keys: &Keys<'_>, place: &str, notes: &mut Vec<String>) -> Result<Self> {
        let dimensions = keys.positive("dim")?.unwrap_or(3);
        if dimensions > 3 {
            bail!("{place}: dim is {dimensions}; 1 to 3 dimensions are possible");
        }
        let dimensions = dimensions as usize;
        let usual = Self::usual(dimensions);
        let extents = |key: &str| -> Result<Option<Dims>> {
            let Some(text) = keys.text(key)? else { return Ok(None) };
            let numbers: Result<Dims, _> = text.split_whitespace().map(str::parse).collect();
            match numbers {
                Ok(numbers) if numbers.len() == dimensions && !numbers.contains(&0) => Ok(Some(numbers)),
                _ => bail!("{place}: {key} is {text:?}; it should be {dimensions} numbers of at least 1, as dim says"),
            }
        };
        let ratio = match keys.text("ratio")? {
            None => usual.ratio,
            Some(text) => match text.parse::<f64>() {
                Ok(ratio) if ratio.is_finite() && ratio >= 0.0 => ratio,
                _ => bail!("{place}: ratio is {text:?}; it should be a number such as 1 or 0.5"),
            },
        };
        let encoding = match keys.word("encoding", &[("f", Encoding::File), ("g", Encoding::Group)])? {
            Some(encoding) => encoding,
            None => {
                notes.push("openpmd: iterations are groups of one file (encoding g); the program's own default is not for HDF5".into());
                Encoding::Group
            }
        };
        Ok(Self {
            balanced: keys.flag("balanced")?.unwrap_or(true),
            ratio,
            steps: keys.positive("steps")?.unwrap_or(1),
            block: extents("minBlock")?.unwrap_or(usual.block),
            grid: extents("grid")?,
            encoding,
            rank_blocks: keys.flag("rankBlocks")?.unwrap_or(true),
        })
    }

    fn kernel(&self, ranks: usize) -> OpenPmd {
        let dimensions = self.block.len();
        let usual = || [ranks as u64, 8, 8].into_iter().take(dimensions).collect();
        OpenPmd {
            ranks,
            file: OpenPmd::usual_file(dimensions, self.balanced),
            balanced: self.balanced,
            ratio: self.ratio,
            steps: self.steps,
            block: self.block.clone(),
            grid: self.grid.clone().unwrap_or_else(usual),
            encoding: self.encoding,
            rank_blocks: self.rank_blocks,
            transfer: TransferMode::Independent,
            seed: SEED,
        }
    }
}
