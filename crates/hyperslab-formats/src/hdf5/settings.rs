//! A stack on `hdf5` in the words of h5py, netCDF4, the connector and h5bench.

use super::align_threshold;
use crate::python_words::{shapes, tuples};
use crate::registry::Surroundings;
use hyperslab_core::StackElement;

pub(super) fn settings(format: &StackElement, around: &Surroundings) -> Vec<String> {
    let mut out = python(format, around.collective);
    let direct = (format.get("plane") == Some("on")).then_some("codec");
    let modes: Vec<&str> = direct.into_iter().chain(around.connector_mode).collect();
    if !modes.is_empty() {
        let modes = modes.join("+");
        out.push(format!("any program:  hyperslab run --mode {modes} -- python program.py     (docs/connector.md)"));
    }
    out.push(h5bench(format, around));
    out
}

fn python(format: &StackElement, together: bool) -> Vec<String> {
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
    } else if !chunked {
        net.push_str(", contiguous=True");
    }
    let size = |key: &str| format.size(key).ok().flatten();
    let mut file = String::new();
    if let Some(bytes) = size("cache") {
        file.push_str(&format!(", rdcc_nbytes={bytes}"));
    }
    if let Some(bytes) = size("align") {
        let threshold = align_threshold(size("align_threshold"), bytes);
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

fn h5bench(format: &StackElement, around: &Surroundings) -> String {
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
        let threshold = align_threshold(format.size("align_threshold").ok().flatten(), bytes);
        key("ALIGN", "YES");
        key("ALIGN_LEN", &bytes.to_string());
        key("ALIGN_THRESHOLD", &threshold.to_string());
    }
    key("MODE", around.h5bench_mode.unwrap_or("SYNC"));
    if around.collective {
        key("COLLECTIVE_DATA", "YES");
    }
    let said: Vec<String> = keys.iter().map(|(name, value)| format!("\"{name}\": \"{value}\"")).collect();
    let own = keys.iter().any(|(name, value)| name == "CHUNKED" || value == "LOG");
    let note = if own { "     (CHUNKED and MODE=LOG: hyperslab bench only)" } else { "" };
    format!("h5bench:      {}{note}", said.join(", "))
}
