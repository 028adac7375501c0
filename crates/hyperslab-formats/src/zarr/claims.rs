//! Which ranks write files in part, agreed before a collective write by ranks that are separate processes.
//!
//! A part of a file is written by reading, changing and replacing it, which loses what another process writes there
//! meanwhile. So each rank names the files that it writes in part, and every other rank says whether it writes one of
//! them too.

use hyperslab_core::{ChunkGrid, ChunkSubsets, Communicator, Dims, Error, Result, Selection, dims};

/// The most files that all ranks together name in one exchange.
const ROUND: usize = 1 << 20;

/// A file that one rank writes in part and another one too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Conflict {
    file: u64,
    in_part: u64,
    other: u64,
}

/// Refuses, on every rank alike, a write in which a rank writes part of a file that another rank writes too. With
/// `all_in_part`, this rank leaves bytes of every element alone. Collective.
pub fn check(comm: &dyn Communicator, selection: &Selection, grid: &ChunkGrid, all_in_part: bool) -> Result<()> {
    let mut parts = Some(selection.split_by_chunk(grid)?);
    let most = (ROUND / comm.size()).max(1);
    let mut first: Option<Conflict> = None;
    let mut any = false;
    loop {
        let (mine, failure) = match next_names(&mut parts, grid, all_in_part, most) {
            Ok(names) => (names, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let more = parts.is_some() && failure.is_none();
        let mut said = vec![u8::from(more) | u8::from(failure.is_some()) << 1];
        said.extend(mine.iter().flat_map(|name| name.to_le_bytes()));
        let all = comm.all_gather(&said)?;
        let flags = all.iter().fold(0, |flags, said| flags | said.first().copied().unwrap_or(0));
        if flags & 2 > 0 {
            return hyperslab_core::agree(comm, failure.map_or(Ok(()), Err));
        }
        for (rank, said) in all.iter().enumerate() {
            let names = said.get(1..).unwrap_or_default().as_chunks::<8>().0;
            any |= !names.is_empty();
            for name in names.iter().filter(|_| rank != comm.rank()) {
                let file = u64::from_le_bytes(*name);
                if writes(selection, grid, file)? {
                    let found = Conflict { file, in_part: rank as u64, other: comm.rank() as u64 };
                    first = Some(first.map_or(found, |first| first.min(found)));
                }
            }
        }
        if flags & 1 == 0 {
            break;
        }
    }
    // Nobody writes in part, as every rank knows.
    if any { refuse(comm, grid, first) } else { Ok(()) }
}

/// The numbers of up to `most` more files that the selection covers in part; `parts` is gone after the last.
fn next_names(
    parts: &mut Option<ChunkSubsets<'_>>,
    grid: &ChunkGrid,
    all_in_part: bool,
    most: usize,
) -> Result<Vec<u64>> {
    let mut names = Vec::new();
    while let Some(waiting) = parts {
        match waiting.next() {
            None => *parts = None,
            Some(part) => {
                let part = part?;
                if all_in_part || !part.covers_chunk {
                    names.push(grid.linear(&part.chunk)?);
                }
            }
        }
        if names.len() == most {
            break;
        }
    }
    Ok(names)
}

/// Whether the selection has an element in the file.
fn writes(selection: &Selection, grid: &ChunkGrid, file: u64) -> Result<bool> {
    let Some((low, high)) = selection.bounds() else { return Ok(false) };
    let chunk = grid.coordinates(file)?;
    let (start, extent) = (grid.origin(&chunk)?, grid.extent(&chunk)?);
    let near = (0..start.len()).all(|d| start[d] < high[d] && low[d] < start[d] + extent[d]);
    Ok(near && selection.overlaps(&Selection::dense(&start, &extent)?))
}

/// Tells everyone of the first conflict that any rank found.
fn refuse(comm: &dyn Communicator, grid: &ChunkGrid, mine: Option<Conflict>) -> Result<()> {
    let said: Vec<u8> =
        mine.iter().flat_map(|found| [found.file, found.in_part, found.other]).flat_map(u64::to_le_bytes).collect();
    let heard = |said: Vec<u8>| match said.as_chunks::<8>().0 {
        [file, in_part, other] => Some(Conflict {
            file: u64::from_le_bytes(*file),
            in_part: u64::from_le_bytes(*in_part),
            other: u64::from_le_bytes(*other),
        }),
        _ => None,
    };
    let Some(first) = comm.all_gather(&said)?.into_iter().filter_map(heard).min() else { return Ok(()) };
    let chunk: Dims = grid.coordinates(first.file)?;
    let extents = dims::display(grid.chunk());
    Err(Error::unsupported(
        "write",
        format!(
            "rank {} writes part of chunk {:?} (of {extents}), and rank {} writes there too, as separate processes: one \
             of them could be lost",
            first.in_part,
            chunk.as_slice(),
            first.other
        ),
    )
    .hint("choose chunks (or shards) so that no two ranks write elements of the same one"))
}
