//! `hyperslab layout`: where the bytes of a container lie, and which storage targets they and a workload's calls touch.

mod drawing;
mod picture;
mod stripes;
mod touched;

use crate::terminal::plain;
use anyhow::{Context, Result, bail};
use clap::Args;
use hyperslab_core::Stack;
use hyperslab_core::units::{display_size, parse_size};
use hyperslab_core::workload::JsonLines;
use hyperslab_formats::file_map::FileMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use stripes::Stripes;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab layout run.h5
      where arrays, chunks and metadata lie, and what is not aligned
  hyperslab layout run.h5 --stripe-size 4MiB --stripe-count 16
      on which of 16 storage targets
  hyperslab layout run.h5 --stripe-count 16 --workload trace.jsonl
      and how many of them each call of a recorded program touches
  hyperslab layout ocean.nc -o ocean.svg     as a picture

HDF5, NetCDF-4 and classic NetCDF files are mapped; of other formats, whose
arrays or chunks have files of their own, the files are counted. A workload's
arrays are found by their names. Chunks with filters are moved whole; of others
the bytes that a call selects count.

Exit codes: 0 done, 2 bad input.";

/// Options of `layout`.
#[derive(Debug, Args)]
pub struct LayoutOptions {
    /// The file, store or directory
    path: PathBuf,
    /// Bytes of a stripe, which are also what pieces should begin at multiples of
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    stripe_size: u64,
    /// Storage targets that the stripes are dealt to, one after another
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=65536))]
    stripe_count: u64,
    /// Count the targets that each read and write of a workload touches
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Draw the map into an SVG file
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,
    /// How to open it [default: found out]
    #[arg(long, value_name = "STACK")]
    stack: Option<Stack>,
}

fn size(text: &str) -> Result<u64, String> {
    let size = parse_size(text).map_err(|error| error.to_string())?;
    if size == 0 { Err("a stripe has at least one byte".into()) } else { Ok(size) }
}

/// Maps.
pub fn run(options: &LayoutOptions) -> Result<ExitCode> {
    let stack = match &options.stack {
        Some(stack) => stack.clone(),
        None => hyperslab::detect_stack(&options.path)?,
    };
    if let Some(output) = &options.output
        && output.extension().is_none_or(|extension| extension != "svg")
    {
        bail!("{}: pictures are SVG files\n  try: -o layout.svg", output.display());
    }
    let stripes = Stripes { size: options.stripe_size, count: options.stripe_count };
    let out = &mut std::io::stdout().lock();
    let Some(map_file) = hyperslab_formats::format(&stack.format.name)?.file_map else {
        if options.workload.is_some() || options.output.is_some() {
            bail!("arrays of {} have files of their own: there is no map to draw or to follow", stack.format.name);
        }
        return count_files(options, &stack, out);
    };
    let map = map_file(&options.path)?;
    let name = options.path.file_name().unwrap_or_default().to_string_lossy();
    writeln!(out, "{}: {}, {}", plain(&name), stack.format.name, display_size(map.size))?;
    shares(&map, out)?;
    drawing::print(out, &map)?;
    stripes::print(out, &map, stripes)?;
    if let Some(path) = &options.workload {
        let name = path.clone();
        let open = move || -> std::io::Result<Box<dyn BufRead + Send>> {
            Ok(Box::new(BufReader::new(std::fs::File::open(&name)?)))
        };
        let workload = JsonLines::workload(Box::new(open)).with_context(|| path.display().to_string())?;
        touched::print(out, &map, stripes, &workload)?;
    }
    if let Some(output) = &options.output {
        std::fs::write(output, picture::svg(&map, stripes, &name)).with_context(|| output.display().to_string())?;
        writeln!(out, "drawn in {}", plain(&output.display().to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How much of the file is what.
fn shares(map: &FileMap, out: &mut dyn Write) -> Result<()> {
    let elements = map.elements();
    let other = map.size.saturating_sub(elements);
    let metadata = map.metadata.unwrap_or(0).min(other);
    for (what, bytes) in
        [("elements", elements), ("metadata", metadata), ("free, padding, heaps", other.saturating_sub(metadata))]
    {
        let share = 100.0 * bytes as f64 / (map.size as f64).max(1.0);
        writeln!(out, "  {what:<22}{:>12}  {share:5.1} %", display_size(bytes))?;
    }
    if elements > map.size {
        writeln!(out, "  the file is shorter than its elements: the rest was never written, or is lost")?;
    }
    Ok(())
}

/// The files of a container whose arrays or chunks have each their own.
fn count_files(options: &LayoutOptions, stack: &Stack, out: &mut dyn Write) -> Result<ExitCode> {
    let format = hyperslab_run::open_stack(stack)?;
    let mut sizes = Vec::new();
    for file in format.files(&options.path)? {
        sizes.push(std::fs::metadata(file)?.len());
    }
    sizes.sort_unstable();
    let total: u64 = sizes.iter().sum();
    writeln!(
        out,
        "{}: {}, {} in {} files",
        plain(&options.path.display().to_string()),
        stack.format.name,
        display_size(total),
        sizes.len()
    )?;
    if let (Some(least), Some(most)) = (sizes.first(), sizes.last()) {
        let median = sizes[sizes.len() / 2];
        writeln!(
            out,
            "  each has {} to {}, half of them at least {}",
            display_size(*least),
            display_size(*most),
            display_size(median)
        )?;
        let small = sizes.iter().filter(|size| **size < options.stripe_size).count();
        writeln!(out, "  {small} are smaller than a stripe of {}", display_size(options.stripe_size))?;
    }
    writeln!(out, "  every file begins on a target of its own: nothing in it is unaligned")?;
    Ok(ExitCode::SUCCESS)
}
