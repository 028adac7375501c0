//! `hyperslab show`: what a file holds, and what moving some of it would do.

use crate::terminal::plain;
use anyhow::{Result, bail};
use clap::Args;
use hyperslab_comm::Solo;
use hyperslab_core::units::display_size;
use hyperslab_core::{Array, ArraySpec, Container, MemoryLayout, OpenMode, Selection, Stack, dims};
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab show run.h5                                      its arrays
  hyperslab show run.h5 fields/density
      one of them, with its attributes
  hyperslab show run.h5 fields/density --select '0:100,::4' --explain
      what reading that would do, and why
  hyperslab show run.h5 fields/density --select 7 --explain --write

Selections are as in numpy: an index or start:stop:step for each dimension,
those left out being whole. --explain tells what the HDF5 data plane
(hdf5(plane=on)) would do; nothing is read or written.

Exit codes: 0 done, 2 bad input.";

/// Options of `show`.
#[derive(Debug, Args)]
pub struct ShowOptions {
    /// The file, store or directory
    path: PathBuf,
    /// An array in it
    array: Option<String>,
    /// Some of its elements, as in numpy [default: all]
    #[arg(long, value_name = "SELECTION", requires = "array", requires = "explain")]
    select: Option<String>,
    /// Say what moving the elements would do, and why
    #[arg(long, requires = "array")]
    explain: bool,
    /// With --explain: writing instead of reading
    #[arg(long, requires = "explain")]
    write: bool,
    /// How to open it [default: found out; with --explain HDF5 files by hdf5(plane=on)]
    #[arg(long, value_name = "STACK")]
    stack: Option<Stack>,
}

/// Shows.
pub fn run(options: &ShowOptions) -> Result<ExitCode> {
    let stack = match &options.stack {
        Some(stack) => stack.clone(),
        None => {
            let found = hyperslab::detect_stack(&options.path)?;
            if options.explain { explainable(found) } else { found }
        }
    };
    let file = hyperslab_run::open_stack(&stack)?.open(&options.path, OpenMode::Read, &Solo::shared())?;
    match &options.array {
        None => list(&*file, &stack)?,
        Some(name) => {
            let array = file.array(name)?;
            let spec = array.spec()?;
            println!("{}", plain(&format!("{name}: {}", words(&spec))));
            match options.explain {
                true => explain(options, &*array, &spec)?,
                false => attributes(&*file, name)?,
            }
        }
    }
    file.close()?;
    Ok(ExitCode::SUCCESS)
}

/// The same with the data plane, which explains itself, where the format has it.
fn explainable(mut stack: Stack) -> Stack {
    let has_plane = hyperslab_formats::format(&stack.format.name).is_ok_and(|entry| entry.has_option("plane"));
    if has_plane && stack.layers.is_empty() && stack.format.get("plane").is_none() {
        stack.format.options.push(("plane".into(), "on".into()));
    }
    stack
}

fn list(file: &dyn Container, stack: &Stack) -> Result<()> {
    let arrays = file.arrays()?;
    println!("opened as {stack}: {} arrays, {} groups", arrays.len(), file.groups()?.len());
    for name in arrays {
        match file.array(&name).and_then(|array| array.spec()) {
            Ok(spec) => println!("  {}", plain(&format!("{name}: {}", words(&spec)))),
            Err(error) => println!("  {}", plain(&format!("{name}: {error}"))),
        }
    }
    attributes(file, "")
}

fn attributes(file: &dyn Container, object: &str) -> Result<()> {
    for name in file.attributes(object)? {
        let line = match file.attribute(object, &name) {
            Ok(value) => match value.as_text() {
                Some(text) => format!("@{name} = {text:?}"),
                None => format!("@{name}: {} {}", value.dtype, dims::display(&value.shape)),
            },
            Err(error) => format!("@{name}: {error}"),
        };
        println!("  {}", plain(&line));
    }
    Ok(())
}

/// An array in one line.
fn words(spec: &ArraySpec) -> String {
    let bytes = dims::byte_count(&spec.shape, spec.dtype.size()).map_or_else(|e| e.to_string(), display_size);
    let shape = if spec.shape.is_empty() { "scalar".into() } else { dims::display(&spec.shape) };
    let mut out = format!("{} of {}, {bytes}", shape, spec.dtype);
    if let Some(max) = &spec.max_shape {
        let limit = |extent: &Option<u64>| extent.map_or_else(|| "any".to_owned(), |extent| extent.to_string());
        out += &format!(", may grow to {}", max.iter().map(limit).collect::<Vec<_>>().join("x"));
    }
    if let Some(chunk) = &spec.chunk {
        let size = dims::byte_count(chunk, spec.dtype.size()).map_or_else(|e| e.to_string(), display_size);
        out += &format!(", chunks of {} ({size})", dims::display(chunk));
    }
    if !spec.filters.is_empty() {
        let filters: Vec<_> = spec.filters.iter().map(|filter| format!("{filter:?}")).collect();
        out += &format!(", filters {}", filters.join(" then "));
    }
    out
}

fn explain(options: &ShowOptions, array: &dyn Array, spec: &ArraySpec) -> Result<()> {
    let selection = match &options.select {
        Some(text) => Selection::parse(text, &spec.shape)?,
        None => Selection::all(&spec.shape)?,
    };
    println!("{} {} elements:", if options.write { "writing" } else { "reading" }, selection.len());
    match array.explain(&selection, &MemoryLayout::packed(), options.write)? {
        Some(text) => println!("{text}"),
        None => bail!("this stack has nothing to explain\n  try: --stack 'hdf5(plane=on)' on an HDF5 file"),
    }
    Ok(())
}
