//! Layouts in memory and in the file, extents, numbers.

use crate::program;
use crate::python::{and, check, particles};
use crate::workflow::{Workflow, file_shape, pattern};
use serde_json::{Value, json};

const EXTENTS: [&[u64]; 3] = [&[13], &[5, 4], &[3, 2, 5]];

fn layout(memory: &str, file: &str) -> &'static str {
    match (memory, file) {
        (_, "INTERLEAVED") => "compound",
        ("INTERLEAVED", _) => "one-field compounds",
        _ => "arrays",
    }
}

pub fn layouts_and_values() {
    let mut jobs = Vec::new();
    let mut runs = Vec::new();
    for ranks in 1..=3 {
        let mut workflow = Workflow::default();
        let mut expected = Vec::new();
        for extent in EXTENTS {
            for memory in ["CONTIG", "INTERLEAVED"] {
                for file in ["CONTIG", "INTERLEAVED"] {
                    let name = format!("{memory}-{file}-{}d.h5", extent.len());
                    let keys = and(pattern(extent, 2), json!({"MEM_PATTERN": memory, "FILE_PATTERN": file}));
                    workflow.add("write", &name, keys.clone()).add("read", &name, keys);
                    expected.push((name, extent, layout(memory, file)));
                }
            }
        }
        let ran = workflow.run(ranks, &[]);
        for case in ran.results["cases"].as_array().unwrap() {
            assert_eq!((&case["verified"], &case["ranks"]), (&json!("yes"), &json!(ranks)), "{case}");
        }
        jobs.extend(expected.into_iter().map(|(name, extent, layout)| {
            let shape = file_shape(extent, ranks);
            let more = json!({"layout": layout, "seed_attribute": 1, "chunks": null, "filters": [], "maxshape": shape});
            and(particles(ran.file(&name), &shape, 2), more)
        }));
        runs.push(ran);
    }
    assert_eq!(jobs.len(), 3 * 3 * 4);
    check(&jobs);
}

/// Keys of a strided transfer of each dimension, the file's extents per rank, and what must be written.
pub fn strided() -> [(Vec<u64>, Value, Value); 4] {
    let of = |stride: &[u64], count: &[u64], block: &[u64]| json!({"stride": stride, "count": count, "block": block});
    [
        (vec![20], json!({"STRIDE_SIZE": 6, "BLOCK_SIZE": 2, "BLOCK_CNT": 3}), of(&[6], &[3], &[2])),
        // Without BLOCK_CNT as many as fit; dimensions without keys whole.
        (vec![11, 3], json!({"STRIDE_SIZE": 4, "BLOCK_SIZE": 3}), of(&[4, 3], &[3, 1], &[3, 3])),
        (
            vec![6, 9],
            json!({"STRIDE_SIZE": 3, "BLOCK_SIZE": 1, "BLOCK_CNT": 1, "STRIDE_SIZE_2": 4, "BLOCK_SIZE_2": 2}),
            of(&[3, 4], &[1, 2], &[1, 2]),
        ),
        (
            vec![5, 4, 7],
            json!({"STRIDE_SIZE": 2, "BLOCK_SIZE": 1, "BLOCK_CNT": 2, "STRIDE_SIZE_2": 3, "BLOCK_SIZE_2": 1,
                "STRIDE_SIZE_3": 3, "BLOCK_SIZE_3": 2}),
            of(&[2, 3, 3], &[2, 2, 2], &[1, 1, 2]),
        ),
    ]
}

/// Elements that a strided transfer of one rank has.
pub fn strided_elements(part: &Value) -> u64 {
    let product = |key: &str| part[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).product::<u64>();
    product("count") * product("block")
}

