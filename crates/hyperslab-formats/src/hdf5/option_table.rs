//! The options of `hdf5` in stack strings, with their defaults.

use hyperslab_core::OptionSpec;

const fn option(name: &'static str, value: &'static str, default: &'static str, about: &'static str) -> OptionSpec {
    OptionSpec { name, value, default, about }
}

pub(crate) const ALIGN: OptionSpec =
    option("align", "SIZE", "1", "objects of align_threshold or more begin at multiples of this, at most 1GiB");
pub(crate) const CACHE_W0: OptionSpec =
    option("cache_w0", "0..100", "libhdf5's (75)", "percent: how much fully used chunks are dropped first");
pub(crate) const SIEVE: OptionSpec =
    option("sieve", "SIZE", "libhdf5's (64KiB)", "buffer that joins small accesses to contiguous arrays");

/// Every option with its default.
pub(crate) const TABLE: &[OptionSpec] = &[
    option(
        "layout",
        "contiguous|compact|chunked|auto",
        "auto",
        "how arrays lie in the file; auto: chunked if chunks, filters or growth ask for it, else contiguous",
    ),
    option(
        "chunk",
        "64x64",
        "the array's own, else about 1MiB (of arrays that grow: align)",
        "chunk extents of every array, cut to its fixed extents; means layout=chunked. 1024;64x64 has one for each number of dimensions",
    ),
    option("deflate", "0..9", "the array's own", "zlib level of every array"),
    option("shuffle", "yes|no", "the array's own", "byte shuffle before compression"),
    option("fletcher32", "yes|no", "the array's own", "checksum of every chunk"),
    option(
        "fill_time",
        "ifset|alloc|never",
        "ifset",
        "when fill values are written; with never, what was not written reads as anything",
    ),
    option(
        "alloc_time",
        "default|early|late|incremental",
        "default",
        "when file space of arrays is allocated; with align that of chunks without filters early by default, in files \
         shared by processes always",
    ),
    ALIGN,
    option("align_threshold", "SIZE", "the smaller of align and 64KiB", "smallest object that align concerns"),
    option(
        "cache",
        "SIZE",
        "libhdf5's (8MiB)",
        "chunk cache of each array, with plane=on of the plane (32MiB); none in files that several processes write",
    ),
    option("cache_slots", "N", "libhdf5's (8191)", "hash slots of the chunk cache, best a prime"),
    CACHE_W0,
    option("libver", "earliest|v18|v110|v112|v114|latest", "v18", "oldest library version that must read new objects"),
    option("meta_block", "SIZE", "libhdf5's (2KiB), with align 64KiB", "metadata is allocated in blocks of this size"),
    SIEVE,
    option(
        "plane",
        "on|off",
        "off",
        "the data plane: elements go around libhdf5 where that is possible, filters run on several threads",
    ),
    option("threads", "N", "one for each core", "plane: threads of one call"),
    option("locking", "yes|no|best_effort", "libhdf5's", "lock the file against other programs; mpio never does"),
    option(
        "abandoned",
        "yes|no",
        "no",
        "yes: open also a file that a program had open for writing when it died, and take that mark off (as h5clear does)",
    ),
    option(
        "driver",
        "auto|mpio|subfiling",
        "auto",
        "how the file is reached; auto: mpio (MPI-IO) if several MPI processes share it, else POSIX calls; subfiling: \
         mpio over several files, which only subfiling can read",
    ),
    option(
        "collective_metadata",
        "yes|no",
        "no",
        "processes read metadata together when they open objects, and write it together when they flush",
    ),
    option(
        "chunk_io",
        "auto|one|multi",
        "auto",
        "collective transfers of processes: all chunks in one MPI-IO call, or one call for each chunk",
    ),
    option("hints", "\"cb_nodes=2;romio_cb_write=enable\"", "none", "hints for MPI-IO, as key=value;key=value"),
    option("stripe_size", "SIZE", "libhdf5's (32MiB)", "subfiling: bytes that go to one file before the next is used"),
    option("stripe_count", "N", "one for each concentrator", "subfiling: number of files"),
    option(
        "ioc_selection",
        "node|rank",
        "node",
        "subfiling: one rank of each node does the I/O (a concentrator), or every rank, at most stripe_count of them",
    ),
    option(
        "ioc_per_node",
        "N",
        "1",
        "subfiling: concentrators on each node; libhdf5 takes it from H5FD_SUBFILING_IOC_PER_NODE, which must say the same",
    ),
];
