//! Elements of an array, row by row.

use super::element;
use crate::terminal::plain;
use anyhow::{Result, bail};
use hyperslab_core::units::display_size;
use hyperslab_core::{Array, ArraySpec, Datatype, MemoryViewMut, Selection, Strings, TransferMode};
use std::io::Write;

/// Most bytes of elements that are shown at a time.
const MOST: u64 = 64 << 20;
/// Columns of a line.
const WIDTH: usize = 78;

/// Prints the selected elements.
pub fn print(
    out: &mut dyn Write,
    name: &str,
    array: &dyn Array,
    spec: &ArraySpec,
    selection: &Selection,
) -> Result<()> {
    let size = spec.dtype.size().max(1);
    let bytes = selection.len().saturating_mul(size);
    if bytes > MOST {
        bail!(
            "{name}: {} are too much to print\n  try: --select, for example --select '0:10', which takes some of the elements",
            display_size(bytes)
        );
    }
    let mut data = Vec::new();
    let mut strings = Strings::new();
    if spec.dtype == Datatype::VariableString {
        strings = array.read_strings(selection, TransferMode::Independent)?;
    } else {
        data.resize(bytes as usize, 0);
        array.read(selection, MemoryViewMut::packed(&mut data), TransferMode::Independent)?;
    }
    // A row ends where the last dimension does.
    let row = selection.as_slab().and_then(|slab| slab.counts().last().copied()).unwrap_or(selection.len()).max(1);
    writeln!(out, " {} =", plain(name))?;
    let elements: Vec<&[u8]> = data.chunks(size as usize).chain(strings.iter()).collect();
    let rows: Vec<&[&[u8]]> = elements.chunks(row as usize).collect();
    for (number, row) in rows.iter().enumerate() {
        let mut line = String::from(" ");
        for (at, bytes) in row.iter().enumerate() {
            let last = number + 1 == rows.len() && at + 1 == row.len();
            let word = format!(" {}{}", element::text(&spec.dtype, bytes), if last { " ;" } else { "," });
            if line.len() + word.len() > WIDTH && line.len() > 1 {
                writeln!(out, "{line}")?;
                line = String::from("   ");
            }
            line.push_str(&word);
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}