pub fn strided_writes() {
    let mut jobs = Vec::new();
    let mut runs = Vec::new();
    for ranks in 1..=3 {
        let mut workflow = Workflow::default();
        let mut expected = Vec::new();
        for (number, (extent, keys, part)) in strided().into_iter().enumerate() {
            for memory in ["CONTIG", "INTERLEAVED"] {
                let name = format!("{memory}-{number}.h5");
                let keys = and(keys.clone(), json!({"MEM_PATTERN": memory, "FILE_PATTERN": "STRIDED"}));
                workflow.add("write", &name, and(pattern(&extent, 2), keys));
                expected.push((name, extent.clone(), memory, and(part.clone(), json!({"ranks": ranks}))));
            }
        }
        let ran = workflow.run(ranks, &[]);
        for (index, (name, extent, memory, part)) in expected.into_iter().enumerate() {
            let case = ran.case(index);
            assert_eq!(case["bytes"], strided_elements(&part) * 32 * 2 * ranks, "{name}");
            let more = json!({"layout": layout(memory, "STRIDED"), "written": part, "seed_attribute": 1, "part": true});
            jobs.push(and(particles(ran.file(&name), &file_shape(&extent, ranks), 2), more));
        }
        runs.push(ran);
    }
    check(&jobs);
}

pub fn numbers() {
    let mut workflow = Workflow::default();
    let one = |keys: Value| {
        let mut map = pattern(&[], 1);
        map.as_object_mut().unwrap().remove("NUM_DIMS");
        and(map, keys)
    };
    let cases = [
        ("plain.h5", json!({"DIM_1": "96"}), vec![96]),
        ("number.h5", json!({"DIM_1": 96}), vec![96]),
        ("kibi.h5", json!({"DIM_1": "2 K"}), vec![2048]),
        ("tight.h5", json!({"DIM_1": "2K"}), vec![2048]),
        ("mebi.h5", json!({"DIM_1": "1 M", "NUM_DIMS": 1}), vec![1 << 20]),
        ("legacy.h5", json!({"NUM_PARTICLES": "1 K"}), vec![1024]),
        // DIM_1 counts when both are there; extents that NUM_DIMS leaves out do not.
        ("both.h5", json!({"NUM_PARTICLES": "16 M", "DIM_1": 40, "DIM_2": 7}), vec![40]),
        // What is missing is 1, as in h5bench.
        ("missing.h5", json!({"NUM_DIMS": "2", "DIM_2": "6"}), vec![1, 6]),
    ];
    for (name, keys, _) in &cases {
        workflow.add("write", name, one(keys.clone()));
    }
    let ran = workflow.run(1, &[]);
    for note in ["DIM_2=7 has no effect", "DIM_1 is missing"] {
        assert!(ran.err.contains(note), "{note:?} is missing in {}", ran.err);
    }
    let jobs: Vec<Value> = cases.iter().map(|(name, _, shape)| particles(ran.file(name), shape, 1)).collect();
    check(&jobs);
}

