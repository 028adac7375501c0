//! A stack in the words of other programs.

use hyperslab_core::{Dims, Filter, Shapes, Stack, StackElement};

/// Filters that arrays have by themselves, and keep.
pub struct Kept<'a>(pub Option<&'a [Filter]>);

/// How to ask h5py and netCDF4 for what a stack of HDF5 stores; nothing for other formats.
pub fn libraries(stack: &Stack, kept: &Kept<'_>) -> Vec<String> {
    if stack.format.name == "hdf5" { hdf5(&stack.format, stack.has_layer("twophase"), kept) } else { Vec::new() }
}

/// How to have what a stack does below any program, by the connector; nothing if the connector does not do it.
pub fn with_run(stack: &Stack) -> Option<String> {
    let modes = connector(stack).filter(|_| stack.format.name == "hdf5" && !stack.has_layer("twophase"))?;
    Some(format!("any program:  hyperslab run --mode {modes} -- python program.py     (docs/connector.md)"))
}

/// How to ask zarr-python for what a stack stores.
pub fn zarr_python(stack: &Stack, kept: &Kept<'_>) -> Vec<String> {
    if stack.format.name == "zarr" { zarr(&stack.format, kept) } else { Vec::new() }
}

/// How to ask h5bench and Hyperslab itself for a stack.
pub fn own(stack: &Stack) -> Vec<String> {
    let together = stack.has_layer("twophase");
    let mut out = Vec::new();
    out.extend((stack.format.name == "hdf5").then(|| h5bench(stack, together)).flatten());
    let transfers = if together { " --transfers collective" } else { "" };
    out.push(format!("hyperslab:    --stack '{stack}'{transfers}"));
    out
}

fn shapes(format: &StackElement, key: &str) -> Vec<Dims> {
    format.shapes(key).ok().flatten().as_ref().map(Shapes::all).unwrap_or_default().to_vec()
}

/// A shape as a tuple of Python; of several, one for each number of dimensions.
fn tuples(name: &str, shapes: &[Dims]) -> String {
    let tuple = |shape: &Dims| {
        let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
        if let [one] = extents.as_slice() { format!("({one},)") } else { format!("({})", extents.join(", ")) }
    };
    match shapes {
        [] => String::new(),
        [shape] => format!(", {name}={}", tuple(shape)),
        several => {
            let cases = several.iter().map(|shape| format!("{}: {}", shape.len(), tuple(shape)));
            format!(", {name}={{{}}}[len(shape)]", cases.collect::<Vec<_>>().join(", "))
        }
    }
}

fn hdf5(format: &StackElement, together: bool, kept: &Kept<'_>) -> Vec<String> {
    let chunks = shapes(format, "chunk");
    let chunked = !chunks.is_empty() || format.get("layout") == Some("chunked");
    let mut keywords = tuples("chunks", &chunks);
    let mut net = tuples("chunksizes", &chunks);
    if let Some(level) = format.get("deflate") {
        let shuffle = if format.get("shuffle") == Some("yes") { "True" } else { "False" };
        if chunks.is_empty() {
            keywords.push_str(", chunks=True");
        }
        keywords.push_str(&format!(", compression=\"gzip\", compression_opts={level}, shuffle={shuffle}"));
        net.push_str(&format!(", compression=\"zlib\", complevel={level}, shuffle={shuffle}"));
    } else if let Some(filters) = kept.0.filter(|filters| !filters.is_empty()) {
        match zlib(filters) {
            Some((level, shuffle)) => {
                let shuffle = if shuffle { "True" } else { "False" };
                keywords.push_str(&format!(", compression=\"gzip\", compression_opts={level}, shuffle={shuffle}"));
                net.push_str(&format!(", compression=\"zlib\", complevel={level}, shuffle={shuffle}"));
            }
            None => [&mut keywords, &mut net].into_iter().for_each(|text| text.push_str(", and its filters as now")),
        }
    } else if kept.0.is_none() {
        [&mut keywords, &mut net].into_iter().for_each(|text| text.push_str(", and its filters as now"));
    } else if !chunked {
        net.push_str(", contiguous=True");
    }
    let size = |key: &str| format.size(key).ok().flatten();
    let mut file = String::new();
    if let Some(bytes) = size("cache") {
        file.push_str(&format!(", rdcc_nbytes={bytes}"));
    }
    if let Some(bytes) = size("align") {
        let threshold = size("align_threshold").unwrap_or(bytes.min(64 << 10));
        file.push_str(&format!(", alignment_interval={bytes}, alignment_threshold={threshold}"));
    }
    let mut out = vec![
        format!("h5py:         file = h5py.File(path, \"w\"{file})"),
        format!("              dataset = file.create_dataset(name, shape, dtype{keywords})"),
    ];
    out.extend(together.then(|| "              with dataset.collective: dataset[selection] = data     (MPI)".into()));
    out.push(format!("netCDF4:      variable = dataset.createVariable(name, dtype, dimensions{net})"));
    out.extend(together.then(|| "              variable.set_collective(True)     (MPI)".into()));
    if let Some(bytes) = size("cache") {
        out.push(format!("              variable.set_var_chunk_cache(size={bytes})"));
    }
    out
}

