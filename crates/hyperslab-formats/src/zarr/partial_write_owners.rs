//! Conflict detection before collective writes by separate processes: at most one rank may write a partly covered file.
//!
//! A partial write is a read-modify-write of the file, which loses concurrent writes of another process. So each rank
//! announces the files that it covers partly, and every other rank checks whether it writes one of them too.

use hyperslab_core::{ChunkGrid, ChunkSubsets, Communicator, Dims, Error, Result, Selection, dims};

/// Maximum number of files announced by all ranks in one exchange.
const ROUND: usize = 1 << 20;

/// A file that one rank covers partly and another one writes too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Conflict {
    file: u64,
    partial_writer: u64,
    other: u64,
}

/// Fails, on every rank alike, if a rank covers a file partly that another rank writes too. `partial_elements`: this
/// rank does not write all bytes of its elements, so that it covers every file partly. Collective.
pub fn check(comm: &dyn Communicator, selection: &Selection, grid: &ChunkGrid, partial_elements: bool) -> Result<()> {
    let mut parts = Some(selection.split_by_chunk(grid)?);
    let most = (ROUND / comm.size()).max(1);
    let mut first: Option<Conflict> = None;
    let mut any = false;
    loop {
        let (mine, failure) = match next_names(&mut parts, grid, partial_elements, most) {
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
                    let found = Conflict { file, partial_writer: rank as u64, other: comm.rank() as u64 };
                    first = Some(first.map_or(found, |first| first.min(found)));
                }
            }
        }
        if flags & 1 == 0 {
            break;
        }
    }
    // If no rank announced a file, all know that there is no conflict.
    if any { refuse(comm, grid, first) } else { Ok(()) }
}

/// Up to `most` more files that the selection covers partly; sets `parts` to `None` after the last.
fn next_names(
    parts: &mut Option<ChunkSubsets<'_>>,
    grid: &ChunkGrid,
    partial_elements: bool,
    most: usize,
) -> Result<Vec<u64>> {
    let mut names = Vec::new();
    while let Some(waiting) = parts {
        match waiting.next() {
            None => *parts = None,
            Some(part) => {
                let part = part?;
                if partial_elements || !part.covers_chunk {
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

/// Agrees on the first conflict of all ranks, and fails with it.
fn refuse(comm: &dyn Communicator, grid: &ChunkGrid, mine: Option<Conflict>) -> Result<()> {
    let said: Vec<u8> = mine
        .iter()
        .flat_map(|found| [found.file, found.partial_writer, found.other])
        .flat_map(u64::to_le_bytes)
        .collect();
    let heard = |said: Vec<u8>| match said.as_chunks::<8>().0 {
        [file, partial_writer, other] => Some(Conflict {
            file: u64::from_le_bytes(*file),
            partial_writer: u64::from_le_bytes(*partial_writer),
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
            first.partial_writer,
            chunk.as_slice(),
            first.other
        ),
    )
    .hint("choose chunks (or shards) so that no two ranks write elements of the same one"))
}
