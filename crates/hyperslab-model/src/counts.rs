//! What a workload makes a stack do, as numbers: the variables of the model.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::{AddAssign, Index, IndexMut};

/// The part of the time that a count explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Walking selections, copying elements between buffers.
    Copy,
    /// Finding chunks that are kept in memory.
    Cache,
    /// Reading from files.
    StorageRead,
    /// Writing to files.
    StorageWrite,
    /// Containers, arrays, attributes, files as objects.
    Metadata,
    /// Coding and decoding chunks.
    Codec,
    /// What layers add.
    Layer,
}

impl Part {
    /// All, in the order they are shown.
    pub const ALL: [Self; 7] =
        [Self::Copy, Self::Cache, Self::StorageRead, Self::StorageWrite, Self::Metadata, Self::Codec, Self::Layer];

    /// The words for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Cache => "cache",
            Self::StorageRead => "storage read",
            Self::StorageWrite => "storage write",
            Self::Metadata => "metadata",
            Self::Codec => "codec",
            Self::Layer => "layers",
        }
    }
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident, $text:literal, $part:ident, $ordinary:literal;)*) => {
        /// Something that a stack does, and that can be counted beforehand.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Count {
            $($(#[$doc])* $name,)*
        }

        impl Count {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name in profiles and tables.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The part of the time that it explains.
            pub fn part(self) -> Part {
                match self { $(Self::$name => Part::$part,)* }
            }

            /// Seconds that one of it takes on an ordinary machine, to a factor of a few: what is left to say where
            /// measured runs say nothing. 0 of what profiles know otherwise.
            pub fn ordinary(self) -> f64 {
                match self { $(Self::$name => $ordinary,)* }
            }
        }

        const KINDS: usize = [$(Count::$name),*].len();
    };
}

counts! {
    /// Transfers that the program asks for.
    Requests, "requests", Copy, 1e-6;
    /// Chunks, or files of chunks, that transfers work on; an array in one piece counts as one.
    ChunkVisits, "chunk_visits", Copy, 2e-6;
    /// Pieces that lie together in memory and in the chunk, each copied or moved by itself, unless they are short.
    Runs, "runs", Copy, 1e-8;
    /// Pieces of single elements.
    ShortRuns, "short_runs", Copy, 5e-9;
    /// Bytes of transfers and buffers beyond the first megabytes of each: memory that is new, and in no cache of the
    /// processor.
    LargeBytes, "large_bytes", Copy, 5e-11;
    /// Bytes copied from memory to memory.
    CopiedBytes, "copied_bytes", Copy, 1e-10;
    /// Bytes of buffers that are made and filled before elements go in.
    ClearedBytes, "cleared_bytes", Copy, 5e-11;
    /// Chunks found in a cache of the library.
    CacheHits, "cache_hits", Cache, 1e-6;
    /// System calls that read elements.
    ReadCalls, "read_calls", StorageRead, 1e-6;
    /// Bytes that they read.
    ReadBytes, "read_bytes", StorageRead, 1e-10;
    /// Seeks of the published model.
    ReadJumps, "read_jumps", StorageRead, 1e-6;
    /// Times that a device must be asked, for what is not in memory.
    DeviceReads, "device_reads", StorageRead, 1e-4;
    /// Bytes that come from it, in whole blocks.
    DeviceBytes, "device_bytes", StorageRead, 1e-9;
    /// System calls that write elements.
    WriteCalls, "write_calls", StorageWrite, 2e-6;
    /// Bytes that they write.
    WriteBytes, "write_bytes", StorageWrite, 2e-10;
    /// Bytes of them that get new places in files.
    NewBytes, "new_bytes", StorageWrite, 1e-10;
    /// Files of chunks that are opened to read.
    FilesOpened, "files_opened", Metadata, 1e-5;
    /// Files of chunks that are made.
    FilesCreated, "files_created", Metadata, 5e-5;
    /// Those of them that take the place of others.
    FilesReplaced, "files_replaced", Metadata, 5e-5;
    /// Files that were replaced before, summed over the files that are made: some file systems pass over the places of
    /// files that have just gone, one by one.
    FreedPassed, "freed_passed", Metadata, 1e-9;
    /// Directories that are made for them.
    DirectoriesCreated, "directories_created", Metadata, 5e-5;
    /// Blocks of a chunk index that are read or written for the first time.
    IndexBlocks, "index_blocks", Metadata, 2e-5;
    /// Places of chunks that the library is asked to list.
    IndexEntries, "index_entries", Metadata, 1e-6;
    /// Containers that are made.
    ContainersCreated, "containers_created", Metadata, 2e-4;
    /// Containers that are opened.
    ContainersOpened, "containers_opened", Metadata, 1e-4;
    /// Arrays that are made.
    ArraysCreated, "arrays_created", Metadata, 1e-4;
    /// Arrays that are opened.
    ArraysOpened, "arrays_opened", Metadata, 5e-5;
    /// Groups and attributes.
    Attributes, "attributes", Metadata, 5e-5;
    /// Changes of shape.
    Resizes, "resizes", Metadata, 5e-5;
    /// Flushes that others must see.
    Flushes, "flushes", Metadata, 5e-5;
    /// Flushes that must reach the device.
    Syncs, "syncs", StorageWrite, 2e-3;
    /// Bytes before compression by zlib.
    DeflateEncoded, "deflate_encoded", Codec, 1e-8;
    /// Bytes after decompression by zlib.
    DeflateDecoded, "deflate_decoded", Codec, 2e-9;
    /// Bytes before compression by Zstandard.
    ZstdEncoded, "zstd_encoded", Codec, 2e-9;
    /// Bytes after decompression by Zstandard.
    ZstdDecoded, "zstd_decoded", Codec, 1e-9;
    /// Bytes before compression by Blosc, LZ4, LZF and bitshuffle.
    FastEncoded, "fast_encoded", Codec, 5e-10;
    /// Bytes after decompression by Blosc, LZ4, LZF and bitshuffle.
    FastDecoded, "fast_decoded", Codec, 2e-10;
    /// Bytes that zlib leaves, or begins from.
    DeflateStored, "deflate_stored", Codec, 5e-9;
    /// Bytes that Zstandard leaves, or begins from.
    ZstdStored, "zstd_stored", Codec, 1e-9;
    /// Bytes that Blosc, LZ4, LZF and bitshuffle leave, or begin from.
    FastStored, "fast_stored", Codec, 5e-10;
    /// Bytes shuffled or put back.
    Shuffled, "shuffled", Codec, 3e-10;
    /// Bytes of which a checksum is made.
    Checksummed, "checksummed", Codec, 3e-10;
    /// Calls that a layer takes over.
    LayerCalls, "layer_calls", Layer, 0.0;
    /// Bytes that a layer copies or exchanges.
    LayerBytes, "layer_bytes", Layer, 0.0;
}

