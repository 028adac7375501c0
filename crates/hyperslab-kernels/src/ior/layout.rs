//! What the bytes of the pattern are elements of.

use super::steps::Direction;
use super::{Ior, Order};
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, Result, Selection};
use std::sync::Arc;

/// The arrays that a container holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// One array of 64-bit integers.
    Words,
    /// An array of 64-bit integers for each segment, as IOR's own HDF5 backend makes them.
    WordsPerSegment,
    /// One array of 64-bit integers in chunks of so many.
    ChunkedWords(u64),
    /// One array of bytes that is longer than before at each call beyond its end; it is made with one byte.
    GrowingBytes {
        /// Bytes of a chunk.
        chunk: u64,
    },
    /// One array of bytes.
    Bytes {
        /// Bytes of a chunk, if it has chunks.
        chunk: Option<u64>,
    },
    /// Bytes in rows of `columns`; a transfer is a part of a row.
    Grid {
        /// Bytes of a row.
        columns: u64,
        /// Rows, at least those that are needed; as many if not given.
        rows: Option<u64>,
        /// Rows and columns of a chunk.
        chunk: Option<[u64; 2]>,
        /// Made with one row, and grown before each call beyond the last.
        grows: bool,
    },
}

impl Layout {
    /// Bytes of an element.
    pub(super) fn element(&self) -> u64 {
        match self {
            Self::Words | Self::WordsPerSegment | Self::ChunkedWords(_) => 8,
            _ => 1,
        }
    }

    /// Whether arrays are created or grown between calls, which ranks can only do together.
    pub(super) fn is_collective(&self) -> bool {
        matches!(self, Self::WordsPerSegment) || self.grows()
    }

    pub(super) fn grows(&self) -> bool {
        matches!(self, Self::GrowingBytes { .. } | Self::Grid { grows: true, .. })
    }

    pub(super) fn check(&self, ior: &Ior) -> Result<()> {
        let bad = |message: String, hint: &str| Err(Error::invalid("plan IOR", message).hint(hint));
        if self.grows() && ior.order != Order::Sequential {
            return bad("a file that grows is written in order".into(), "leave out -z, or unlimited");
        }
        let in_turn =
            ior.order == Order::Sequential || ior.file_per_rank && matches!(ior.order, Order::Shuffled { .. });
        if matches!(self, Self::WordsPerSegment) && !(in_turn && ior.gather == 1) {
            return bad(
                "ranks open the dataset of a segment together, so each must have as many calls in it".into(),
                "leave out --dataset-per-segment, or --gather and -z",
            );
        }
        if let Self::Grid { columns, rows, .. } = self {
            if *columns == 0 || !columns.is_multiple_of(ior.transfer) {
                return bad(
                    format!("a transfer of {} bytes does not divide a row of {columns}", ior.transfer),
                    "choose dimy as a multiple of -t",
                );
            }
            if ior.gather > 1 && !columns.is_multiple_of(ior.block) {
                return bad("gathered blocks do not divide a row".into(), "choose dimy as a multiple of -b");
            }
            let needed = ior.container_bytes().div_ceil(*columns);
            if rows.is_some_and(|rows| rows < needed) {
                return bad(format!("{needed} rows of {columns} bytes are needed"), "choose dimx at least as large");
            }
        }
        Ok(())
    }

    /// The array, or each of them. One that grows is declared with its last extents to those who read it.
    pub(super) fn spec(&self, ior: &Ior, direction: Direction) -> ArraySpec {
        let shape = match direction {
            Direction::Create if self.grows() => self.first_shape(),
            _ => self.shape(ior),
        };
        let dtype = if self.element() == 8 { Datatype::I64 } else { Datatype::U8 };
        let mut spec = ArraySpec::new(dtype, &shape);
        let chunk = match self {
            Self::ChunkedWords(chunk) | Self::GrowingBytes { chunk } | Self::Bytes { chunk: Some(chunk) } => {
                Some(Dims::from_slice(&[*chunk]))
            }
            Self::Grid { chunk: Some(chunk), .. } => Some(Dims::from_slice(chunk)),
            // Something that grows needs chunks.
            Self::Grid { chunk: None, grows: true, .. } => Some(Dims::from_slice(&[1, ior.transfer])),
            _ => None,
        };
        spec.chunk = chunk.filter(|_| ior.chunks);
        if self.grows() {
            let fixed = shape.iter().skip(1).map(|&extent| Some(extent));
            spec.max_shape = Some(std::iter::once(None).chain(fixed).collect());
        }
        spec
    }

    /// Extents once all is written.
    pub(super) fn shape(&self, ior: &Ior) -> Dims {
        match self {
            Self::WordsPerSegment => Dims::from_slice(&[ior.segment_bytes() / 8]),
            Self::Grid { columns, rows, .. } => {
                let needed = ior.container_bytes().div_ceil(*columns);
                Dims::from_slice(&[rows.unwrap_or(needed), *columns])
            }
            _ => Dims::from_slice(&[ior.container_bytes() / self.element()]),
        }
    }

    /// Extents when a growing array is made.
    pub(super) fn first_shape(&self) -> Dims {
        match self {
            Self::Grid { columns, .. } => Dims::from_slice(&[1, *columns]),
            _ => Dims::from_slice(&[1]),
        }
    }

    /// The extents that hold the bytes up to `end`, where growing.
    pub(super) fn grown(&self, end: u64) -> Dims {
        match self {
            Self::Grid { columns, .. } => Dims::from_slice(&[end.div_ceil(*columns), *columns]),
            _ => Dims::from_slice(&[end]),
        }
    }

    /// The name of the array that holds a segment.
    pub(super) fn name(&self, segment: u64) -> Arc<str> {
        match self {
            Self::WordsPerSegment => format!("Dataset-0000.{segment:04}").into(),
            _ => "data".into(),
        }
    }

    /// The elements of `blocks` blocks of `length` bytes, the first at `offset` of the container and each `distance` after
    /// the one before.
    pub(super) fn selection(
        &self,
        ior: &Ior,
        offset: u64,
        length: u64,
        blocks: u64,
        distance: u64,
    ) -> Result<Selection> {
        match self {
            Self::Grid { columns, .. } => {
                let one = |at: u64| Selection::dense(&[at / columns, at % columns], &[1, length.min(*columns)]);
                let mut all = one(offset)?;
                for block in 1..blocks {
                    all = all.union_with(&one(offset + block * distance)?)?;
                }
                Ok(all)
            }
            _ => {
                let offset = if matches!(self, Self::WordsPerSegment) { offset % ior.segment_bytes() } else { offset };
                let element = self.element();
                let (start, count) = (offset / element, length / element);
                if blocks == 1 {
                    return Selection::dense(&[start], &[count]);
                }
                Selection::strided(&[start], &[distance / element], &[blocks], &[count])
            }
        }
    }
}
