//! `hyperslab convert`: a container copied to another, array by array, in its canonical layout or in other chunks.

mod atomic_output;
mod copy;
mod joined;
mod made_order;
mod progress;
mod rechunk;
mod scratch;
mod storage;

use crate::cli::{EXIT_FAILED, EXIT_INTERRUPTED};
use crate::show::with_plane;
use crate::terminal::plain;
use anyhow::{Result, bail};
use atomic_output::Place;
use clap::Args;
use copy::Conversion;
use hyperslab_core::units::{display_size, parse_size};
use hyperslab_core::{ErrorKind, Stack};
use hyperslab_run::Progress;
use joined::Joined;
use made_order::MadeOrder;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use storage::Storage;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab convert run.h5 canonical.h5
      what the layer loglayout wrote becomes an ordinary file
  hyperslab convert run.h5 run.h5 --overwrite    the same in its place
  hyperslab convert run.h5 run.zarr              into another format
  hyperslab convert run.h5 run.zarr --to 'zarr(codec=zstd)' --memory 1GiB
  hyperslab convert a.h5 b.h5 --chunk 2000x8x8 --filter shuffle,deflate=4
      other chunks, in place of h5repack and nccopy
  hyperslab convert a.h5 b.h5 --chunk fields/t=64x64 --chunk 1024 --align 1MiB
  hyperslab convert old.nc new.nc --to 'netcdf4(deflate=1,shuffle=yes)'

Without --from, what IN is is found out, the log layout included; without --to,
the name of OUT tells the format (.h5, .nc, .nc3, .zarr, .posix). Arrays,
groups, attributes and names of dimensions are copied; chunks, filters and names
of dimensions that the other format does not have are left out, and said so.
What else it cannot hold is an error, or with --lossy left out and listed.
Objects and attributes are made in the order in which they were made in IN,
where that tells it. HDF5 files in subfiles are joined first, beside OUT.
HDF5's links and named datatypes are not copied. OUT is written under another
name beside it and renamed when it is complete and on the device.

Chunks of IN are not decoded more than about twice, whatever the chunks of OUT:
where --memory is too short for that, elements go through a scratch file beside
OUT, without filters, which needs room for the largest array.

Exit codes: 0 done, 1 it failed and there is no new OUT, 2 bad input and nothing
started, 130 stopped.";

/// The least that a thread can work with.
const LEAST_MEMORY: u64 = 1 << 20;
const USUAL_MEMORY: u64 = 512 << 20;
const MOST_THREADS: usize = 16;

/// Options of `convert`.
#[derive(Debug, Args)]
pub struct ConvertOptions {
    /// What to read
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// What to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The stack to read IN with, such as loglayout/hdf5 [default: found out]
    #[arg(long, value_name = "STACK")]
    from: Option<Stack>,
    /// The stack to write OUT with, such as 'hdf5(chunk=64x64)' [default: the format of OUT's name]
    #[arg(long, value_name = "STACK")]
    to: Option<Stack>,
    /// Chunks of the arrays with so many dimensions, or of one array; may be given several times
    #[arg(long, value_name = "[ARRAY=]SHAPE")]
    chunk: Vec<String>,
    /// Filters of all arrays, such as shuffle,deflate=4, or none [default: as in IN]
    #[arg(long, value_name = "LIST")]
    filter: Option<String>,
    /// Chunks and arrays begin at multiples of this in OUT
    #[arg(long, value_name = "SIZE")]
    align: Option<String>,
    /// Threads that copy [default: one for each processor, at most 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Bytes of elements in memory at a time, of all threads together [default: 512MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// Replace OUT
    #[arg(long)]
    overwrite: bool,
    /// Leave out what OUT cannot hold, and list it
    #[arg(long)]
    lossy: bool,
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

/// Converts.
pub fn run(options: &ConvertOptions) -> Result<ExitCode> {
    let joined = Joined::of(&options.input, &options.output, options.from.as_ref())?;
    let input = joined.as_ref().map_or(options.input.as_path(), Joined::path);
    let from = match &options.from {
        Some(stack) => stack.clone(),
        None => hyperslab::detect_stack(input)?,
    };
    let to = match &options.to {
        Some(stack) => stack.clone(),
        None => hyperslab::stack_for_name(&options.output)?,
    };
    let storage = Storage::parse(&options.chunk, options.filter.as_deref())?;
    let to = match &options.align {
        Some(align) => storage::aligned(to, align)?,
        None => to,
    };
    // Filters run on all cores, outside libhdf5.
    let (from, to) = (with_plane(from), with_plane(to));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.map_or(processors.min(MOST_THREADS), usize::from);
    let memory = options.memory.unwrap_or(USUAL_MEMORY.max(threads as u64 * LEAST_MEMORY));
    if memory < threads as u64 * LEAST_MEMORY {
        bail!(
            "{} are too little for {threads} threads\n  try: --memory {threads}MiB or more, or fewer --threads",
            display_size(memory)
        );
    }
    let conversion = Conversion {
        from: hyperslab_run::open_stack(&from)?,
        input,
        to: hyperslab_run::open_stack(&to)?,
        storage: &storage,
        threads,
        memory,
        lossy: options.lossy,
        aligned: options.align.is_some(),
        order: MadeOrder::of(&from, input).unwrap_or_default(),
    };
    storage.check(&conversion.to.caps(), &to)?;
    let place = Place::find(&options.output, options.overwrite, conversion.to.clone())?;
    let progress = Arc::new(Progress::default());
    hyperslab_bench::stop_on_ctrl_c(&progress)?;

    let begun = Instant::now();
    eprintln!("{} ({from}) -> {} ({to}), {threads} threads", options.input.display(), options.output.display());
    let copied = conversion.run(place.unfinished(), &progress).and_then(|copied| place.finish().map(|()| copied));
    match copied {
        Ok(copied) => {
            if joined.is_some() {
                println!("note: the data was spread over subfiles, which were joined first");
            }
            copied.notes.iter().for_each(|note| println!("note: {note}"));
            copied.left_out.iter().for_each(|what| println!("left out: {}", plain(what)));
            let seconds = begun.elapsed().as_secs_f64();
            println!(
                "{}: {} arrays, {} groups, {} attributes, {} in {seconds:.2} s",
                options.output.display(),
                copied.arrays,
                copied.groups,
                copied.attributes,
                display_size(copied.bytes)
            );
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            place.give_up();
            if error.kind() == ErrorKind::Interrupted {
                eprintln!("hyperslab: stopped; nothing is left of {}", options.output.display());
                return Ok(ExitCode::from(EXIT_INTERRUPTED));
            }
            eprintln!("hyperslab: {error}");
            if error.kind() == ErrorKind::Unsupported && !options.lossy {
                eprintln!("  or: --lossy leaves out what cannot be held, and lists it");
            }
            Ok(ExitCode::from(EXIT_FAILED))
        }
    }
}
