//! The stacks that are tested: each format with options that change what it does.

use hyperslab_core::{Format, Result, Stack};
use hyperslab_testkit::Overrides;
use std::sync::Arc;

/// A stack under test.
pub struct Tested {
    /// As a user writes it.
    pub text: &'static str,
    /// What its options decide instead of the array.
    pub overrides: Overrides,
    /// The trials that make sense for it, by a part of their names; empty for all.
    pub only: &'static [&'static str],
    /// The trials that its options rule out, by a part of their names.
    pub without: &'static [&'static str],
    /// How many random operation sequences it plays.
    pub sequences: u32,
}

const PLAIN: Overrides = Overrides { chunk: false, filters: false, beside: false };
const CHUNKS: Overrides = Overrides { chunk: true, filters: false, beside: false };
const FILTERS: Overrides = Overrides { chunk: false, filters: true, beside: false };

/// Options that fix a number of dimensions leave the trials with that many.
const TWO_DIMENSIONS: &[&str] = &[
    "datatype/",
    "fill value/",
    "fields/",
    "rank/2",
    "layout/2",
    "disjoint blocks",
    "interleaved strides",
    "reads what",
];

/// An option for all arrays meets arrays without chunks, and the format says no.
const NO_SCALARS: &[&str] =
    &["rank/0", "layout/scalar", "several arrays of different types", "fields/of elements never written"];

/// In classic NetCDF a dimension of length 0 is the one that grows.
const NO_EMPTY: &[&str] = &["rank/without elements", "::1 ranks/more ranks than rows"];

/// CDF-1 and CDF-2 lack types of 64 bits and without sign besides.
const OLDER_CDF: &[&str] = &[
    "rank/without elements",
    "datatype/u1",
    "datatype/<u",
    "datatype/<i8",
    "several arrays of different types",
    "layout/3 dimensions, one-byte",
    "layout/scalar",
    "attribute/integer",
    "attribute/smallest integer",
    "attribute/replaced",
    "attribute/names",
    " ranks/",
];

/// Those with opaque fields, which NetCDF-4 has but few of its readers know.
const NO_OPAQUE: &[&str] =
    &["datatype/nested", "fields/nested", "fields/in chunks", "fields/of elements never written"];

const fn all(text: &'static str, overrides: Overrides) -> Tested {
    Tested { text, overrides, only: &[], without: &[], sequences: 40 }
}

/// Everything that this build can run.
pub fn tested() -> Vec<Tested> {
    let mut out = vec![
        Tested { sequences: 0, ..all("null", PLAIN) },
        all("posix", PLAIN),
        all("posix(files=per_rank)", PLAIN),
        all("posix(direct=yes,buffer=8KiB)", PLAIN),
        Tested { sequences: 10, ..all("posix(preallocate=yes)", PLAIN) },
        all("npy", PLAIN),
        Tested { sequences: 10, ..all("npy(buffer=4KiB)", PLAIN) },
    ];
    out.extend([
        Tested { without: NO_EMPTY, ..all("netcdf3", PLAIN) },
        Tested { without: NO_EMPTY, ..all("netcdf3(header_pad=0)", PLAIN) },
        Tested {
            without: NO_EMPTY,
            ..all("netcdf3(header_pad=1KiB,var_align=4KiB,record_align=4KiB,buffer=4KiB)", PLAIN)
        },
        Tested { without: OLDER_CDF, sequences: 0, ..all("netcdf3(version=2)", PLAIN) },
        Tested { without: OLDER_CDF, sequences: 0, ..all("netcdf3(version=1,header_pad=0)", PLAIN) },
    ]);
    if cfg!(feature = "hdf5") {
        out.extend([
            all("hdf5", PLAIN),
            all("hdf5(layout=chunked)", PLAIN),
            Tested { without: &["a larger array"], sequences: 15, ..all("hdf5(layout=compact)", CHUNKS) },
            Tested { without: NO_SCALARS, sequences: 0, ..all("hdf5(deflate=4,shuffle=yes)", FILTERS) },
            Tested { without: NO_SCALARS, sequences: 0, ..all("hdf5(fletcher32=yes,alloc_time=early)", FILTERS) },
            Tested { sequences: 15, ..all("hdf5(libver=latest,align=4KiB,cache=0)", PLAIN) },
            all("hdf5(plane=on)", PLAIN),
            all("hdf5(plane=on,layout=chunked)", PLAIN),
            Tested { without: NO_SCALARS, sequences: 0, ..all("hdf5(plane=on,deflate=4,shuffle=yes)", FILTERS) },
            Tested {
                without: NO_SCALARS,
                sequences: 0,
                ..all("hdf5(plane=on,fletcher32=yes,alloc_time=early,libver=latest,threads=3,cache=0)", FILTERS)
            },
        ]);
    }
    if cfg!(feature = "hdf5") {
        let netcdf = |text| Tested { without: NO_OPAQUE, sequences: 15, ..all(text, PLAIN) };
        const NEITHER: &[&str] = &[
            "rank/0",
            "layout/scalar",
            "several arrays of different types",
            "fields/of elements never written",
            "datatype/nested",
            "fields/nested",
            "fields/in chunks",
        ];
        out.extend([
            netcdf("netcdf4"),
            netcdf("netcdf4(layout=chunked,chunk_target=64KiB)"),
            netcdf("netcdf4(plane=on)"),
            Tested { without: NEITHER, sequences: 0, ..all("netcdf4(plane=on,deflate=4,shuffle=yes)", FILTERS) },
        ]);
    }
    if cfg!(feature = "zarr") {
        out.extend([
            all("zarr", PLAIN),
            all("zarr(version=2)", PLAIN),
            Tested { sequences: 15, ..all("zarr(codec=zstd,shuffle=yes,threads=3)", FILTERS) },
            Tested { sequences: 15, ..all("zarr(version=2,codec=blosc,separator=slash)", FILTERS) },
            Tested { sequences: 15, ..all("zarr(codec=gzip,crc32c=yes,write_empty=yes)", FILTERS) },
            Tested {
                only: TWO_DIMENSIONS,
                without: NO_SCALARS,
                sequences: 0,
                ..all("zarr(chunk=2x3,shard=8x6)", CHUNKS)
            },
        ]);
    }
    out
}

/// The format that a stack string names.
pub fn build(text: &str) -> Result<Arc<dyn Format>> {
    hyperslab_formats::build(&text.parse::<Stack>()?.format)
}
