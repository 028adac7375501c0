//! Whether a file can be read, asked of a process of its own: a damaged one may end the process that opens it.

use anyhow::{Context, Result};
use hyperslab_core::{Array, Container, Error, ErrorKind, MemoryViewMut, OpenMode, Selection, Stack, TransferMode};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// Bytes that are read at a time.
const PIECE: u64 = 64 << 20;

/// Opens the file in another process, and looks at all its arrays; with `check`, reads all their elements. Says what was found,
/// or why it cannot be read.
pub fn ask(stack: &str, path: &Path, check: bool) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program);
    child.arg("recover").arg("--inspect").arg(stack).arg(path);
    if check {
        child.arg("--check");
    }
    let output = child.output().map_err(|error| format!("it cannot be looked at: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().trim_start_matches("hyperslab: ").to_owned();
    match (output.status.success(), output.status.signal()) {
        (true, _) => Ok(text(&output.stdout)),
        (false, Some(signal)) => Err(format!("the process that opened it was ended by signal {signal}")),
        (false, None) => Err(text(&output.stderr)),
    }
}

/// What the other process does.
pub fn inspect(stack: &str, path: &Path, check: bool) -> Result<()> {
    let stack: Stack = stack.parse()?;
    let format = hyperslab_run::plain_format(&stack)?;
    let container = format.open(path, OpenMode::Read, &hyperslab_run::single_rank())?;
    let names = container.arrays()?;
    let (mut bytes, mut unread) = (0, 0);
    for name in &names {
        match look_at(&*container, name, check) {
            Ok(read) => bytes += read,
            // The file may be as good as ever: its elements, or their filters, are of a kind that this program does not read.
            Err(error) if error.kind() == ErrorKind::Unsupported => unread += 1,
            Err(error) => return Err(error).with_context(|| format!("array {name:?}")),
        }
    }
    container.close()?;
    let arrays = if names.len() == 1 { "1 array".into() } else { format!("{} arrays", names.len()) };
    let arrays = if unread == 0 { arrays } else { format!("{arrays}, {unread} of kinds that are not read here") };
    match check {
        true if unread > 0 => println!("{} can be read of {arrays}", hyperslab_core::units::display_size(bytes)),
        true => println!("all {} of {arrays} can be read", hyperslab_core::units::display_size(bytes)),
        false => println!("it opens, with {arrays}"),
    }
    Ok(())
}

/// Opens an array and looks what it is; with `check`, reads all its elements and returns how many bytes these are.
fn look_at(container: &dyn Container, name: &str, check: bool) -> hyperslab_core::Result<u64> {
    let array = container.array(name)?;
    let looked = array.spec().and_then(|_| if check { read_all(&*array) } else { Ok(0) });
    looked.and_then(|bytes| array.close().map(|()| bytes))
}

/// Reads an array in blocks of whole rows, or of parts of rows that are too long.
fn read_all(array: &dyn Array) -> hyperslab_core::Result<u64> {
    let spec = array.spec()?;
    let element = spec.dtype.size().max(1);
    let total = spec.shape.iter().product::<u64>();
    if total == 0 {
        return Ok(0);
    }
    let mut buffer = Vec::new();
    let mut rest = vec![Selection::all(&spec.shape)?];
    let mut bytes = 0;
    while let Some(part) = rest.pop() {
        let len = part.len() * element;
        if len > PIECE && part.len() > 1 {
            let Some((low, high)) = part.bounds() else { continue };
            let extents: Vec<u64> = low.iter().zip(&high).map(|(low, high)| high - low).collect();
            let Some(dim) = extents.iter().position(|extent| *extent > 1) else {
                return Err(Error::unsupported("read", "an element is too large"));
            };
            // Along chunks where there are some, so that each is decoded once.
            let unit = spec.chunk.as_ref().and_then(|chunk| chunk.get(dim)).copied().unwrap_or(1).max(1);
            let half = (extents[dim] / 2 / unit * unit).max(1);
            let (mut first, mut second) = (extents.clone(), extents.clone());
            let mut middle = low.to_vec();
            (first[dim], second[dim], middle[dim]) = (half, extents[dim] - half, low[dim] + half);
            rest.push(Selection::dense(&middle, &second)?);
            rest.push(Selection::dense(&low, &first)?);
            continue;
        }
        buffer.resize(len as usize, 0);
        array.read(&part, MemoryViewMut::packed(&mut buffer), TransferMode::Independent)?;
        bytes += len;
    }
    Ok(bytes)
}
