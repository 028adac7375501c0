use crate::oracle::{Set, linear, rank, shape_around, union};
use hyperslab_core::{ChunkGrid, Selection};
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    #[test]
    fn every_element_is_in_its_chunk_once(
        (selection, set) in rank().prop_flat_map(union),
        more in prop::array::uniform4(0u64..3),
        chunk in prop::array::uniform4(1u64..9),
        element in 1u64..6,
    ) {
        let rank = selection.rank();
        let chunk = &chunk[..rank];
        let shape = shape_around(rank, &set, &more);
        let grid = ChunkGrid::new(&shape, chunk).unwrap();
        // What each chunk should get: (place in the chunk, place in packed memory), by number of the chunk.
        let mut expected: BTreeMap<u64, Vec<(u64, usize)>> = BTreeMap::new();
        for (packed, c) in set.iter().enumerate() {
            let of = grid.chunk_of(c).unwrap();
            let within: Vec<u64> = c.iter().zip(chunk).map(|(i, n)| i % n).collect();
            expected.entry(grid.linear(&of).unwrap()).or_default().push((linear(chunk, &within), packed));
        }
        let size = element as usize;
        let packed: Vec<u8> = (0..set.len() * size).map(|i| (i * 7 + 1) as u8).collect();
        let mut back = vec![0u8; packed.len()];
        let chunk_bytes = chunk.iter().product::<u64>() as usize * size;
        let mut seen = Vec::new();
        for part in selection.split_by_chunk(&grid).unwrap() {
            let part = part.unwrap();
            let number = grid.linear(&part.chunk).unwrap();
            prop_assert_eq!(grid.coordinates(number).unwrap(), part.chunk.clone());
            seen.push(number);
            let places = expected.get(&number).cloned().unwrap_or_default();
            let within: Set = crate::oracle::elements(&part.within);
            prop_assert_eq!(
                within.iter().map(|c| linear(chunk, c)).collect::<Vec<_>>(),
                places.iter().map(|p| p.0).collect::<Vec<_>>()
            );
            let inside: u64 = grid.extent(&part.chunk).unwrap().iter().product();
            prop_assert_eq!(part.covers_chunk, within.len() as u64 == inside);

            let mut buffer = vec![0xee; chunk_bytes];
            let mut naive = buffer.clone();
            for &(at, from) in &places {
                let at = at as usize;
                naive[at * size..(at + 1) * size].copy_from_slice(&packed[from * size..(from + 1) * size]);
            }
            part.copy_to_chunk(&packed, &mut buffer, element).unwrap();
            prop_assert_eq!(&buffer, &naive);
            part.copy_from_chunk(&buffer, &mut back, element).unwrap();
            prop_assert!(part.copy_to_chunk(&packed, &mut buffer[1..], element).is_err());
            prop_assert!(part.copy_from_chunk(&buffer, &mut back[1..], element).is_err());
        }
        prop_assert_eq!(seen, expected.into_keys().collect::<Vec<_>>());
        prop_assert_eq!(back, packed);
    }
}

#[test]
fn grids_are_checked() {
    let grid = ChunkGrid::new(&[10, 7], &[4, 7]).unwrap();
    assert_eq!(grid.counts(), [3, 1]);
    assert_eq!(grid.len(), 3);
    assert_eq!(grid.extent(&[2, 0]).unwrap().as_slice(), [2, 7]);
    assert_eq!(grid.origin(&[2, 0]).unwrap().as_slice(), [8, 0]);
    assert_eq!(grid.chunk_of(&[9, 6]).unwrap().as_slice(), [2, 0]);
    assert!(grid.chunk_of(&[10, 0]).is_err());
    assert!(grid.extent(&[3, 0]).is_err() && grid.linear(&[0]).is_err() && grid.coordinates(3).is_err());
    assert!(ChunkGrid::new(&[10], &[0]).is_err());
    assert!(ChunkGrid::new(&[10], &[1, 1]).is_err());
    assert!(ChunkGrid::new(&[u64::MAX, 2], &[1, 1]).is_err());
    assert!(ChunkGrid::new(&[2, 2], &[u64::MAX, 2]).is_err());
    assert!(ChunkGrid::new(&[0, 5], &[2, 2]).unwrap().is_empty());
    assert_eq!(ChunkGrid::new(&[], &[]).unwrap().len(), 1);
    let whole = Selection::all(&[10, 7]).unwrap();
    assert!(whole.split_by_chunk(&ChunkGrid::new(&[9, 7], &[4, 7]).unwrap()).is_err());
    assert!(whole.split_by_chunk(&grid).unwrap().all(|part| part.unwrap().covers_chunk));
}

#[test]
fn untouched_chunks_cost_nothing() {
    // Two elements 2^60 apart, in chunks of one element.
    let far = Selection::strided(&[5], &[1 << 60], &[2], &[1]).unwrap();
    let grid = ChunkGrid::new(&[1 << 61], &[1]).unwrap();
    let chunks: Vec<u64> = far.split_by_chunk(&grid).unwrap().map(|part| part.unwrap().chunk[0]).collect();
    assert_eq!(chunks, [5, 5 + (1 << 60)]);
    // And the first of very many chunks come at once.
    let all = Selection::all(&[1 << 61]).unwrap();
    assert_eq!(all.split_by_chunk(&grid).unwrap().take(3).count(), 3);
}
