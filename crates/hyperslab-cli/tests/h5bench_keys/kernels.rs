//! The `metadata` and `exerciser` benchmarks.

use crate::program;
use crate::python::{and, check};
use crate::workflow::{Ran, Workflow};
use serde_json::{Value, json};

const STEPS: u64 = 2;
const ARRAYS: u64 = 3;

/// One way to store the same numbers: names of the arrays, outer extents, outer chunk extents, and which outer extent
/// may grow when there are chunks.
fn storage(rank: u64, slowest: &str) -> (Vec<String>, Vec<u64>, Vec<u64>, Option<usize>) {
    let all = |outer: u64, name: &dyn Fn(u64) -> String| (0..outer).map(name).collect::<Vec<_>>();
    match (rank, slowest) {
        (4, "step") => (vec!["dataset".into()], vec![STEPS, ARRAYS], vec![1, ARRAYS], Some(0)),
        (4, _) => (vec!["dataset".into()], vec![ARRAYS, STEPS], vec![ARRAYS, 1], Some(1)),
        (3, "step") => (all(STEPS, &|step| format!("step={step}")), vec![ARRAYS], vec![1], None),
        (3, _) => (all(ARRAYS, &|array| format!("array={array}")), vec![STEPS], vec![1], Some(0)),
        (_, slowest) => {
            let pairs = (0..STEPS).flat_map(|step| (0..ARRAYS).map(move |array| (step, array)));
            let name = |(step, array)| match slowest {
                "step" => format!("step={step}/array={array}"),
                _ => format!("array={array}/step={step}"),
            };
            (pairs.map(name).collect(), vec![], vec![], None)
        }
    }
}

pub fn metadata() {
    let mut workflow = Workflow::default();
    let mut expected = Vec::new();
    // Both have planes of 8 x 6 on 4 ranks, in tiles of 4 x 3 and of 2 x 6.
    let grids = [
        (json!({"rows": "4", "columns": 3, "process-rows": 2, "process-columns": "2", "scaling": "weak"}), [4, 3]),
        (json!({"rows": 8, "columns": 6, "process-rows": 4, "process-columns": 1, "scaling": "strong"}), [2, 6]),
    ];
    for (number, (grid, tile)) in grids.into_iter().enumerate() {
        for rank in [2, 3, 4] {
            for slowest in ["step", "array"] {
                for layout in ["contiguous", "chunked"] {
                    let name = format!("{number}-{rank}-{slowest}-{layout}.h5");
                    let transfer = if number == 0 { "independent" } else { "collective" };
                    let keys = json!({"version": 0, "steps": STEPS, "arrays": ARRAYS.to_string(), "dataset-rank": rank.to_string(),
                        "slowest-dimension": slowest, "layout": layout, "mpi-io": transfer, "csv-file": format!("{name}.csv")});
                    workflow.add("metadata", &name, and(grid.clone(), keys));
                    expected.push((name, rank, slowest, layout == "chunked", tile));
                }
            }
        }
    }
    let ran = workflow.run(4, &[]);
    let mut jobs = Vec::new();
    for (index, (name, rank, slowest, chunked, tile)) in expected.into_iter().enumerate() {
        for (case, word) in [(ran.case(2 * index), "metadata write"), (ran.case(2 * index + 1), "metadata read")] {
            assert_eq!((&case["benchmark"], &case["verified"]), (&json!(word), &json!("yes")), "{name}");
            assert_eq!(case["bytes"], STEPS * ARRAYS * 8 * 6 * 8, "{name}");
        }
        let (names, outer, outer_chunk, grows) = storage(rank, slowest);
        let shape = [&outer[..], &[8, 6]].concat();
        let chunk = chunked.then(|| [&outer_chunk[..], &tile[..]].concat());
        let mut limits = json!(shape);
        if let Some(grows) = grows.filter(|_| chunked) {
            limits[grows] = Value::Null;
        }
        let array = |name: &String| json!({"name": name, "dtype": "<f8", "shape": shape, "chunks": chunk, "maxshape": limits, "filters": []});
        let arrays: Vec<Value> = names.iter().map(array).collect();
        jobs.push(json!({"kind": "named", "label": name, "path": ran.file(&name), "arrays": arrays}));
        let text = csv(&ran, &format!("{name}.csv"));
        let cells: Vec<&str> = text.lines().nth(1).unwrap().split(',').collect();
        assert_eq!(cells.len(), 27, "{text}");
        assert_eq!((cells[0], cells[1], cells[7]), ("2", "3", slowest), "{text}");
        assert_eq!((cells[8], cells[9]), (rank.to_string().as_str(), if chunked { "chunked" } else { "contiguous" }));
        let size = std::fs::metadata(ran.file(&name)).unwrap().len();
        assert_eq!(cells[12], size.to_string(), "{text}");
    }
    check(&jobs);
}