/// Level and shuffle, if filters are what h5py and netCDF4 have words for.
fn zlib(filters: &[Filter]) -> Option<(u8, bool)> {
    match filters {
        [Filter::Deflate(level)] => Some((*level, false)),
        [Filter::Shuffle, Filter::Deflate(level)] => Some((*level, true)),
        _ => None,
    }
}

/// The connector's modes that do what the stack does.
fn connector(stack: &Stack) -> Option<String> {
    let plane = (stack.format.get("plane") == Some("on")).then_some("codec");
    let layer =
        stack.layers.iter().map(|layer| layer.name.as_str()).find(|name| ["async", "log", "cache"].contains(name));
    let modes: Vec<&str> = plane.into_iter().chain(layer).collect();
    (!modes.is_empty()).then(|| modes.join("+"))
}

fn h5bench(stack: &Stack, together: bool) -> Option<String> {
    let format = &stack.format;
    let mut keys: Vec<(String, String)> = Vec::new();
    let mut key = |name: &str, value: &str| keys.push((name.into(), value.into()));
    let chunks = shapes(format, "chunk");
    if format.get("deflate").is_some() {
        key("COMPRESS", "YES");
        key("COMPRESS_FILTER", "GZIP");
    } else if !chunks.is_empty() {
        key("CHUNKED", "YES");
    }
    if let [chunk] = chunks.as_slice() {
        chunk
            .iter()
            .take(3)
            .enumerate()
            .for_each(|(d, extent)| key(&format!("CHUNK_DIM_{}", d + 1), &extent.to_string()));
    }
    if let Ok(Some(bytes)) = format.size("align") {
        key("ALIGN", "YES");
        key("ALIGN_LEN", &bytes.to_string());
        key("ALIGN_THRESHOLD", &bytes.min(64 << 10).to_string());
    }
    let modes = [("async", "ASYNC"), ("log", "LOG")];
    let mode = modes.iter().find(|(layer, _)| stack.has_layer(layer));
    key("MODE", mode.map_or("SYNC", |(_, mode)| mode));
    if together {
        key("COLLECTIVE_DATA", "YES");
    }
    let said: Vec<String> = keys.iter().map(|(name, value)| format!("\"{name}\": \"{value}\"")).collect();
    let own = keys.iter().any(|(name, value)| name == "CHUNKED" || value == "LOG");
    let note = if own { "     (CHUNKED and MODE=LOG: hyperslab bench only)" } else { "" };
    Some(format!("h5bench:      {}{note}", said.join(", ")))
}

