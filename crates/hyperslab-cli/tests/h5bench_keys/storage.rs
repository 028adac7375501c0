//! How arrays are stored: chunks, filters, alignment, limits, files per rank.

use crate::python::{and, check, particles};
use crate::workflow::{Workflow, pattern};
use serde_json::{Value, json};

/// Runs one write per row with 2 ranks and checks how its arrays are stored: file, kind, keys, what must be found.
fn stored(extent: &[u64], rows: &[(&str, &str, Value, Value)]) {
    let mut workflow = Workflow::default();
    for (name, kind, keys, _) in rows {
        workflow.add(kind, name, and(pattern(extent, 2), keys.clone()));
    }
    let ran = workflow.run(2, &[]);
    let shape = crate::workflow::file_shape(extent, 2);
    let jobs: Vec<Value> =
        rows.iter().map(|(name, _, _, found)| and(particles(ran.file(name), &shape, 2), found.clone())).collect();
    check(&jobs);
}

pub fn chunks_and_filters() {
    let fixed = json!([16, 6]);
    let as_found = |chunks: Value, filters: Value| json!({"chunks": chunks, "filters": filters, "maxshape": fixed});
    stored(
        &[8, 6],
        &[
            ("plain.h5", "write", json!({}), as_found(json!(null), json!([]))),
            // As in h5bench, CHUNK_DIM alone makes no chunks.
            ("alone.h5", "write", json!({"CHUNK_DIM_1": 4, "CHUNK_DIM_2": 3}), as_found(json!(null), json!([]))),
            ("no.h5", "write", json!({"CHUNK_DIM_1": 4, "COMPRESS": "NO"}), as_found(json!(null), json!([]))),
            (
                "compressed.h5",
                "write",
                json!({"CHUNK_DIM_1": 4, "CHUNK_DIM_2": 3, "COMPRESS": "YES"}),
                as_found(json!([4, 3]), json!(["deflate=9"])),
            ),
            (
                "compound.h5",
                "write",
                json!({"FILE_PATTERN": "INTERLEAVED", "CHUNK_DIM_1": "5", "CHUNK_DIM_2": "2", "COMPRESS": "Y"}),
                and(as_found(json!([5, 2]), json!(["deflate=9"])), json!({"layout": "compound"})),
            ),
            (
                "one.h5",
                "write",
                json!({"CHUNK_DIM_1": 4, "COMPRESS": "YES"}),
                as_found(json!([4, 1]), json!(["deflate=9"])),
            ),
            ("usual.h5", "write", json!({"COMPRESS": "YES"}), as_found(json!([8, 6]), json!(["deflate=9"]))),
            (
                "gzip.h5",
                "write",
                json!({"COMPRESS": "YES", "COMPRESS_FILTER": "GZIP"}),
                as_found(json!([8, 6]), json!(["deflate=9"])),
            ),
            (
                "chunked.h5",
                "write",
                json!({"CHUNKED": "YES", "CHUNK_DIM_1": 3, "CHUNK_DIM_2": 6}),
                as_found(json!([3, 6]), json!([])),
            ),
            (
                "shuffled.h5",
                "write",
                json!({"FILTERS": "shuffle,deflate=4", "CHUNK_DIM_1": 4, "CHUNK_DIM_2": 3}),
                as_found(json!([4, 3]), json!(["shuffle", "deflate=4"])),
            ),
            (
                "checked.h5",
                "write",
                json!({"FILTERS": "fletcher32", "CHUNK_DIM_1": 4, "CHUNK_DIM_2": 3}),
                as_found(json!([4, 3]), json!(["fletcher32"])),
            ),
            (
                "all.h5",
                "write",
                json!({"FILTERS": " shuffle , gzip , fletcher32 "}),
                as_found(json!([8, 6]), json!(["shuffle", "deflate=6", "fletcher32"])),
            ),
        ],
    );
    // Without CHUNK_DIM the longest extent is halved until a chunk has at most a mebibyte.
    let large = |chunk: u64| json!({"chunks": [chunk], "maxshape": [3 << 20], "filters": []});
    stored(
        &[3 << 19],
        &[
            ("large.h5", "write", json!({"CHUNKED": "YES", "TIMESTEPS": 1}), and(large(3 << 16), json!({"steps": 1}))),
            (
                "largest.h5",
                "write",
                json!({"CHUNKED": "YES", "TIMESTEPS": 1, "CHUNK_DIM_1": "1 M"}),
                and(large(1 << 20), json!({"steps": 1})),
            ),
        ],
    );
}

pub fn alignment() {
    let aligned = |yes: bool| json!({"align": 8192, "aligned": yes});
    let keys = |threshold: Value| json!({"ALIGN": "YES", "ALIGN_LEN": "8 K", "ALIGN_THRESHOLD": threshold});
    // 600 particles of 2 ranks: 4800 bytes an array, and 2400 a chunk.
    stored(
        &[600],
        &[
            ("yes.h5", "write", keys(json!(1)), aligned(true)),
            ("bytes.h5", "write", json!({"ALIGN": "YES", "ALIGN_LEN": 8192}), aligned(true)),
            ("at.h5", "write", keys(json!("4800")), aligned(true)),
            ("above.h5", "write", keys(json!(4801)), aligned(false)),
            ("without.h5", "write", json!({}), aligned(false)),
            ("no.h5", "write", and(keys(json!(1)), json!({"ALIGN": "NO"})), aligned(false)),
            ("chunks.h5", "write", and(keys(json!(2400)), json!({"CHUNKED": "YES"})), aligned(true)),
            ("small.h5", "write", and(keys(json!(2401)), json!({"CHUNKED": "YES"})), aligned(false)),
        ],
    );
}

pub fn unlimited() {
    let limits = |n: usize| json!({"maxshape": vec![Value::Null; n]});
    for extent in [&[12][..], &[4, 6], &[4, 3, 2]] {
        let chunk: Vec<u64> = extent.iter().map(|n| n / 2 + 1).collect();
        let keys: Value = (1..=3).zip(&chunk).map(|(d, n)| (format!("CHUNK_DIM_{d}"), json!(n))).collect();
        let found = |filters: Value| and(limits(extent.len()), json!({"chunks": chunk, "filters": filters}));
        stored(
            extent,
            &[
                (
                    "compressed.h5",
                    "write-unlimited",
                    and(keys.clone(), json!({"COMPRESS": "YES"})),
                    found(json!(["deflate=9"])),
                ),
                ("plain.h5", "write-unlimited", keys, found(json!([]))),
            ],
        );
    }
}

pub fn file_per_process() {
    let keys = and(pattern(&[10, 3], 2), json!({"FILE_PER_PROC": "YES"}));
    let mut workflow = Workflow::default();
    workflow.add("write", "own.h5", keys.clone()).add("read", "own.h5", keys.clone());
    workflow.add("write", "no.h5", and(keys, json!({"FILE_PER_PROC": "NO"})));
    let ran = workflow.run(3, &[]);
    for index in [0, 1] {
        assert_eq!(ran.case(index)["verified"], "yes");
        assert_eq!(ran.case(index)["bytes"], 10 * 3 * 32 * 2 * 3);
    }
    assert!(!ran.file("own.h5").exists() && !ran.file("rank_0_no.h5").exists());
    let mut jobs: Vec<Value> =
        (0..3).map(|rank| particles(ran.file(&format!("rank_{rank}_own.h5")), &[10, 3], 2)).collect();
    jobs.push(particles(ran.file("no.h5"), &[30, 3], 2));
    check(&jobs);
}