fn csv(ran: &Ran, name: &str) -> String {
    let found = ran.run_directories().into_iter().map(|directory| directory.join(name)).find(|path| path.exists());
    std::fs::read_to_string(found.unwrap()).unwrap()
}

/// Workflows name no file for the exerciser; here several with names are kept apart.
pub fn exerciser() {
    let fields = ["total_blocks", "number_of_steps", "nxb", "nyb", "nzb", "time", "time_step", "reserved"];
    let compound: Vec<[&str; 2]> = fields.iter().map(|field| [*field, "<f8"]).collect();
    let doubles = |elements: u64, more: Value| {
        let name = format!("Data/hdf5DataSet1-iter0-size{elements}");
        and(json!({"name": name, "dtype": "<f8", "chunks": null, "filters": []}), more)
    };
    // Blocks of 2 x 2, 4 and 3 apart, on two ranks side by side: 8 x 6 elements of the file each, 4 x 4 written.
    let blocks: Vec<Value> = [0, 3, 6, 9]
        .iter()
        .flat_map(|column| [0, 4].map(|row| json!([[row, row + 2], [column, column + 2]])))
        .collect();
    let blocked =
        json!({"dimranks": "1 2", "fileblocks": "2 2", "filestrides": "4 3", "memblock": 2, "memstride": "3"});
    let derived =
        json!({"name": "Data/derivedData/simulation parameters", "dtype": compound, "shape": [8, 4], "chunks": null});
    let cases = [
        ("plain.h5", json!({}), json!([doubles(16, json!({"shape": [8, 4]}))]), json!({})),
        // Each size writes a file anew; the last stays.
        (
            "sizes.h5",
            json!({"nsizes": "2", "bufmult": "2 3", "rshift": 1, "indepio": "true"}),
            json!([doubles(96, json!({"shape": [16, 12]}))]),
            json!({}),
        ),
        ("blocks.h5", blocked.clone(), json!([doubles(24, json!({"shape": [8, 12], "blocks": blocks}))]), json!({})),
        (
            "chunks.h5",
            and(blocked, json!({"usechunked": "true", "derivedtype": "true"})),
            json!([
                doubles(24, json!({"shape": [8, 12], "blocks": blocks, "chunks": [2, 2]})),
                and(derived.clone(), json!({"shape": [4, 8], "chunks": [4, 4]}))
            ]),
            json!({}),
        ),
        (
            "more.h5",
            json!({"addattr": "true", "derivedtype": true, "metacoll": "true", "maxcheck": 1}),
            json!([doubles(16, json!({"shape": [8, 4]})), derived]),
            json!({"Data": 64}),
        ),
    ];
    let keys = |keep: &str, more: &Value| and(json!({"numdims": "2", "minels": "4 4", "keepfile": keep}), more.clone());
    let mut workflow = Workflow::default();
    for (name, more, ..) in &cases {
        workflow.add("exerciser", name, keys("true", more));
    }
    workflow.add("exerciser", "gone.h5", keys("false", &json!({"nsizes": 2})));
    let ran = workflow.run(2, &["--repeat", "2"]);
    let job = |(name, _, arrays, attributes): &(&str, Value, Value, Value)| {
        let path = ran.file(name);
        json!({"kind": "named", "label": name, "path": path, "arrays": arrays, "attributes": attributes})
    };
    let jobs: Vec<Value> = cases.iter().map(job).collect();
    assert!(!ran.file("gone.h5").exists());
    let bytes: Vec<u64> =
        ran.results["cases"].as_array().unwrap().iter().map(|case| case["bytes"].as_u64().unwrap()).collect();
    let rank = 16 * 8 * 2;
    let expected = [[1, 1], [1, 1], [6, 6], [1, 1], [9, 1], [9, 1], [1, 1], [4, 4]].concat();
    assert_eq!(bytes, expected.iter().map(|n| n * rank).collect::<Vec<u64>>());
    check(&jobs);
    checked_sizes();
}

/// The exerciser compares data unasked, except of buffers larger than maxcheck.
fn checked_sizes() {
    let mut workflow = Workflow::default();
    workflow.add("exerciser", "c.posix", json!({"numdims": 1, "minels": 16, "nsizes": 2, "maxcheck": "128"}));
    let directory = program::with(&workflow.text(2));
    let arguments = ["bench", "w.json", "--format", "posix", "--repeat", "1", "--out", "r"];
    let (code, out, err) = program::run(directory.path(), &arguments);
    assert_eq!(code, 0, "{out}\n{err}");
    let results = program::results(&directory.path().join("r/results.json"));
    let verified: Vec<&Value> = results["cases"].as_array().unwrap().iter().map(|case| &case["verified"]).collect();
    assert_eq!(verified, ["yes", "yes", "not_asked", "not_asked"]);
    assert!(!directory.path().join("data/c.posix").exists());
}
