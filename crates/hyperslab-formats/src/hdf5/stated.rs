//! The filters of a dataset, in the words of its file.

use super::library::{Id, count, done};
use hdf5_metno_sys::h5p;
use hdf5_metno_sys::h5z::H5Z_FLAG_OPTIONAL;
use hyperslab_core::{Datatype, Error, Filter, Result, dims};
use hyperslab_filters::{BitshuffleCodec, BloscCodec, BloscShuffle, FilterSpec};

/// The most parameters that a filter may have here.
const MOST_PARAMETERS: usize = 256;

/// Every filter of a creation list, in the order of writing. Call under the lock.
pub(super) fn filters(list: &Id) -> Result<Vec<FilterSpec>> {
    const DOING: &str = "describe array";
    // SAFETY: the list is live.
    let number = count(DOING, unsafe { h5p::H5Pget_nfilters(list.raw()) })?;
    let mut filters = Vec::with_capacity(number.min(32));
    for at in 0..number as u32 {
        let (mut flags, mut config, mut values, mut used) = (0, 0, [0u32; MOST_PARAMETERS], MOST_PARAMETERS);
        // SAFETY: the list is live, the index in range, `values` has the room that `used` states, no name is wanted.
        let id = unsafe {
            h5p::H5Pget_filter2(
                list.raw(),
                at,
                &raw mut flags,
                &raw mut used,
                values.as_mut_ptr(),
                0,
                std::ptr::null_mut(),
                &raw mut config,
            )
        };
        done(DOING, id)?;
        if used > MOST_PARAMETERS {
            return Err(Error::unsupported(DOING, format!("HDF5 filter {id} has {used} parameters")));
        }
        let optional = flags & H5Z_FLAG_OPTIONAL != 0;
        filters.push(FilterSpec { id: id as u32, optional, parameters: values[..used].to_vec() });
    }
    Ok(filters)
}

/// A filter that is not libhdf5's own, as h5py and hdf5plugin would state it.
pub(super) fn of(filter: Filter, dtype: &Datatype, chunk: &[u64]) -> Result<FilterSpec> {
    let small = |n: u64| {
        u32::try_from(n).map_err(|_| {
            Error::unsupported("create array", format!("{filter:?} cannot code chunks of 4 GiB or more"))
                .hint("choose smaller chunks")
        })
    };
    let (element, bytes) = (small(dtype.size())?, small(dims::byte_count(chunk, dtype.size())?)?);
    Ok(match filter {
        Filter::Deflate(level) => FilterSpec::deflate(level.into()),
        Filter::Shuffle => FilterSpec::shuffle(element),
        Filter::Fletcher32 => FilterSpec::fletcher32(),
        Filter::Zstd(level) => FilterSpec::zstd(level.into()),
        Filter::Blosc(level) => FilterSpec::blosc(element, bytes, level.into(), BloscShuffle::Bytes, BloscCodec::Lz4),
        Filter::Blosc2(level) => {
            let chunk = chunk.iter().map(|&extent| small(extent)).collect::<Result<Vec<_>>>()?;
            FilterSpec::blosc2(element, &chunk, level.into(), BloscShuffle::Bytes, BloscCodec::Zstd)
        }
        Filter::Lz4 => FilterSpec::lz4(0),
        Filter::Lzf => FilterSpec::lzf(bytes),
        Filter::Bitshuffle => FilterSpec::bitshuffle(element, BitshuffleCodec::Lz4),
    })
}

/// The filter as the rest of the project knows it.
pub(super) fn named(stated: &FilterSpec) -> Result<Filter> {
    stated.to_filter().ok_or_else(|| {
        let what = format!("the array has HDF5 filter {}, unknown here", stated.id);
        Error::unsupported("describe array", what)
            .hint("repack the file with deflate, for example with h5repack -f GZIP=4")
    })
}