/// How often each thing happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts([u64; KINDS]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; KINDS])
    }
}

impl Index<Count> for Counts {
    type Output = u64;
    fn index(&self, count: Count) -> &u64 {
        &self.0[count as usize]
    }
}

impl IndexMut<Count> for Counts {
    fn index_mut(&mut self, count: Count) -> &mut u64 {
        &mut self.0[count as usize]
    }
}

impl AddAssign<&Self> for Counts {
    fn add_assign(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }
}

impl Counts {
    /// Adds to one count; at the end of the numbers it stays there.
    pub fn add(&mut self, count: Count, by: u64) {
        self[count] = self[count].saturating_add(by);
    }

    /// What has been added since `before`.
    pub fn since(&self, before: &Self) -> Self {
        let mut more = *self;
        for (mine, theirs) in more.0.iter_mut().zip(before.0) {
            *mine = mine.saturating_sub(theirs);
        }
        more
    }

    /// All of it so many times, by `of` parts of `parts`: what a part says about the whole.
    pub fn scaled(&self, parts: u64, of: u64) -> Self {
        let mut all = *self;
        for mine in &mut all.0 {
            let product = u128::from(*mine) * u128::from(parts) / u128::from(of.max(1));
            *mine = u64::try_from(product).unwrap_or(u64::MAX);
        }
        all
    }

    /// As a row of a table of variables.
    pub fn row(&self) -> Vec<f64> {
        self.0.iter().map(|&n| n as f64).collect()
    }

    /// Those that are not 0, by name.
    pub fn named(&self) -> BTreeMap<String, u64> {
        let used = Count::ALL.iter().filter(|count| self[**count] > 0);
        used.map(|&count| (count.name().to_owned(), self[count])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_scale() {
        let mut counts = Counts::default();
        counts.add(Count::ReadCalls, 3);
        let before = counts;
        counts.add(Count::ReadCalls, 4);
        counts.add(Count::WriteBytes, u64::MAX);
        counts.add(Count::WriteBytes, 1);
        assert_eq!(counts.since(&before)[Count::ReadCalls], 4);
        assert_eq!(counts[Count::WriteBytes], u64::MAX);
        assert_eq!(before.scaled(10, 3)[Count::ReadCalls], 10);
        assert_eq!(counts.row().len(), Count::ALL.len());
        assert_eq!(before.named().into_iter().collect::<Vec<_>>(), [("read_calls".to_owned(), 3)]);
        let mut names: Vec<_> = Count::ALL.iter().map(|count| count.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Count::ALL.len());
    }
}
