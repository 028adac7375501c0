//! The caller's side of a transfer: buffers made and checked in bounded pieces.

use crate::expected_data::ExpectedData;
use hyperslab_core::{
    Error, ErrorKind, Gather, MemoryLayout, MemoryView, MemoryViewMut, PageBuffer, Result, Scatter, Selection, Strings,
};

/// Bytes filled or compared at a time.
const PIECE: usize = 256 << 10;
/// What a buffer holds before a read that will be checked; unlikely to be right by chance.
const STALE: u8 = 0xA5;

/// The buffers of one rank. They grow to the largest step and stay.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    buffer: PageBuffer,
    expected: Vec<u8>,
    found: Vec<u8>,
}

impl Buffers {
    /// Compares strings that were read with what the workload says must be there.
    pub fn check_strings(content: &ExpectedData, selection: &Selection, found: &Strings) -> Result<()> {
        let expected = content.rules.strings(&content.shape, selection)?;
        if *found == expected {
            return Ok(());
        }
        let wrong = expected.iter().zip(found.iter()).position(|(expected, found)| expected != found);
        let nth = wrong.unwrap_or(expected.len().min(found.len()));
        let at = coordinates(selection, &content.shape, nth as u64);
        let shown = |strings: &Strings| match strings.get(nth) {
            Some(text) => format!("{:?}", String::from_utf8_lossy(&text[..text.len().min(32)])),
            None => "nothing".into(),
        };
        let message = format!("element {at:?} holds {} instead of {}", shown(found), shown(&expected));
        Err(Error::new(ErrorKind::Mismatch, "verify", message).target(&content.name))
    }

    /// Bytes transferred, as opposed to bytes of the buffer.
    pub fn payload(content: &ExpectedData, selection: &Selection, memory: &MemoryLayout) -> Result<u64> {
        let per_element: u64 = memory.plan(&content.dtype)?.pieces.iter().map(|p| p.len).sum();
        Ok(selection.len() * per_element)
    }

    /// Fills the buffer with what the workload says is to be written.
    pub fn prepare(&mut self, content: &ExpectedData, selection: &Selection, memory: &MemoryLayout) -> Result<()> {
        self.size(content, selection, memory)?;
        if memory.is_packed() {
            content.rules.stream(&content.shape, selection)?.next_into(&mut self.buffer);
            return Ok(());
        }
        let rules = content.rules.only(&memory.plan(&content.dtype)?);
        let mut stream = rules.stream(&content.shape, selection)?;
        let view = MemoryViewMut { data: &mut self.buffer, layout: memory };
        let mut scatter = Scatter::new(view, &content.dtype, selection.len())?;
        let element = content.dtype.size() as usize;
        self.expected.resize(piece_len(element), 0);
        loop {
            let n = stream.next_into(&mut self.expected);
            if n == 0 {
                return Ok(());
            }
            scatter.next_from(&self.expected[..n * element]);
        }
    }

    /// Makes room to read into; with `stale`, makes sure that nothing right is left from before.
    pub fn clear(
        &mut self,
        content: &ExpectedData,
        selection: &Selection,
        memory: &MemoryLayout,
        stale: bool,
    ) -> Result<()> {
        self.size(content, selection, memory)?;
        if stale {
            self.buffer.fill(STALE);
        }
        Ok(())
    }

    /// The buffer to write from.
    pub fn view<'a>(&'a self, memory: &'a MemoryLayout) -> MemoryView<'a> {
        MemoryView { data: &self.buffer, layout: memory }
    }

    /// The buffer to read into.
    pub fn view_mut<'a>(&'a mut self, memory: &'a MemoryLayout) -> MemoryViewMut<'a> {
        MemoryViewMut { data: &mut self.buffer, layout: memory }
    }