pub fn order_and_form_of_keys() {
    // NUM_DIMS last, ENV_METADATA_FILE after CSV_FILE: h5bench would ignore or truncate. Text, numbers and booleans.
    let files = [
        r#""MODE": "SYNC", "MEM_PATTERN": "INTERLEAVED", "FILE_PATTERN": "CONTIG", "TIMESTEPS": "2", "NUM_DIMS": "2",
            "DIM_1": "8", "DIM_2": "6", "COMPRESS": "YES", "CHUNK_DIM_1": "4", "CHUNK_DIM_2": "3", "COLLECTIVE_DATA": "YES""#,
        r#""CHUNK_DIM_2": 3, "CHUNK_DIM_1": 4, "COMPRESS": true, "COLLECTIVE_DATA": true, "DIM_2": 6, "DIM_1": 8, "NUM_DIMS": 2,
            "TIMESTEPS": 2, "FILE_PATTERN": "contig", "MEM_PATTERN": "interleaved", "MODE": "sync""#,
    ];
    let benchmark = |(n, keys): (usize, &str)| {
        format!(r#"{{"configuration": {{{keys}}}, "file": "{n}.h5", "benchmark": "write"}}"#)
    };
    let list: Vec<String> = files.into_iter().enumerate().map(benchmark).collect();
    let text = format!(r#"{{"benchmarks": [{}], "directory": "data", "mpi": {{"ranks": 2}}}}"#, list.join(","));
    let directory = program::with(&text);
    let (code, out, err) = program::run(directory.path(), &["bench", "w.json", "--verify"]);
    assert_eq!(code, 0, "{out}\n{err}");
    let path = |n: usize| directory.path().join(format!("data/{n}.h5"));
    let layout = json!({"layout": "one-field compounds", "chunks": [4, 3], "filters": ["deflate=9"]});
    check(&[
        json!({"kind": "same", "label": "order", "paths": [path(0), path(1)]}),
        and(particles(path(0), &[16, 6], 2), layout),
    ]);
}

/// Ranks with normally distributed numbers of particles, under both names of the benchmark.
pub fn different_amounts() {
    let keys = and(pattern(&[100, 3], 2), json!({"STDEV_DIM_1": 20, "CSV_FILE": "n.csv"}));
    let mut workflow = Workflow::default();
    workflow.add("write_var_normal_dist", "a.h5", keys.clone()).add("write_normal_dist", "b.h5", keys);
    let ran = workflow.run(5, &[]);
    assert!(ran.err.contains("write_normal_dist is taken for write_var_normal_dist"), "{}", ran.err);
    let ranks: Vec<u64> = ran.case(0)["repetitions"][0]["ranks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rank| rank["bytes_written"].as_u64().unwrap())
        .collect();
    let per_row = 32 * 3 * 2;
    assert!(ranks.iter().all(|bytes| bytes % per_row == 0 && *bytes > 0), "{ranks:?}");
    let rows: Vec<u64> = ranks.iter().map(|bytes| bytes / per_row).collect();
    assert!(rows.iter().any(|n| *n != rows[0]), "{rows:?}");
    assert!(rows.iter().all(|n| (1..=200).contains(n)), "five deviations: {rows:?}");
    let total: u64 = rows.iter().sum();
    assert_eq!(ran.case(0)["bytes"], total * per_row);
    let mean = total as f64 / 5.0;
    let deviation = (rows.iter().map(|n| (*n as f64 - mean).powi(2)).sum::<f64>() / 5.0).sqrt();
    let directories = ran.run_directories();
    assert_eq!(directories.len(), 2);
    for directory in directories {
        let csv = std::fs::read_to_string(directory.join("n.csv")).unwrap();
        for row in [
            "operation, write_var_normal_dist, ".to_owned(),
            "Total number of particles, 0M, ".into(),
            format!("Final mean particles, {}, ", mean as u64),
            format!("Final standard deviation, {deviation:.6}, "),
        ] {
            assert!(csv.lines().any(|line| line == row), "{row:?} is missing in\n{csv}");
        }
    }
    let jobs: Vec<Value> = ["a.h5", "b.h5"].iter().map(|name| particles(ran.file(name), &[total, 3], 2)).collect();
    check(&jobs);
}

pub fn memory_limit() {
    // 1024 particles of 32 bytes: as many bytes as the limit are too many, as in h5bench.
    for (limit, code) in [("32 K", 2), ("32769", 0), ("0", 0), ("1", 2)] {
        let mut workflow = Workflow::default();
        workflow.add("write", "a.h5", and(pattern(&[1024], 1), json!({"IO_MEM_LIMIT": limit})));
        let directory = program::with(&workflow.text(2));
        let (found, out, err) = program::run(directory.path(), &["bench", "w.json"]);
        assert_eq!(found, code, "{limit}: {out}\n{err}");
        assert_eq!(err.contains("IO_MEM_LIMIT"), code == 2, "{err}");
        assert_eq!(directory.path().join("data/a.h5").exists(), code == 0);
    }
}
