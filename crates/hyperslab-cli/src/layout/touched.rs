//! Which storage targets the calls of a workload touch.

use super::stripes::Stripes;
use anyhow::{Result, bail};
use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{ChunkGrid, Datatype, Dims, Selection};
use hyperslab_formats::file_map::{FileMap, FilePiece};
use std::collections::{BTreeSet, HashMap};
use std::io::Write;

/// Ranks that are listed.
const MOST_RANKS: usize = 16;

/// The calls of one rank, by how many targets they touch.
#[derive(Debug, Default)]
struct Calls {
    /// Targets of each call.
    targets: Vec<usize>,
    all: BTreeSet<u64>,
    /// Calls that touch nothing that is stored.
    nowhere: u64,
}

/// An array of the workload, as the file has it.
struct Placed<'a> {
    array: usize,
    shape: Dims,
    size: u64,
    pieces: &'a HashMap<&'a [u64], &'a FilePiece>,
}

/// Prints how many targets each rank's calls touch.
pub fn print(out: &mut dyn Write, map: &FileMap, stripes: Stripes, workload: &Workload) -> Result<()> {
    let mut pieces: Vec<HashMap<&[u64], &FilePiece>> = vec![HashMap::new(); map.arrays.len()];
    for piece in &map.pieces {
        if let Some(array) = piece.array {
            pieces[array].insert(&piece.origin, piece);
        }
    }
    writeln!(out, "workload {}: storage targets that a call touches", crate::terminal::plain(&workload.header.name))?;
    writeln!(
        out,
        "  {:<8} {:>10} {:>8} {:>8} {:>8} {:>14}",
        "rank", "calls", "fewest", "median", "most", "all together"
    )?;
    let mut found_any = false;
    for rank in 0..workload.header.ranks {
        let mut calls = of_rank(map, stripes, workload, rank, &pieces)?;
        found_any |= !calls.targets.is_empty();
        if rank >= MOST_RANKS {
            continue;
        }
        calls.targets.sort_unstable();
        let number = calls.targets.len();
        let at = |index: usize| calls.targets.get(index).copied().unwrap_or(0);
        writeln!(
            out,
            "  {rank:<8} {:>10} {:>8} {:>8} {:>8} {:>9} of {}",
            number as u64 + calls.nowhere,
            at(0),
            at(number / 2),
            at(number.saturating_sub(1)),
            calls.all.len(),
            stripes.count
        )?;
        if calls.nowhere > 0 {
            writeln!(out, "           {} calls touch nothing that is stored", calls.nowhere)?;
        }
    }
    if workload.header.ranks > MOST_RANKS {
        writeln!(out, "  and {} more ranks", workload.header.ranks - MOST_RANKS)?;
    }
    if !found_any {
        bail!("no array that the workload reads or writes is in this file\n  try: the file that the workload made");
    }
    Ok(())
}

fn of_rank(
    map: &FileMap,
    stripes: Stripes,
    workload: &Workload,
    rank: usize,
    pieces: &[HashMap<&[u64], &FilePiece>],
) -> Result<Calls> {
    let mut calls = Calls::default();
    let mut slots: HashMap<u32, Placed<'_>> = HashMap::new();
    for step in workload.steps(rank)? {
        match step? {
            Step::Create { slot, array, name, .. } | Step::Open { slot, array, name, .. } => {
                slots.remove(&slot);
                let wanted = name.trim_matches('/');
                let spec = workload.header.arrays.get(array as usize).map(|declaration| &declaration.spec);
                let number = map.arrays.iter().position(|array| array.name == wanted);
                if let (Some(array), Some(spec)) = (number, spec)
                    && map.arrays[array].block.len() == spec.shape.len()
                    && spec.dtype != Datatype::VariableString
                {
                    let (shape, size) = (spec.shape.clone(), spec.dtype.size());
                    slots.insert(slot, Placed { array, shape, size, pieces: &pieces[array] });
                }
            }
            Step::Resize { slot, shape } => {
                if let Some(placed) = slots.get_mut(&slot) {
                    placed.shape = shape;
                }
            }
            Step::CloseArray { slot } => drop(slots.remove(&slot)),
            Step::Write { slot, selection, .. } | Step::Read { slot, selection, .. } => {
                let Some(placed) = slots.get(&slot).filter(|_| !selection.is_empty()) else { continue };
                let targets = touched(map, stripes, placed, &selection)?;
                if targets.is_empty() {
                    calls.nowhere += 1;
                } else {
                    calls.targets.push(targets.len());
                    calls.all.extend(targets);
                }
            }
            _ => {}
        }
    }
    Ok(calls)
}

/// The targets of a selection.
fn touched(map: &FileMap, stripes: Stripes, placed: &Placed<'_>, selection: &Selection) -> Result<BTreeSet<u64>> {
    let array = &map.arrays[placed.array];
    let mut targets = BTreeSet::new();
    let mut add = |start, len| targets.extend(stripes.targets(start, len));
    if array.block.is_empty() || array.block.contains(&0) {
        placed.pieces.values().for_each(|piece| add(piece.start, piece.len));
        return Ok(targets);
    }
    let grid = ChunkGrid::new(&placed.shape, &array.block)?;
    for part in selection.split_by_chunk(&grid)? {
        let part = part?;
        let origin: Dims = part.chunk.iter().zip(&array.block).map(|(chunk, extent)| chunk * extent).collect();
        let Some(piece) = placed.pieces.get(origin.as_slice()) else { continue };
        if !array.plain || part.covers_chunk {
            targets.extend(stripes.targets(piece.start, piece.len));
            continue;
        }
        for run in part.within.runs(&array.block, 1)? {
            targets.extend(stripes.targets(piece.start + run.offset * placed.size, run.len * placed.size));
            if targets.len() as u64 == stripes.count {
                break;
            }
        }
    }
    Ok(targets)
}