    /// Compares what was read with what the workload says must be there.
    pub fn check(&mut self, content: &ExpectedData, selection: &Selection, memory: &MemoryLayout) -> Result<()> {
        let rules = content.rules.only(&memory.plan(&content.dtype)?);
        let mut stream = rules.stream(&content.shape, selection)?;
        let view = MemoryView { data: &self.buffer, layout: memory };
        let mut gather = Gather::new(view, &content.dtype, selection.len())?;
        let element = content.dtype.size() as usize;
        self.expected.resize(piece_len(element), 0);
        self.found.resize(piece_len(element), 0);
        let mut done = 0;
        loop {
            let n = stream.next_into(&mut self.expected);
            if n == 0 {
                return Ok(());
            }
            let expected = &self.expected[..n * element];
            let found = &mut self.found[..n * element];
            // Bytes that are not transferred keep the expected value and so compare equal.
            found.copy_from_slice(expected);
            gather.next_into(found);
            if found != expected {
                return Err(mismatch(content, selection, done, expected, found));
            }
            done += n as u64;
        }
    }

    fn size(&mut self, content: &ExpectedData, selection: &Selection, memory: &MemoryLayout) -> Result<()> {
        let len = memory.buffer_len(&content.dtype, selection.len())? as usize;
        self.buffer.set_len(len).map_err(|error| error.target(&content.name))
    }
}

/// A multiple of the element size near [`PIECE`], at least one element.
fn piece_len(element: usize) -> usize {
    (PIECE / element).max(1) * element
}

fn mismatch(content: &ExpectedData, selection: &Selection, done: u64, expected: &[u8], found: &[u8]) -> Error {
    let element = content.dtype.size() as usize;
    let pairs = || expected.chunks_exact(element).zip(found.chunks_exact(element));
    let first = pairs().position(|(e, f)| e != f).unwrap_or(0);
    let wrong = pairs().filter(|(e, f)| e != f).count();
    let at = coordinates(selection, &content.shape, done + first as u64);
    let hex = |bytes: &[u8]| bytes.iter().take(32).map(|b| format!("{b:02x}")).collect::<String>();
    let range = first * element..(first + 1) * element;
    Error::new(
        ErrorKind::Mismatch,
        "verify",
        format!(
            "element {at:?} holds {} instead of {}; {wrong} of {} elements compared here are wrong",
            hex(&found[range.clone()]),
            hex(&expected[range]),
            expected.len() / element,
        ),
    )
    .target(&content.name)
}

/// Coordinates of the `nth` element of a selection.
fn coordinates(selection: &Selection, shape: &[u64], nth: u64) -> Vec<u64> {
    let mut left = nth;
    let Ok(runs) = selection.runs(shape, 1) else { return Vec::new() };
    for run in runs {
        if left < run.len {
            let mut linear = run.offset + left;
            let mut at: Vec<u64> = shape
                .iter()
                .rev()
                .map(|&extent| {
                    let index = linear % extent.max(1);
                    linear /= extent.max(1);
                    index
                })
                .collect();
            at.reverse();
            return at;
        }
        left -= run.len;
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use hyperslab_core::{DataRules, Datatype, Fill};

    fn content() -> ExpectedData {
        let dtype = Datatype::packed_compound([("a", Datatype::F32), ("b", Datatype::F64)]).unwrap();
        let fill = Fill::Fields(vec![Fill::Random, Fill::Index]);
        let rules = DataRules::new(&dtype, &fill, "n", 3).unwrap();
        ExpectedData { name: "n".into(), dtype, shape: [7, 9].as_slice().into(), rules }
    }

    #[test]
    fn what_is_prepared_checks_and_one_wrong_byte_does_not() {
        let content = content();
        let selection = Selection::strided(&[1, 2], &[3, 2], &[2, 3], &[2, 1]).unwrap();
        let layouts = [
            MemoryLayout::packed(),
            MemoryLayout::fields(8, [("b", 0)]),
            MemoryLayout::fields(20, [("b", 0), ("a", 12)]),
            MemoryLayout::strided(&[5, 6], Selection::dense(&[1, 1], &[4, 3]).unwrap()),
        ];
        for layout in &layouts {
            let mut buffers = Buffers::default();
            buffers.prepare(&content, &selection, layout).unwrap();
            buffers.check(&content, &selection, layout).unwrap();
            let last = buffers.buffer.len() - 1 - if layout.within.is_some() { 2 * 12 } else { 4 };
            buffers.buffer[last] ^= 1;
            let error = buffers.check(&content, &selection, layout).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch);
            assert!(error.to_string().contains("[5, 6]"), "{layout:?} {error}");
            buffers.clear(&content, &selection, layout, true).unwrap();
            assert!(buffers.check(&content, &selection, layout).is_err(), "nothing was read");
        }
    }
}
