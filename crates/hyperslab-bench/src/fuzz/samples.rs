//! Good workflows with every key, and values to put into them.

use proptest::prelude::*;
use proptest::sample::select;

/// One benchmark. Values are JSON; keys may repeat.
#[derive(Debug, Clone)]
pub struct Entry {
    pub kind: &'static str,
    pub file: String,
    pub keys: Vec<(String, String)>,
}

/// What all patterns have.
const PATTERN: &str = r#"MODE "SYNC" MEM_PATTERN "CONTIG" FILE_PATTERN "CONTIG" TIMESTEPS "3" NUM_DIMS 2 DIM_1 40 DIM_2 30
    NUM_PARTICLES 9 EMULATED_COMPUTE_TIME_PER_TIMESTEP 1 DELAYED_CLOSE_TIMESTEPS 2 IO_MEM_LIMIT 0 COLLECTIVE_DATA "YES"
    COLLECTIVE_METADATA "NO" CSV_FILE "o.csv" ENV_METADATA_FILE "e.txt" SUBFILING "NO""#;
const STORED: &str = r#"COMPRESS "YES" CHUNK_DIM_1 20 CHUNK_DIM_2 10 CHUNK_DIM_3 1 ALIGN "YES" ALIGN_LEN 4096 ALIGN_THRESHOLD 1
    CHUNKED "NO" DIM_3 5 COMPRESS_FILTER "GZIP" FILE_PER_PROC "NO""#;
const BLOCKS: &str =
    r#"STRIDE_SIZE 10 STRIDE_SIZE_2 9 STRIDE_SIZE_3 8 BLOCK_SIZE 4 BLOCK_SIZE_2 3 BLOCK_SIZE_3 2 BLOCK_CNT 3"#;
const METADATA: &str = r#"version 0 steps 20 arrays 10 rows 4 columns 6 process-rows 2 process-columns 2 scaling "weak" dataset-rank 4
    slowest-dimension "step" layout "chunked" mpi-io "independent" csv-file "m.csv""#;
const EXERCISER: &str = r#"numdims 2 minels [8,8] nsizes 3 bufmult [2,2] dimranks [2,2] maxcheck 100 memblock 4 memstride 5
    fileblocks [2,2] filestrides [3,3] rshift 1 keepfile "true" usechunked "true" indepio "true" addattr "true"
    derivedtype "true" metacoll "true""#;

fn entry(kind: &'static str, lists: &[&str]) -> Entry {
    let words: Vec<&str> = lists.iter().flat_map(|list| list.split_whitespace()).collect();
    let keys = words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect();
    Entry { kind, file: "f.h5".into(), keys }
}

