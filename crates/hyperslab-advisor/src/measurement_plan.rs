//! Which arrays on which stacks are measured.

use super::measurement::{MeasuredArray, Measurement};
use anyhow::Result;
use hyperslab_bench::mpi_job;
use hyperslab_core::{Datatype, Dims, Fill, Stack, dims};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Under two minutes.
    Quick,
    /// Under half an hour.
    Full,
}

impl Extent {
    /// Seconds after which nothing new is begun.
    pub fn seconds(self) -> u64 {
        match self {
            // Ranks that are processes take long to start.
            Self::Quick if mpi_job::COMPILED_IN => 40,
            Self::Quick => 85,
            Self::Full => 1500,
        }
    }

    /// How often everything is measured, from the first to the last.
    pub fn rounds(self) -> usize {
        match self {
            Self::Quick => 3,
            Self::Full => 8,
        }
    }
}

/// An array and the chunk shapes that it is tried with.
type Plan = (Datatype, &'static [u64], &'static [&'static [u64]]);

/// Of sizes from a few kilobytes to many megabytes, so that what each byte costs can be told from what each call does.
const QUICK: [Plan; 5] = [
    (Datatype::F32, &[1024, 1024], &[&[64, 64], &[128, 1024], &[1024, 16]]),
    (Datatype::F64, &[65_536, 8], &[&[1024, 8], &[32_768, 2]]),
    (Datatype::F32, &[96, 96, 128], &[&[32, 32, 32], &[4, 96, 128]]),
    (Datatype::F64, &[4_194_304], &[&[262_144]]),
    (Datatype::I32, &[64, 64], &[&[16, 64]]),
];

/// Codecs are tried on arrays of more than one dimension, of no more than this many elements.
const CODED: u64 = 1 << 21;

const MORE: [Plan; 13] = [
    (Datatype::F32, &[1024, 1024], &[&[256, 256]]),
    (Datatype::F64, &[65_536, 8], &[&[4096, 4]]),
    (Datatype::F32, &[96, 96, 128], &[&[96, 12, 16]]),
    (Datatype::F64, &[4_194_304], &[&[65_536], &[16_384]]),
    (Datatype::I32, &[8192, 2048], &[&[512, 512], &[2048, 2048], &[8192, 64], &[64, 2048]]),
    (Datatype::F32, &[64, 512, 512], &[&[16, 64, 64], &[1, 512, 512], &[64, 32, 128]]),
    (Datatype::F64, &[200, 200], &[&[50, 50], &[200, 10]]),
    (Datatype::F32, &[2048, 512], &[&[128, 128], &[2048, 8], &[16, 512]]),
    (Datatype::F64, &[512, 512], &[&[64, 64], &[512, 32], &[32, 512]]),
    (Datatype::F32, &[32, 64, 64, 16], &[&[8, 16, 16, 16], &[1, 64, 64, 16]]),
    (Datatype::F64, &[1_048_576], &[&[4096], &[131_072]]),
    (Datatype::F32, &[16_384, 256], &[&[256, 256], &[16_384, 8], &[2048, 64]]),
    (Datatype::I32, &[128, 128, 128], &[&[64, 64, 64], &[16, 16, 128]]),
];

/// The stacks that store chunks of these extents, and what they are tried with besides.
fn stacks(chunk: &[u64], shape: &[u64], codecs: bool) -> Vec<String> {
    let text = dims::display(chunk);
    let shard: Dims = chunk.iter().zip(shape).map(|(c, s)| if c * 4 <= *s { c * 4 } else { *c }).collect();
    let shard = dims::display(&shard);
    let mut stacks = vec![
        format!("hdf5(chunk={text})"),
        format!("hdf5(chunk={text},plane=on)"),
        format!("zarr(chunk={text})"),
        format!("zarr(chunk={text},shard={shard})"),
    ];
    if codecs {
        stacks.extend([
            format!("hdf5(chunk={text},deflate=1)"),
            format!("hdf5(chunk={text},deflate=1,plane=on)"),
            format!("zarr(chunk={text},codec=gzip,level=1)"),
            format!("zarr(chunk={text},codec=zstd)"),
            format!("zarr(chunk={text},codec=blosc)"),
            format!("zarr(chunk={text},shard={shard},codec=zstd)"),
            format!("hdf5(chunk={text},shuffle,fletcher32)"),
        ]);
    }
    stacks
}

/// Values for codecs: some that they make much smaller, and floats of which they save little. Integers of any bits are
/// stored as they are.
fn coded_fills(dtype: &Datatype) -> Vec<Fill> {
    let is_float = [Datatype::F32, Datatype::F64].contains(dtype);
    if is_float { vec![Fill::Random, Fill::Ramp] } else { vec![Fill::Index] }
}

/// Everything that is measured. Ways of storing that are chosen among follow each other: a machine that is slower for a
/// while is so for all of them.
pub fn trials(extent: Extent) -> Result<Vec<Measurement>> {
    let more: &[Plan] = if extent == Extent::Full { &MORE } else { &[] };
    let mut trials = Vec::new();
    for (dtype, shape, chunks) in QUICK.iter().chain(more) {
        let (mut coded_fill, shape_dims) = (coded_fills(dtype).into_iter().cycle(), Dims::from_slice(shape));
        let mut add = |layout: &str, text: String, fill: Fill| -> Result<()> {
            let subject = MeasuredArray { dtype: dtype.clone(), shape: shape_dims.clone(), fill };
            let stack: Stack = text.parse()?;
            let class = hyperslab::configuration(&stack)?.class();
            let trial = Measurement { subject, layout: layout.into(), stack, class };
            // Both plans may name an array.
            if !trials.iter().any(|known: &Measurement| known.name() == trial.name()) {
                trials.push(trial);
            }
            Ok(())
        };
        for text in ["posix", "hdf5", "hdf5(plane=on)"] {
            add("in one piece", text.into(), Fill::Random)?;
        }
        for (number, chunk) in chunks.iter().enumerate() {
            let coded = number == 0 && shape.len() > 1 && dims::element_count(shape)? <= CODED;
            for text in stacks(chunk, shape, coded) {
                // Codecs are not chosen among: they change what is stored.
                let plain = !["deflate", "codec", "fletcher32"].iter().any(|word| text.contains(word));
                match plain {
                    true => add(&dims::display(chunk), text, Fill::Random)?,
                    false => {
                        let fill = coded_fill.next().unwrap_or_default();
                        add(&text.clone(), text, fill)?;
                    }
                }
            }
        }
    }
    Ok(trials)
}
