//! Transfers of strings of variable length. Chunks tell the places of their elements as numbers, by which strings are found.

use super::array_state::Current;
use super::transfer::Transferring;
use hyperslab_core::{ChunkGrid, ChunkSubset, Error, Result, Selection, Strings};

/// An element that a write does not change.
const UNTOUCHED: u64 = u64::MAX;
/// Bytes of a number.
const NUMBER: u64 = size_of::<u64>() as u64;

fn to_bytes(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    numbers.flat_map(u64::to_ne_bytes).collect()
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<{ size_of::<u64>() }>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes))
}

impl Transferring<'_> {
    /// The strings of a chunk, or fill values where there is no file. The caller holds its lock.
    fn strings_of(&self, chunk: &[u64]) -> Result<Strings> {
        let Current { layout, chunks, .. } = self.current;
        Ok(match chunks.load_strings(layout, chunk)? {
            Some(strings) => strings,
            None => (0..layout.file.iter().product::<u64>()).map(|_| &layout.fill).collect(),
        })
    }

    /// Writes the selected strings.
    pub fn write_strings(&self, selection: &Selection, strings: &Strings) -> Result<()> {
        let layout = &self.current.layout;
        selection.check_inside(&layout.shape)?;
        strings.check_for(selection.len())?;
        let packed = to_bytes(0..selection.len());
        let grid = ChunkGrid::new(&layout.shape, &layout.file)?;
        selection.split_by_chunk(&grid)?.try_for_each(|part| self.write_string_part(&part?, &packed, strings))
    }

    fn write_string_part(&self, part: &ChunkSubset, packed: &[u8], strings: &Strings) -> Result<()> {
        let Current { layout, chunks, .. } = self.current;
        self.refuse_shared_part(part.covers_chunk)?;
        let _lock = self.state.identity.writing(&part.chunk);
        let before = if part.covers_chunk { None } else { Some(self.strings_of(&part.chunk)?) };
        let mut places = to_bytes((0..layout.file.iter().product::<u64>()).map(|_| UNTOUCHED));
        part.copy_to_chunk(packed, &mut places, NUMBER)?;
        let text = |(at, number): (usize, u64)| match (number, &before) {
            (UNTOUCHED, Some(before)) => before.get(at),
            (UNTOUCHED, None) => Some(layout.fill.as_slice()),
            (number, _) => strings.get(number as usize),
        };
        let after: Option<Vec<&[u8]>> = numbers(&places).enumerate().map(text).collect();
        let after = after.ok_or_else(|| Error::invalid("write", "a chunk has fewer strings than elements"))?;
        chunks.store_strings(self.files, layout, &part.chunk, &after.into_iter().collect())
    }

    /// Reads the selected strings.
    pub fn read_strings(&self, selection: &Selection) -> Result<Strings> {
        let layout = &self.current.layout;
        selection.check_inside(&layout.shape)?;
        let mut packed = to_bytes((0..selection.len()).map(|_| UNTOUCHED));
        // The strings of all chunks that are touched.
        let mut found = Strings::new();
        let grid = ChunkGrid::new(&layout.shape, &layout.file)?;
        for part in selection.split_by_chunk(&grid)? {
            let part = part?;
            let strings = {
                let _lock = self.state.identity.reading(&part.chunk);
                self.strings_of(&part.chunk)?
            };
            let first = found.len() as u64;
            part.copy_from_chunk(&to_bytes(first..first + strings.len() as u64), &mut packed, NUMBER)?;
            strings.iter().for_each(|text| found.push(text));
        }
        let all: Option<Strings> = numbers(&packed)
            .map(|number| found.get(number as usize))
            .collect::<Option<Vec<_>>>()
            .map(|texts| texts.into_iter().collect());
        all.ok_or_else(|| Error::invalid("read", "a chunk has fewer strings than elements"))
    }
}
