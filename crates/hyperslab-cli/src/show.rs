//! `hyperslab show`: what a file holds, and what moving some of it would do.

mod element;
mod header;
mod values;

use crate::terminal::plain;
use anyhow::{Result, bail};
use clap::Args;
use hyperslab_comm::Solo;
use hyperslab_core::units::display_size;
use hyperslab_core::{Array, ArraySpec, Container, Datatype, Format, MemoryLayout, OpenMode, Selection, Stack, dims};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab show run.h5                                      its arrays
  hyperslab show run.h5 fields/density
      one of them, with its attributes
  hyperslab show run.h5 fields/density --select '0:100,::4' --explain
      what reading that would do, and why
  hyperslab show run.h5 fields/density --select 7 --explain --write
  hyperslab show run.h5 fields/density --select '0:2,::4' --values
      some of its elements
  hyperslab show ocean.nc                  as ncdump -h prints it, with storage

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
    #[arg(long, value_name = "SELECTION", requires = "array")]
    select: Option<String>,
    /// Print the elements
    #[arg(long, conflicts_with = "explain")]
    values: bool,
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
            if options.explain { with_plane(found) } else { found }
        }
    };
    if options.select.is_some() && !options.explain && !options.values {
        bail!("--select says of which elements: add --values to print them, or --explain");
    }
    let format = hyperslab_run::open_stack(&stack)?;
    let file = format.open(&options.path, OpenMode::Read, &Solo::shared())?;
    let out = &mut std::io::BufWriter::new(std::io::stdout().lock());
    match &options.array {
        None if format.caps().data.dimension_names && names_dimensions(&*file)? => {
            let stored = sizes(&stack, &options.path)?;
            let name = options.path.file_stem().unwrap_or_default().to_string_lossy();
            let header = header::CdlHeader::read(&*file, stored)?;
            header.print(out, &name)?;
            if options.values {
                writeln!(out, "data:")?;
            }
            for (name, spec) in header.arrays().iter().filter(|_| options.values) {
                writeln!(out)?;
                values::print(out, name, &*file.array(name)?, spec, &Selection::all(&spec.shape)?)?;
            }
            writeln!(out, "}}")?;
            writeln!(out, "// opened as {stack}, {} on disk", display_size(size_on_disk(&*format, &options.path)?))?;
        }
        None => {
            list(&*file, &stack)?;
            if options.values {
                for name in file.arrays()? {
                    let array = file.array(&name)?;
                    let spec = array.spec()?;
                    values::print(out, &name, &*array, &spec, &Selection::all(&spec.shape)?)?;
                }
            }
        }
        Some(name) => {
            let array = file.array(name)?;
            let spec = array.spec()?;
            println!("{}", plain(&format!("{name}: {}", words(&spec))));
            match options.explain {
                true => explain(options, &*array, &spec)?,
                false => attributes(&*file, name)?,
            }
            if options.values {
                values::print(out, name, &*array, &spec, &selected(options, &spec)?)?;
            }
        }
    }
    out.flush()?;
    file.close()?;
    Ok(ExitCode::SUCCESS)
}

/// Whether all dimensions have names, as in NetCDF and in what xarray writes.
fn names_dimensions(file: &dyn Container) -> Result<bool> {
    for name in file.arrays()? {
        let spec = file.array(&name)?.spec()?;
        if spec.dims.is_none() && !spec.shape.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The same with the data plane, where the format has it and nothing that is said of libhdf5 speaks against it.
pub fn with_plane(mut stack: Stack) -> Stack {
    let has_plane = hyperslab_formats::format(&stack.format.name).is_ok_and(|entry| entry.has_option("plane"));
    let without = ["plane", "cache_slots", "cache_w0", "sieve", "driver"];
    if has_plane && stack.layers.is_empty() && without.iter().all(|option| stack.format.get(option).is_none()) {
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
                None if value.data.len() <= 64 => format!("@{name} = {}", header::value_text(&value)),
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
    let mut out = match spec.dtype {
        Datatype::VariableString => format!("{shape} of strings of variable length"),
        _ => format!("{shape} of {}, {bytes}", spec.dtype),
    };
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

/// The elements that the user means.
fn selected(options: &ShowOptions, spec: &ArraySpec) -> Result<Selection> {
    Ok(match &options.select {
        Some(text) => Selection::parse(text, &spec.shape)?,
        None => Selection::all(&spec.shape)?,
    })
}

/// Bytes in the file of each array, where the format tells.
fn sizes(stack: &Stack, path: &Path) -> Result<BTreeMap<String, u64>> {
    match hyperslab_formats::format(&stack.format.name)?.stored_sizes {
        Some(stored_sizes) => Ok(stored_sizes(path)?.into_iter().collect()),
        None => Ok(BTreeMap::new()),
    }
}

fn size_on_disk(format: &dyn Format, path: &Path) -> Result<u64> {
    let mut bytes = 0;
    for file in format.files(path)? {
        bytes += std::fs::metadata(file)?.blocks() * 512;
    }
    Ok(bytes)
}

fn explain(options: &ShowOptions, array: &dyn Array, spec: &ArraySpec) -> Result<()> {
    let selection = selected(options, spec)?;
    println!("{} {} elements:", if options.write { "writing" } else { "reading" }, selection.len());
    match array.explain(&selection, &MemoryLayout::packed(), options.write)? {
        Some(text) => println!("{text}"),
        None => bail!("this stack has nothing to explain\n  try: --stack 'hdf5(plane=on)' on an HDF5 file"),
    }
    Ok(())
}
