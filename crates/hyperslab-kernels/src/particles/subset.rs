//! Which of its particles a rank transfers.

use hyperslab_core::{Dims, Error, Result, Selection, Slab, dims};

/// A part of the box of particles that belongs to a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParticleSubset {
    /// All of it.
    Whole,
    /// The first so many particles (1-D only).
    First(u64),
    /// Blocks at regular distances along every dimension.
    Strided {
        /// From the beginning of one block to that of the next.
        stride: Dims,
        /// Extents of a block.
        block: Dims,
        /// Number of blocks.
        count: Dims,
    },
    /// A block in the first corner and one in the last (2-D only).
    Diagonal {
        /// Extents of a block.
        block: [u64; 2],
    },
    /// A block in each of the other two corners (2-D only).
    OtherDiagonal {
        /// Extents of a block.
        block: [u64; 2],
    },
    /// All around the rim (2-D only).
    Rim {
        /// Thickness of the rim along each dimension.
        block: [u64; 2],
    },
    /// Blocks that go down like stairs, as long as they fit (2-D only).
    Stairs {
        /// Extents of a block.
        block: [u64; 2],
        /// From one block to the next.
        stride: [u64; 2],
    },
}

impl ParticleSubset {
    /// As many strided blocks along a dimension as fit.
    pub fn blocks_that_fit(extent: u64, stride: u64, block: u64) -> u64 {
        if block > extent { 0 } else { (extent - block) / stride.max(1) + 1 }
    }

    /// Words that go before "particles"; empty for all of them.
    pub(super) fn about(&self) -> String {
        let by = |block: &[u64]| dims::display(block);
        match self {
            Self::Whole => String::new(),
            Self::First(n) => format!("the first {n} of "),
            Self::Strided { stride, block, count } => {
                format!("{} blocks of {} every {} of ", by(count), by(block), by(stride))
            }
            Self::Diagonal { block } => format!("first and last corner of {} of ", by(block)),
            Self::OtherDiagonal { block } => format!("the other two corners of {} of ", by(block)),
            Self::Rim { block } => format!("a rim of {} of ", by(block)),
            Self::Stairs { block, stride } => format!("stairs of {} by {} of ", by(block), by(stride)),
        }
    }

    /// Refuses a part that does not lie inside `extent`.
    pub(super) fn check(&self, extent: &[u64]) -> Result<()> {
        let bad = |m: String| Err(Error::invalid("plan particles", m));
        let of = || format!("each rank has {}", dims::display(extent));
        match self {
            Self::Whole => Ok(()),
            Self::First(n) if extent.len() == 1 && (1..=extent[0]).contains(n) => Ok(()),
            Self::First(n) => {
                bad(format!("a partial transfer of {n} needs one dimension of at least as many; {}", of()))
            }
            Self::Strided { stride, block, count } => {
                for (d, &extent) in extent.iter().enumerate() {
                    let (Some(&stride), Some(&block), Some(&count)) = (stride.get(d), block.get(d), count.get(d))
                    else {
                        return bad(format!("a stride, block or count is missing for dimension {}", d + 1));
                    };
                    if stride < block && count > 1 {
                        return bad(format!("blocks of {block} every {stride} overlap in dimension {}", d + 1));
                    }
                    let reach =
                        count.checked_sub(1).and_then(|n| n.checked_mul(stride)).and_then(|n| n.checked_add(block));
                    if block == 0 || reach.is_none_or(|reach| reach > extent) {
                        return bad(format!(
                            "{count} blocks of {block} every {stride} do not fit in {extent} of dimension {}",
                            d + 1
                        ));
                    }
                }
                Ok(())
            }
            Self::Diagonal { block }
            | Self::OtherDiagonal { block }
            | Self::Rim { block }
            | Self::Stairs { block, .. } => {
                if extent.len() != 2 {
                    return bad(format!("corners, rims and stairs need two dimensions; {}", of()));
                }
                if block.iter().zip(extent).any(|(b, e)| *b == 0 || b > e) {
                    return bad(format!("a block of {} does not fit; {}", dims::display(block), of()));
                }
                match self {
                    Self::Stairs { stride, .. } if stride.contains(&0) => bad("a stride of stairs is 0".into()),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Number of particles in a box of `extent`.
    pub(super) fn len(&self, extent: &[u64]) -> Result<u64> {
        match self {
            Self::Whole => dims::byte_count(extent, 1),
            _ => Ok(self.within(&Dims::from_elem(0, extent.len()), extent)?.len()),
        }
    }

    /// The part of the box of `extent` at `start`.
    pub(super) fn within(&self, start: &[u64], extent: &[u64]) -> Result<Selection> {
        self.check(extent)?;
        let boxes = |boxes: &[([u64; 2], [u64; 2])]| {
            let mut slabs = Vec::with_capacity(boxes.len());
            for (at, size) in boxes {
                slabs.extend(Slab::dense(&[start[0] + at[0], start[1] + at[1]], size)?);
            }
            Selection::union(2, slabs)
        };
        match self {
            Self::Whole => Selection::dense(start, extent),
            Self::First(n) => Selection::dense(start, &[*n]),
            Self::Strided { stride, block, count } => Selection::strided(start, stride, count, block),
            Self::Diagonal { block } => {
                boxes(&[([0, 0], *block), ([extent[0] - block[0], extent[1] - block[1]], *block)])
            }
            Self::OtherDiagonal { block } => {
                boxes(&[([0, extent[1] - block[1]], *block), ([extent[0] - block[0], 0], *block)])
            }
            Self::Rim { block: [rows, columns] } => boxes(&[
                ([0, 0], [*rows, extent[1]]),
                ([extent[0] - rows, 0], [*rows, extent[1]]),
                ([0, 0], [extent[0], *columns]),
                ([0, extent[1] - columns], [extent[0], *columns]),
            ]),
            Self::Stairs { block, stride } => {
                let fit = (0..2).map(|d| Self::blocks_that_fit(extent[d], stride[d], block[d])).min().unwrap_or(0);
                if fit > MOST_STAIRS {
                    return Err(Error::invalid(
                        "plan particles",
                        format!("{fit} steps of stairs; at most {MOST_STAIRS} are possible"),
                    ));
                }
                let steps: Vec<_> = (0..fit).map(|i| ([i * stride[0], i * stride[1]], *block)).collect();
                boxes(&steps)
            }
        }
    }
}

/// Every block of stairs is a piece of the selection, and a time step holds the selection several times: these are some
/// 15 MiB.
const MOST_STAIRS: u64 = 1 << 14;
