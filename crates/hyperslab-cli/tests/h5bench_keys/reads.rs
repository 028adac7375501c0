//! Which particles READ_OPTION transfers, and that their bytes are counted truly.

use crate::patterns::{strided, strided_elements};
use crate::python::and;
use crate::workflow::{Workflow, pattern};
use serde_json::{Value, json};

/// Extents, keys, and particles of one rank in one time step.
fn options() -> Vec<(Vec<u64>, Value, u64)> {
    let blocks = |option: &str| json!({"READ_OPTION": option, "BLOCK_SIZE": 3, "BLOCK_SIZE_2": 2});
    let mut out = vec![
        (vec![40], json!({}), 40),
        (vec![40], json!({"READ_OPTION": "FULL"}), 40),
        (vec![8, 5], json!({"READ_OPTION": "FULL"}), 40),
        (vec![4, 3, 2], json!({"READ_OPTION": "FULL"}), 24),
        (vec![40], json!({"READ_OPTION": "PARTIAL", "TO_READ_NUM_PARTICLES": "7"}), 7),
        (vec![4096], json!({"READ_OPTION": "PARTIAL", "TO_READ_NUM_PARTICLES": "2 K"}), 2048),
        (vec![40], json!({"READ_OPTION": "PARTIAL"}), 40),
        (vec![40], json!({"READ_OPTION": "PARTIAL", "TO_READ_NUM_PARTICLES": 0}), 40),
        (vec![20, 10], blocks("LDC"), 2 * 3 * 2),
        (vec![20, 10], blocks("RDC"), 2 * 3 * 2),
        // Blocks that overlap count once.
        (vec![4, 3], blocks("LDC"), 2 * 3 * 2 - 2),
        (vec![20, 10], blocks("PRL"), 20 * 10 - (20 - 6) * (10 - 4)),
        // Four blocks fit along the first dimension, three along the second.
        (vec![20, 10], and(blocks("CS"), json!({"STRIDE_SIZE": 5, "STRIDE_SIZE_2": 4})), 3 * 3 * 2),
        // Steps that overlap by 2 x 1.
        (vec![5, 4], and(blocks("CS"), json!({"STRIDE_SIZE": 1, "STRIDE_SIZE_2": 1})), 3 * 6 - 2 * 2),
    ];
    for (extent, keys, part) in strided() {
        let elements = strided_elements(&part);
        out.push((extent.clone(), and(keys.clone(), json!({"READ_OPTION": "STRIDED"})), elements));
        out.push((extent, and(keys, json!({"FILE_PATTERN": "STRIDED"})), elements));
    }
    out
}

/// What `kind` transfers after a write of everything.
fn bytes(kind: &str, options: &[(Vec<u64>, Value, u64)], formats: &str) {
    for ranks in 1..=3 {
        let mut workflow = Workflow::default();
        for (number, (extent, keys, _)) in options.iter().enumerate() {
            let name = format!("{number}.posix");
            workflow.add("write", &name, pattern(extent, 3)).add(kind, &name, and(pattern(extent, 3), keys.clone()));
        }
        let ran = workflow.run(ranks, &["--format", formats]);
        let cases = ran.results["cases"].as_array().unwrap();
        assert_eq!(cases.len() % (2 * options.len()), 0);
        for (pair, (extent, keys, particles)) in cases.chunks(2).zip(options.iter().cycle()) {
            let what = format!("{ranks} ranks, {extent:?} {keys}");
            assert_eq!(pair[0]["bytes"], extent.iter().product::<u64>() * 32 * 3 * ranks, "{what}");
            let case = &pair[1];
            assert_eq!(
                (&case["bytes"], &case["verified"]),
                (&json!(particles * 32 * 3 * ranks), &json!("yes")),
                "{what}"
            );
            let (key, other) =
                if kind == "read" { ("bytes_read", "bytes_written") } else { ("bytes_written", "bytes_read") };
            for rank in case["repetitions"][0]["ranks"].as_array().unwrap() {
                assert_eq!((&rank[key], &rank[other]), (&json!(particles * 32 * 3), &json!(0)), "{what}");
            }
        }
    }
}

pub fn bytes_of_every_read_option() {
    bytes("read", &options(), if cfg!(feature = "hdf5") { "posix,hdf5" } else { "posix" });
}

/// The same parts, overwritten. TO_READ_NUM_PARTICLES belongs to reads.
pub fn bytes_of_partial_updates() {
    let mut options = options();
    options.retain(|(_, keys, _)| keys.get("TO_READ_NUM_PARTICLES").is_none());
    bytes("overwrite", &options, "posix");
}
