//! A file as lines of letters: which array has most of the bytes of a cell.

use anyhow::Result;
use hyperslab_core::units::display_size;
use hyperslab_formats::file_map::FileMap;
use std::collections::BTreeMap;
use std::io::Write;

/// Cells of a line.
const COLUMNS: u64 = 64;
/// Lines of a drawing, at most.
const LINES: u64 = 16;
const METADATA: char = '#';
const NEITHER: char = '.';

/// The letter of an array.
pub fn letter(array: usize) -> char {
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').collect();
    letters.get(array).copied().unwrap_or('*')
}

/// What has most of the bytes of each cell, and the bytes of a cell.
pub fn cells(map: &FileMap, most: u64) -> (Vec<Option<Option<usize>>>, u64) {
    let end = map.pieces.last().map_or(0, |piece| piece.start + piece.len).max(map.size).max(1);
    let cell = end.div_ceil(most).next_power_of_two();
    let mut bytes: Vec<BTreeMap<Option<usize>, u64>> = vec![BTreeMap::new(); end.div_ceil(cell) as usize];
    for piece in &map.pieces {
        let (mut at, end) = (piece.start, piece.start + piece.len);
        while at < end {
            let next = ((at / cell + 1) * cell).min(end);
            *bytes[(at / cell) as usize].entry(piece.array).or_default() += next - at;
            at = next;
        }
    }
    let largest = |counts: &BTreeMap<Option<usize>, u64>| {
        let found = counts.iter().max_by_key(|(_, bytes)| **bytes);
        found.filter(|(_, most)| **most * 2 >= cell || counts.values().sum::<u64>() * 2 >= cell).map(|(what, _)| *what)
    };
    (bytes.iter().map(largest).collect(), cell)
}

/// Draws.
pub fn print(out: &mut dyn Write, map: &FileMap) -> Result<()> {
    let (cells, cell) = cells(map, COLUMNS * LINES);
    writeln!(out, "each letter is {}: {METADATA} metadata, {NEITHER} neither", display_size(cell))?;
    for (number, line) in cells.chunks(COLUMNS as usize).enumerate() {
        let text: String = line
            .iter()
            .map(|cell| match cell {
                None => NEITHER,
                Some(None) => METADATA,
                Some(Some(array)) => letter(*array),
            })
            .collect();
        writeln!(out, "{:>12} {text}", display_size(number as u64 * COLUMNS * cell))?;
    }
    Ok(())
}