fn zarr(format: &StackElement, kept: &Kept<'_>) -> Vec<String> {
    let level = format.get("level").map_or(String::new(), |level| format!("level={level}"));
    let compressor = match format.get("codec") {
        Some("gzip") => format!("zarr.codecs.GzipCodec({level})"),
        Some("zstd") => format!("zarr.codecs.ZstdCodec({level})"),
        Some("blosc") => "zarr.codecs.BloscCodec(cname=\"lz4\", shuffle=\"shuffle\")".into(),
        _ => match kept.0.map(zlib) {
            Some(Some((level, _))) => format!("zarr.codecs.GzipCodec(level={level})"),
            _ if kept.0.is_none_or(|filters| !filters.is_empty()) => "(as now)".into(),
            _ => "None".into(),
        },
    };
    let compressor = match (format.get("shuffle"), format.get("codec")) {
        (Some("yes"), Some("gzip" | "zstd")) => {
            format!("[zarr.codecs.numcodecs.Shuffle(elementsize=dtype.itemsize), {compressor}]")
        }
        _ => compressor,
    };
    let (chunks, shards) = (tuples("chunks", &shapes(format, "chunk")), tuples("shards", &shapes(format, "shard")));
    vec![format!(
        "zarr-python:  zarr.create_array(store, name=name, shape=shape, dtype=dtype{chunks}{shards}, compressors={compressor})"
    )]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let stack: Stack = text.parse().unwrap();
        let mut lines = libraries(&stack, &Kept(Some(&[])));
        lines.extend(with_run(&stack));
        lines.extend(zarr_python(&stack, &Kept(Some(&[]))));
        lines.extend(own(&stack));
        lines.join("\n")
    }

    #[test]
    fn compression_is_kept() {
        let stack: Stack = "hdf5(chunk=8x8)".parse().unwrap();
        let lines = |kept: Option<&[Filter]>| libraries(&stack, &Kept(kept)).join("\n");
        let both = lines(Some(&[Filter::Shuffle, Filter::Deflate(4)]));
        assert!(both.contains("chunks=(8, 8), compression=\"gzip\", compression_opts=4, shuffle=True"), "{both}");
        assert!(both.contains("compression=\"zlib\", complevel=4, shuffle=True"), "{both}");
        for other in [lines(Some(&[Filter::Lzf])), lines(None)] {
            assert_eq!(other.matches("and its filters as now").count(), 2, "{other}");
        }
        assert!(!lines(Some(&[])).contains("filters"));
    }

    #[test]
    fn stacks_are_told_in_other_words() {
        let hdf5 = of("async/hdf5(chunk=64x32,deflate=4,shuffle,cache=16MiB,align=1MiB)");
        for words in [
            "chunks=(64, 32), compression=\"gzip\", compression_opts=4, shuffle=True",
            "rdcc_nbytes=16777216, alignment_interval=1048576, alignment_threshold=65536",
            "chunksizes=(64, 32), compression=\"zlib\", complevel=4, shuffle=True",
            "set_var_chunk_cache(size=16777216)",
            "\"COMPRESS\": \"YES\", \"COMPRESS_FILTER\": \"GZIP\", \"CHUNK_DIM_1\": \"64\", \"CHUNK_DIM_2\": \"32\"",
            "\"ALIGN_LEN\": \"1048576\"",
            "\"MODE\": \"ASYNC\"",
            "hyperslab run --mode async",
        ] {
            assert!(hdf5.contains(words), "{words}: {hdf5}");
        }
        let zarr = of("zarr(chunk=8x8,shard=64x64,codec=zstd)");
        assert!(zarr.contains("chunks=(8, 8), shards=(64, 64), compressors=zarr.codecs.ZstdCodec()"), "{zarr}");
        assert!(!zarr.contains("h5bench") && zarr.contains("--stack"), "{zarr}");
    }

    #[test]
    fn what_is_in_one_piece_is_said_to_be() {
        let plain = of("twophase/hdf5");
        assert!(plain.contains("contiguous=True") && plain.contains("\"COLLECTIVE_DATA\": \"YES\""), "{plain}");
        assert!(plain.contains("with dataset.collective:") && plain.contains("set_collective(True)"), "{plain}");
        assert!(plain.contains("--transfers collective") && !plain.contains("hyperslab run"), "{plain}");
        assert!(of("hdf5(plane=on)").contains("hyperslab run --mode codec"));
    }

    #[test]
    fn several_shapes_are_chosen_by_the_number_of_dimensions() {
        let text = of("hdf5(chunk=1024;64x64)");
        assert!(text.contains("chunks={1: (1024,), 2: (64, 64)}[len(shape)]"), "{text}");
        assert!(!text.contains("CHUNK_DIM"), "{text}");
    }
}
