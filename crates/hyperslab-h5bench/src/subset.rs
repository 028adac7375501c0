//! Which particles a pattern transfers: READ_OPTION, strides and blocks.

use super::pattern::PatternKind;
use super::values::Keys;
use anyhow::{Result, bail};
use hyperslab_core::Dims;
use hyperslab_kernels::ParticleSubset;

const OPTIONS: [&str; 7] = ["FULL", "PARTIAL", "STRIDED", "LDC", "RDC", "PRL", "CS"];

/// The part of its particles that every rank transfers. `strided` is FILE_PATTERN=STRIDED.
pub fn parse_part(
    kind: PatternKind,
    strided: bool,
    keys: &Keys<'_>,
    extent: &[u64],
    place: &str,
    note: &mut impl FnMut(String),
) -> Result<ParticleSubset> {
    let option = keys.word("READ_OPTION", &OPTIONS.map(|word| (word, word)))?.unwrap_or("FULL");
    let first = keys.number("TO_READ_NUM_PARTICLES")?;
    if first.is_some() && kind != PatternKind::Read {
        bail!("{place}: TO_READ_NUM_PARTICLES belongs to read benchmarks only");
    }
    let part = match option {
        _ if kind.creates() && !strided => return Ok(ParticleSubset::Whole),
        _ if kind.creates() => parse_strided(keys, extent)?,
        "STRIDED" => parse_strided(keys, extent)?,
        "LDC" | "RDC" | "PRL" | "CS" => {
            note(format!(
                "READ_OPTION={option}: every rank transfers these blocks of its own part; in h5bench rank 0 alone does, \
                 and its bytes are counted for every rank"
            ));
            parse_blocks(option, keys, extent, place)?
        }
        _ if strided => parse_strided(keys, extent)?,
        "PARTIAL" if first.unwrap_or(0) == 0 => {
            note("READ_OPTION=PARTIAL without TO_READ_NUM_PARTICLES reads everything, as in h5bench".into());
            ParticleSubset::Whole
        }
        "PARTIAL" => ParticleSubset::First(first.unwrap_or(0)),
        _ => ParticleSubset::Whole,
    };
    if let ParticleSubset::First(n) = part
        && (extent.len() != 1 || n > extent[0])
    {
        bail!("{place}: TO_READ_NUM_PARTICLES needs NUM_DIMS=1 and at most DIM_1 particles");
    }
    if let ParticleSubset::Strided { stride, block, count } = &part
        && stride == block
        && count.iter().any(|n| *n > 1)
    {
        note("STRIDE_SIZE equals BLOCK_SIZE, so the blocks touch: the transfer is contiguous (a stride counts from the beginning of one block to that of the next)".into());
    }
    Ok(part)
}

/// Blocks at regular distances. BLOCK_CNT counts those of the first dimension; elsewhere, and without it, as many as
/// fit. A further dimension without its own BLOCK_SIZE is taken whole.
fn parse_strided(keys: &Keys<'_>, extent: &[u64]) -> Result<ParticleSubset> {
    let (mut strides, mut blocks, mut counts) = (Dims::new(), Dims::new(), Dims::new());
    let names = [("STRIDE_SIZE", "BLOCK_SIZE"), ("STRIDE_SIZE_2", "BLOCK_SIZE_2"), ("STRIDE_SIZE_3", "BLOCK_SIZE_3")];
    for (d, (&extent, (stride_key, block_key))) in extent.iter().zip(names).enumerate() {
        let (stride, block) = (keys.positive(stride_key)?, keys.positive(block_key)?);
        if d > 0 && stride.is_none() && block.is_none() {
            strides.push(extent);
            blocks.push(extent);
            counts.push(1);
            continue;
        }
        let block = if d == 0 { keys.need(block_key, block)? } else { block.unwrap_or(1) };
        let stride = if d == 0 { keys.need(stride_key, stride)? } else { stride.unwrap_or(block) };
        let fit = ParticleSubset::blocks_that_fit(extent, stride, block).max(1);
        counts.push(if d == 0 { keys.positive("BLOCK_CNT")?.unwrap_or(fit) } else { fit });
        strides.push(stride);
        blocks.push(block);
    }
    Ok(ParticleSubset::Strided { stride: strides, block: blocks, count: counts })
}

/// Corners, rims and stairs of two dimensions.
fn parse_blocks(option: &str, keys: &Keys<'_>, extent: &[u64], place: &str) -> Result<ParticleSubset> {
    if extent.len() != 2 {
        bail!("{place}: READ_OPTION={option} needs NUM_DIMS=2");
    }
    let block = [
        keys.need("BLOCK_SIZE", keys.positive("BLOCK_SIZE")?)?,
        keys.need("BLOCK_SIZE_2", keys.positive("BLOCK_SIZE_2")?)?,
    ];
    Ok(match option {
        "LDC" => ParticleSubset::Diagonal { block },
        "RDC" => ParticleSubset::OtherDiagonal { block },
        "PRL" => ParticleSubset::Rim { block },
        _ => ParticleSubset::Stairs {
            block,
            stride: [
                keys.need("STRIDE_SIZE", keys.positive("STRIDE_SIZE")?)?,
                keys.need("STRIDE_SIZE_2", keys.positive("STRIDE_SIZE_2")?)?,
            ],
        },
    })
}
