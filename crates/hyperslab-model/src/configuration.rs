//! What of a stack decides how an array is stored and moved.

mod codec;
mod libhdf5;

pub(crate) use codec::Codec;
pub(crate) use libhdf5::{Libhdf5, LibraryVersion};

use hyperslab_core::storage::{AllocationTime, StorageRules, StoredLayout};
use hyperslab_core::{ArraySpec, LayerEffect, Result, TransferCost};
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
    rules: StorageRules,
    pub(crate) mechanism: Mechanism,
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

/// How elements are moved.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mechanism {
    /// Byte ranges of raw files, through a buffer of so many bytes.
    RawFile { buffer: u64 },
    /// Pieces and chunks of one file.
    ChunkedFile(Libhdf5),
    /// A file for each chunk or shard.
    ChunkFiles { directories: bool, sharded: bool },
}

/// A layer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layer {
    pub(crate) name: String,
    pub(crate) way: LayerEffect,
}

/// Where the elements of an array rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Storage {
    pub(crate) layout: StoredLayout,
    /// In the order of writing.
    pub(crate) codecs: Vec<Codec>,
    /// Chunks have their places when the array is made.
    pub(crate) early: bool,
}

impl Configuration {
    /// Of a format that stores arrays by `rules` and moves elements as `cost` says, below `layers`, outermost first.
    pub fn new(rules: StorageRules, cost: TransferCost, layers: Vec<(String, LayerEffect)>) -> Self {
        let mechanism = match cost {
            TransferCost::RawFile { buffer } => Mechanism::RawFile { buffer },
            TransferCost::ChunkedFile(cost) => Mechanism::ChunkedFile(Libhdf5 { version: LibraryVersion::V2, cost }),
            TransferCost::ChunkFiles { directories } => {
                let sharded = matches!(&rules, StorageRules::Store(store) if store.shard.is_some());
                Mechanism::ChunkFiles { directories, sharded }
            }
        };
        Self {
            rules,
            mechanism,
            layers: layers.into_iter().map(|(name, way)| Layer { name, way }).collect(),
            counting: Counting::Real,
            shares: Vec::new(),
            most_visits: u64::MAX,
        }
    }

    /// The coefficients that it needs.
    pub fn class(&self) -> Class {
        match &self.mechanism {
            Mechanism::RawFile { .. } => Class::Posix,
            Mechanism::ChunkedFile(library) if library.cost.direct => Class::Hdf5Plane,
            Mechanism::ChunkedFile(_) => Class::Hdf5,
            Mechanism::ChunkFiles { sharded: true, .. } => Class::ZarrSharded,
            Mechanism::ChunkFiles { .. } => Class::Zarr,
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
        self.rules.align()
    }

    /// How an array will be stored.
    pub(crate) fn storage(&self, spec: &ArraySpec) -> Result<Storage> {
        let stored = self.rules.decide(spec)?;
        let checksum = stored.crc32c.then_some(Codec::Checksum);
        let codecs = stored.filters.iter().map(Codec::of).chain(checksum).collect();
        Ok(Storage { layout: stored.layout, codecs, early: stored.allocation == Some(AllocationTime::Early) })
    }

    /// The same with other things counted.
    #[must_use]
    pub fn counting(self, counting: Counting) -> Self {
        Self { counting, ..self }
    }

    /// The same for an older libhdf5: a chunk cache of 1 MiB in 521 slots, and no sieve for chunks that do not fit.
    #[must_use]
    pub fn with_hdf5_1(mut self) -> Self {
        if let Mechanism::ChunkedFile(library) = &mut self.mechanism {
            library.version = LibraryVersion::V1;
        }
        self
    }
}
