//! A stack on `hdf5` in the words of h5py, netCDF4, the connector and h5bench.

use super::align_threshold;
use crate::python_words::{shapes, tuples, zlib};
use crate::registry::{ProgramWords, Surroundings};
use hyperslab_core::StackElement;

pub(super) fn settings(format: &StackElement, around: &Surroundings<'_>) -> ProgramWords {
    let direct = (format.get("plane") == Some("on")).then_some("codec");
    let modes: Vec<&str> = direct.into_iter().chain(around.connector_mode).collect();
    let connector = (!modes.is_empty() && !around.collective).then(|| {
        let modes = modes.join("+");
        format!("any program:  hyperslab run --mode {modes} -- python program.py     (docs/connector.md)")
    });
    ProgramWords { libraries: python(format, around), connector, benchmarks: vec![h5bench(format, around)] }
}

fn python(format: &StackElement, around: &Surroundings<'_>) -> Vec<String> {
    let together = around.collective;
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
    } else if let Some(Some((level, shuffle))) = around.kept.map(zlib) {
        let shuffle = if shuffle { "True" } else { "False" };
        keywords.push_str(&format!(", compression=\"gzip\", compression_opts={level}, shuffle={shuffle}"));
        net.push_str(&format!(", compression=\"zlib\", complevel={level}, shuffle={shuffle}"));
    } else if around.kept.is_none_or(|filters| !filters.is_empty()) {
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

fn h5bench(format: &StackElement, around: &Surroundings<'_>) -> String {
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
