//! What of a stack decides how an array is stored and moved.

mod codec;
mod hdf5;
mod layer;
mod posix;
mod zarr;

pub(crate) use codec::Codec;
pub(crate) use hdf5::{Hdf5, Library};
pub(crate) use layer::{Layer, LayerEffect};
pub(crate) use posix::Posix;
pub(crate) use zarr::Zarr;

use hyperslab_core::{ArraySpec, Dims, Error, Result, Stack};
use serde::{Deserialize, Serialize};

/// Ways of storing that a model knows, each with coefficients of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Raw files.
    Posix,
    /// libhdf5.
    Hdf5,
    /// HDF5 files, elements around libhdf5.
    Hdf5Plane,
    /// Zarr, a file for each chunk.
    Zarr,
    /// Zarr, several chunks in a file.
    ZarrSharded,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Posix, Self::Hdf5, Self::Hdf5Plane, Self::Zarr, Self::ZarrSharded];

    /// The words for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Posix => "posix",
            Self::Hdf5 => "hdf5",
            Self::Hdf5Plane => "hdf5 with the data plane",
            Self::Zarr => "zarr",
            Self::ZarrSharded => "zarr with shards",
        }
    }

    /// Whether ranks of one process take turns inside the library.
    pub fn serialises_ranks(self) -> bool {
        self == Self::Hdf5
    }
}

/// A stack as far as it decides what a transfer costs.
#[derive(Debug, Clone)]
pub struct Configuration {
    pub(crate) format: Format,
    pub(crate) layers: Vec<Layer>,
    pub(crate) counting: Counting,
    /// By number of the declared array.
    shares: Vec<f64>,
    pub(crate) most_visits: u64,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counting {
    /// What the format really does.
    #[default]
    Real,
    /// The variables of the published model of array libraries, their counting corrected.
    Published,
    /// The same as printed: index blocks are counted at seeks only.
    PublishedAsPrinted,
}

#[derive(Debug, Clone)]
pub(crate) enum Format {
    Hdf5(Hdf5),
    Zarr(Zarr),
    Posix(Posix),
}

/// Where the elements of an array rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Storage {
    pub(crate) placement: Placement,
    /// In the order of writing.
    pub(crate) codecs: Vec<Codec>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Placement {
    OnePiece,
    Chunks(Dims),
    /// Files of these extents, of chunks of these.
    Shards {
        file: Dims,
        chunk: Dims,
    },
}

impl Configuration {
    /// Reads the options of a stack. Refuses formats that there is no model for, and options that make no sense.
    pub fn of(stack: &Stack) -> Result<Self> {
        let format = match stack.format.name.as_str() {
            "hdf5" => Format::Hdf5(Hdf5::parse(&stack.format)?),
            "zarr" => Format::Zarr(Zarr::parse(&stack.format)?),
            "posix" => Format::Posix(Posix::parse(&stack.format)?),
            other => {
                return Err(Error::unsupported("model stack", format!("there is no model of {other}"))
                    .hint("use a stack on hdf5, zarr or posix"));
            }
        };
        Ok(Self {
            format,
            layers: stack.layers.iter().map(Layer::parse).collect::<Result<_>>()?,
            counting: Counting::Real,
            shares: Vec::new(),
            most_visits: u64::MAX,
        })
    }

    /// The coefficients that it needs.
    pub fn class(&self) -> Class {
        match &self.format {
            Format::Posix(_) => Class::Posix,
            Format::Hdf5(hdf5) if hdf5.plane => Class::Hdf5Plane,
            Format::Hdf5(_) => Class::Hdf5,
            Format::Zarr(zarr) if zarr.shard.is_some() => Class::ZarrSharded,
            Format::Zarr(_) => Class::Zarr,
        }
    }

    /// Names of its layers, outermost first.
    pub fn layers(&self) -> Vec<String> {
        self.layers.iter().map(|layer| layer.name.clone()).collect()
    }

    /// The same with what is known of the data: by number of the declared array, the part of its bytes that is left when
    /// its chunks are coded. Without it codecs are taken to save nothing. It matters only for arrays that are coded.
    #[must_use]
    pub fn stored(mut self, shares: Vec<f64>) -> Self {
        self.shares = shares;
        self
    }

    /// The same for work that visits no more chunks than this: counting gives up on what visits more, which is of no use to
    /// those who look for what is fast.
    #[must_use]
    pub fn at_most(mut self, visits: u64) -> Self {
        self.most_visits = visits;
        self
    }

    /// The part of an array's bytes that codecs leave; `None` where none makes them fewer, or it is not known.
    pub(crate) fn share(&self, array: u32, storage: &Storage) -> Option<f64> {
        let compresses = storage.codecs.iter().any(|codec| !matches!(codec, Codec::Shuffle | Codec::Checksum));
        let known = self.shares.get(array as usize).copied().filter(|share| share.is_finite() && *share >= 0.0);
        known.filter(|_| compresses)
    }

    /// Bytes at whose multiples large objects begin; 1 where it makes no difference.
    pub(crate) fn align(&self) -> u64 {
        match &self.format {
            Format::Hdf5(hdf5) => hdf5.align,
            _ => 1,
        }
    }

    /// How an array will be stored.
    pub(crate) fn storage(&self, spec: &ArraySpec) -> Result<Storage> {
        spec.check()?;
        match &self.format {
            Format::Posix(_) => Ok(Storage { placement: Placement::OnePiece, codecs: Vec::new() }),
            Format::Hdf5(hdf5) => hdf5.storage(spec),
            Format::Zarr(zarr) => zarr.storage(spec),
        }
    }

    /// The same with other things counted.
    #[must_use]
    pub fn counting(self, counting: Counting) -> Self {
        Self { counting, ..self }
    }

    /// The same for an older libhdf5: a chunk cache of 1 MiB in 521 slots, and no sieve for chunks that do not fit.
    #[must_use]
    pub fn with_hdf5_1(mut self) -> Self {
        if let Format::Hdf5(hdf5) = &mut self.format {
            hdf5.library = Library::V1;
        }
        self
    }
}
