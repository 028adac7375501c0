//! The options of `zarr` in stack strings, with their defaults.

use hyperslab_core::OptionSpec;

/// Every option with its default.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec { name: "version", value: "2|3", default: "3", about: "Zarr version of new stores" },
    OptionSpec {
        name: "chunk",
        value: "64x64",
        default: "the array's own, else about 1 MiB",
        about: "chunk extents of new arrays; 1024;64x64 has one for each number of dimensions",
    },
    OptionSpec {
        name: "shard",
        value: "256x256",
        default: "none",
        about: "extents of shards, the files that hold several chunks; a multiple of the chunk (version 3)",
    },
    OptionSpec {
        name: "codec",
        value: "none|gzip|zstd|blosc",
        default: "the array's filters",
        about: "compression of new arrays, instead of the filters they ask for",
    },
    OptionSpec {
        name: "level",
        value: "N",
        default: "gzip 5, zstd 3, blosc 5",
        about: "level of codec: gzip and blosc 0 to 9, zstd 1 to 22",
    },
    OptionSpec {
        name: "blosc_codec",
        value: "lz4|lz4hc|blosclz|zstd|zlib",
        default: "lz4",
        about: "what blosc compresses with",
    },
    OptionSpec {
        name: "shuffle",
        value: "yes|no",
        default: "yes for blosc, else no",
        about: "group bytes of equal significance before codec",
    },
    OptionSpec {
        name: "crc32c",
        value: "yes|no",
        default: "no",
        about: "a checksum after each chunk, checked when read (version 3)",
    },
    OptionSpec {
        name: "separator",
        value: "slash|dot",
        default: "version 3 slash, version 2 dot",
        about: "between the numbers in chunk file names",
    },
    OptionSpec {
        name: "write_empty",
        value: "yes|no",
        default: "no",
        about: "write chunks that hold only the fill value instead of leaving them out",
    },
    OptionSpec {
        name: "threads",
        value: "N",
        default: "1",
        about: "threads for the chunks of one call; 1 keeps ranks comparable",
    },
];