/// At least one of every kind and way.
pub fn entries() -> Vec<Entry> {
    let strided = r#"FILE_PATTERN "STRIDED""#;
    let mut out = vec![
        entry("write", &[PATTERN, STORED]),
        entry("write", &[PATTERN, r#"MEM_PATTERN "INTERLEAVED" FILTERS "shuffle,deflate=4""#]),
        entry("write", &[PATTERN, r#"FILE_PATTERN "INTERLEAVED" FILE_PER_PROC "YES" IO_OPERATION "WRITE""#]),
        entry("write", &[PATTERN, BLOCKS, strided]),
        entry("write-unlimited", &[PATTERN, STORED]),
        entry("write_var_normal_dist", &[PATTERN, "STDEV_DIM_1 7"]),
        entry("write_normal_dist", &[PATTERN, BLOCKS, strided, "STDEV_DIM_1 2"]),
        entry("overwrite", &[PATTERN]),
        entry("append", &[PATTERN]),
        entry("read", &[PATTERN, BLOCKS, strided]),
        entry("read", &[PATTERN, r#"NUM_DIMS 1 READ_OPTION "PARTIAL" TO_READ_NUM_PARTICLES 3"#]),
        entry("metadata", &[METADATA]),
        entry("exerciser", &[EXERCISER]),
        entry("macsio", &[]),
    ];
    for option in ["FULL", "STRIDED", "LDC", "RDC", "PRL", "CS"] {
        out.push(entry("read", &[PATTERN, BLOCKS, &format!("READ_OPTION \"{option}\"")]));
    }
    out.push(entry("overwrite", &[PATTERN, BLOCKS, r#"READ_OPTION "CS""#]));
    out
}

pub fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<&str> = entries().iter().map(|entry| entry.kind).collect();
    kinds.dedup();
    kinds
}

/// Every key of every kind.
pub fn all_keys() -> Vec<&'static str> {
    let more = ["mpi", "vol", "file-system", "directory", "benchmarks", "benchmark", "file", "configuration"];
    let more =
        more.into_iter().chain(["FILTERS", "STDEV_DIM_1", "READ_OPTION", "TO_READ_NUM_PARTICLES", "IO_OPERATION"]);
    let lists = [PATTERN, STORED, BLOCKS, METADATA, EXERCISER];
    lists.iter().flat_map(|list| list.split_whitespace().step_by(2)).chain(more).collect()
}

/// The text of a workflow. `mpi` is that block.
pub fn workflow(entries: &[Entry], mpi: &str) -> String {
    let written = |entry: &Entry| {
        let keys: Vec<String> = entry.keys.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        let file = serde_json::Value::from(entry.file.as_str());
        format!(r#"{{"benchmark":"{}","file":{file},"configuration":{{{}}}}}"#, entry.kind, keys.join(","))
    };
    let list: Vec<String> = entries.iter().map(written).collect();
    format!(r#"{{"mpi":{mpi},"vol":{{}},"file-system":{{}},"directory":"d","benchmarks":[{}]}}"#, list.join(","))
}

/// Numbers as people write them, small, at every edge, and any.
pub fn number() -> impl Strategy<Value = String> {
    let edges = vec![
        1 << 16,
        1 << 20,
        (1 << 24) + 1,
        (1 << 31) - 1,
        1 << 31,
        1 << 32,
        1 << 40,
        1 << 52,
        1 << 58,
        1 << 59,
        1 << 62,
        i64::MAX as u64 / 4,
        i64::MAX as u64 - 1,
        i64::MAX as u64,
        1 << 63,
        u64::MAX / 32,
        u64::MAX - 1,
        u64::MAX,
    ];
    let value = prop_oneof![
        4 => 0u64..12,
        3 => 0u64..5000,
        3 => select(edges),
        1 => any::<u64>(),
        1 => (0u32..64).prop_map(|power| 1 << power),
    ];
    let unit = select(vec!["", "", " K", " M", " G", " T", " ms", " min", " s"]);
    (value, unit, any::<bool>()).prop_map(|(value, unit, text)| {
        if text || !unit.is_empty() { format!("\"{value}{unit}\"") } else { value.to_string() }
    })
}

/// JSON that hardly any key expects.
pub fn strange_value() -> impl Strategy<Value = String> {
    let mut values: Vec<String> = [
        "null",
        "true",
        "false",
        "-1",
        "0",
        "1.5",
        "-0.0",
        "1e300",
        "1e-300",
        "-9223372036854775808",
        "18446744073709551616",
        "99999999999999999999999999999999999999",
        "[]",
        "{}",
        "[[[[[1]]]]]",
        "[1,-1]",
        "[1,2]",
        "[null]",
        r#"{"a":{"b":[]}}"#,
        r#""""#,
        r#"" ""#,
        r#""9999999999999 T""#,
        r#""16777215 T""#,
        r#""8388607 T""#,
        r#""-1 K""#,
        r#""1 K K""#,
        r#""0x10""#,
        r#""1e9""#,
        r#""NaN""#,
        r#""YES""#,
        r#""no""#,
        r#""CONTIG""#,
        r#""INTERLEAVED""#,
        r#""STRIDED""#,
        r#""PARTIAL""#,
        r#""CS""#,
        r#""ASYNC""#,
        r#""deflate=9,deflate=9""#,
        r#""=,=,""#,
        r#""zstd=255""#,
        r#""\u0000""#,
        r#""..""#,
        r#""a/b""#,
        r#""é ß 🦀 \u202e \ud83e\udd80""#,
        r#""١٢٣""#,
        r#""1 ""#,
        r#""\n""#,
        r#""20 us""#,
        r#""18446744073709551615 s""#,
    ]
    .map(str::to_owned)
    .into();
    values.push(format!("\"{}\"", "x".repeat(50_000)));
    values.push(format!("\"{}\"", "9".repeat(50_000)));
    values.push(format!("\"{}\"", "1 ".repeat(20_000)));
    values.push(format!("\"{}\"", "shuffle,".repeat(20_000)));
    values.push(format!("[{}1]", "1,".repeat(20_000)));
    select(values)
}

pub fn file_name() -> impl Strategy<Value = String> {
    let names =
        ["", ".", "..", "../x", "/x", "a/b.h5", "a//b", "\0", "é🦀", " ", "a\nb", "-f", "a.h5.", ".h5", "x.zarr"];
    let mut names: Vec<String> = names.map(str::to_owned).into();
    names.push("long/".repeat(2000));
    names.push("n".repeat(5000));
    select(names)
}

/// What JSON and configurations are made of.
pub fn marks() -> Vec<char> {
    "{}[]\",:\\ 0123456789.-+eETKMG=_\n\u{feff}\u{2028}".chars().collect()
}
