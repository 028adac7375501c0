//! Everything that a container holds, as far as it is small.

use hyperslab_comm::Solo;
use hyperslab_core::{Array, MemoryLayout, MemoryViewMut, OpenMode, Selection, Stack, TransferMode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Arrays, and attributes of an object, that are looked at.
const MOST_OBJECTS: usize = 16;
/// Bytes of an array that is read.
const MOST_BYTES: u64 = 4 << 20;

/// The checksum of each array that could be read, by its name; `None` of others.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Contents(BTreeMap<String, Option<u32>>);

impl Contents {
    /// For another process.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data")
    }

    /// From another process.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Asserts that every array that was read here was read the same way there. What was refused is fine.
    pub fn assert_agrees_with(&self, other: &Self) {
        for (name, read) in self.0.iter().filter_map(|(name, read)| Some((name, read.as_ref()?))) {
            let there = other.0.get(name).copied().flatten();
            assert_eq!(Some(*read), there, "{name:?}: not what the library reads");
        }
    }
}

/// Opens the container at `path` and reads all of it. What cannot be opened has no contents.
pub fn contents(stack: &str, path: &Path) -> Contents {
    let format = hyperslab_formats::build(&stack.parse::<Stack>().expect("a stack").format).expect("a format");
    let Ok(container) = format.open(path, OpenMode::Read, &Solo::shared()) else { return Contents::default() };
    let mut found = Contents::default();
    let (arrays, groups) = (container.arrays().unwrap_or_default(), container.groups().unwrap_or_default());
    for object in arrays.iter().chain(&groups).map(String::as_str).chain(["/"]).take(2 * MOST_OBJECTS) {
        for name in container.attributes(object).unwrap_or_default().iter().take(MOST_OBJECTS) {
            let _ = container.attribute(object, name);
        }
    }
    for name in arrays.into_iter().take(MOST_OBJECTS) {
        let read = container.array(&name).ok().and_then(|array| {
            let read = read(&*array);
            let _ = array.close();
            read
        });
        found.0.insert(name, read.map(|bytes| crc32c::crc32c(&bytes)));
    }
    let _ = container.close();
    found
}

/// The whole array, and after it a part; `None` if it cannot be read or is large.
fn read(array: &dyn Array) -> Option<Vec<u8>> {
    let spec = array.spec().ok()?;
    let size = spec.dtype.size();
    let bytes = spec.shape.iter().try_fold(size, |bytes, extent| bytes.checked_mul(*extent))?;
    let chunk = spec.chunk.iter().flatten().try_fold(size, |bytes, extent| bytes.checked_mul(*extent))?;
    if bytes > MOST_BYTES || chunk > MOST_BYTES {
        return None;
    }
    let all = Selection::all(&spec.shape).ok()?;
    let _ = array.explain(&all, &MemoryLayout::default(), false);
    let mut whole = transfer(array, &all, size)?;
    let half: Vec<u64> = spec.shape.iter().map(|extent| extent.div_ceil(2)).collect();
    let first: Vec<u64> = spec.shape.iter().zip(&half).map(|(extent, half)| extent - half).collect();
    let part = Selection::dense(&first, &half).ok()?;
    whole.extend(transfer(array, &part, size)?);
    Some(whole)
}

fn transfer(array: &dyn Array, selection: &Selection, size: u64) -> Option<Vec<u8>> {
    let mut data = vec![0xA5; usize::try_from(selection.len() * size).ok()?];
    array.read(selection, MemoryViewMut::packed(&mut data), TransferMode::Independent).ok()?;
    Some(data)
}
