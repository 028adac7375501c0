//! A stack in the words of other programs.

use hyperslab_core::{Stack, StackElement};

/// How to ask h5py, netCDF4, zarr-python and h5bench for what a stack stores; nothing for those that cannot.
pub fn settings(stack: &Stack) -> Vec<String> {
    let format = &stack.format;
    let chunk = format.get("chunk").map(|text| text.split('x').map(str::to_owned).collect::<Vec<_>>());
    let tuple = |extents: &[String]| format!("({},)", extents.join(", "));
    let mut out = match format.name.as_str() {
        "hdf5" => hdf5(format, chunk.as_deref(), &tuple),
        "zarr" => zarr(format, chunk.as_deref(), &tuple),
        _ => Vec::new(),
    };
    if let Some(layer) = stack.layers.first() {
        let mode = match layer.name.as_str() {
            "async" => Some("ASYNC"),
            "log" => Some("LOG"),
            _ => None,
        };
        out.extend(mode.map(|mode| format!("h5bench:      \"MODE\": \"{mode}\"")));
    }
    out.push(format!("hyperslab:    --stack '{stack}'"));
    out
}

fn hdf5(format: &StackElement, chunk: Option<&[String]>, tuple: &dyn Fn(&[String]) -> String) -> Vec<String> {
    let mut keywords = String::new();
    let mut net = String::new();
    if let Some(chunk) = chunk {
        keywords.push_str(&format!(", chunks={}", tuple(chunk)));
        net.push_str(&format!(", chunksizes={}", tuple(chunk)));
    }
    if let Some(level) = format.get("deflate") {
        keywords.push_str(&format!(", compression=\"gzip\", compression_opts={level}"));
        net.push_str(&format!(", compression=\"zlib\", complevel={level}"));
    }
    if format.get("shuffle") == Some("yes") {
        keywords.push_str(", shuffle=True");
        net.push_str(", shuffle=True");
    }
    let cache = format.size("cache").ok().flatten();
    let file = cache.map_or(String::new(), |bytes| format!("h5py.File(name, \"w\", rdcc_nbytes={bytes}); "));
    let mut out = vec![
        format!("h5py:         {file}file.create_dataset(name, shape, dtype{keywords})"),
        format!("netCDF4:      dataset.createVariable(name, dtype, dimensions{net})"),
    ];
    if let Some(chunk) = chunk {
        let dims = chunk.iter().enumerate().map(|(d, extent)| format!("\"CHUNK_DIM_{}\": \"{extent}\"", d + 1));
        out.push(format!("h5bench:      \"CHUNK\": \"YES\", {}", dims.collect::<Vec<_>>().join(", ")));
    }
    out
}

fn zarr(format: &StackElement, chunk: Option<&[String]>, tuple: &dyn Fn(&[String]) -> String) -> Vec<String> {
    let mut keywords = String::new();
    if let Some(chunk) = chunk {
        keywords.push_str(&format!(", chunks={}", tuple(chunk)));
    }
    if let Some(shard) = format.get("shard") {
        keywords.push_str(&format!(", shards={}", tuple(&shard.split('x').map(str::to_owned).collect::<Vec<_>>())));
    }
    keywords.push_str(match format.get("codec") {
        Some("gzip") => ", compressors=zarr.codecs.GzipCodec()",
        Some("zstd") => ", compressors=zarr.codecs.ZstdCodec()",
        Some("blosc") => ", compressors=zarr.codecs.BloscCodec()",
        _ => ", compressors=None",
    });
    vec![format!("zarr-python:  zarr.create_array(store, shape=shape, dtype=dtype{keywords})")]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_told_in_other_words() {
        let of = |text: &str| settings(&text.parse().unwrap()).join("\n");
        let hdf5 = of("async/hdf5(chunk=64x32,deflate=4,shuffle,cache=16MiB)");
        for words in [
            "chunks=(64, 32,), compression=\"gzip\", compression_opts=4, shuffle=True",
            "rdcc_nbytes=16777216",
            "chunksizes=(64, 32,)",
            "\"CHUNK_DIM_2\": \"32\"",
            "\"MODE\": \"ASYNC\"",
        ] {
            assert!(hdf5.contains(words), "{hdf5}");
        }
        let zarr = of("zarr(chunk=8x8,shard=64x64,codec=zstd)");
        assert!(zarr.contains("chunks=(8, 8,), shards=(64, 64,), compressors=zarr.codecs.ZstdCodec()"), "{zarr}");
    }
}
