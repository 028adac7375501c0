//! Time steps, compute time and late closing.

use crate::python::{and, check, particles};
use crate::workflow::{Workflow, pattern};
use serde_json::{Value, json};

/// Whatever the delay, all arrays are there and closed.
pub fn delayed_close() {
    let mut workflow = Workflow::default();
    let cases: Vec<(String, u64)> = [(1, 0), (5, 0), (5, 2), (5, 4), (5, 9), (1, 3)]
        .iter()
        .map(|(steps, delay)| {
            let name = format!("{steps}-{delay}.h5");
            let keys = and(pattern(&[6], *steps), json!({"DELAYED_CLOSE_TIMESTEPS": delay.to_string()}));
            workflow.add("write", &name, keys.clone()).add("read", &name, keys);
            (name, *steps)
        })
        .collect();
    let ran = workflow.run(2, &["--samples"]);
    for (index, (name, steps)) in cases.iter().enumerate() {
        for case in [ran.case(2 * index), ran.case(2 * index + 1)] {
            assert_eq!(case["bytes"], 6 * 2 * 32 * steps, "{name}");
            assert_eq!(case["verified"], "yes", "{name}");
        }
    }
    // The first arrays are closed after the transfers of as many further steps, each of 8 arrays.
    for (index, transfers_before_close) in [(1, 8), (2, 24), (3, 40), (4, 40)] {
        for (case, word) in [(2 * index + 1, "write"), (2 * index + 2, "read")] {
            let samples = ran.sample_operations(case);
            let close = samples.iter().position(|operation| operation == "close_array").unwrap();
            let before = samples[..close].iter().filter(|operation| *operation == word).count();
            assert_eq!(before, transfers_before_close, "case {case}: {samples:?}");
        }
    }
    let jobs: Vec<Value> = cases.iter().map(|(name, steps)| particles(ran.file(name), &[12], *steps)).collect();
    check(&jobs);
}

/// Compute time lies between the steps, none after the last, and is not counted as I/O.
pub fn compute() {
    let mut workflow = Workflow::default();
    let cases = [
        ("200 ms", 3, 0.4),
        ("100ms", 2, 0.1),
        ("50000 us", 3, 0.1),
        ("1 s", 2, 1.0),
        ("1", 2, 1.0),
        ("1 seconds", 1, 0.0),
        ("10 min", 1, 0.0),
    ];
    for (n, (time, steps, _)) in cases.iter().enumerate() {
        let keys = and(pattern(&[4], *steps), json!({"EMULATED_COMPUTE_TIME_PER_TIMESTEP": time, "CSV_FILE": "c.csv"}));
        workflow.add("write", &format!("{n}.posix"), keys.clone());
        if n == 0 {
            workflow.add("read", "0.posix", keys);
        }
    }
    let ran = workflow.run(2, &["--format", "posix"]);
    let expected = [cases[0]].into_iter().chain(cases);
    for ((time, _, least), case) in expected.zip(ran.results["cases"].as_array().unwrap()) {
        for rank in case["repetitions"][0]["ranks"].as_array().unwrap() {
            let seconds = |key: &str| rank[key].as_f64().unwrap();
            let compute = seconds("compute");
            assert!(compute >= least && compute < least + 5.0, "{time}: {compute}");
            assert!(seconds("wall") >= compute + seconds("raw"), "{time}: {rank}");
            // The ranks' pauses are not equally long, so observed time may exceed the difference a little.
            assert!(seconds("observed") <= seconds("wall") - compute + least / 2.0 || least == 0.0, "{time}: {rank}");
        }
    }
    let compute_of = |csv: &str| -> f64 {
        let row = csv.lines().find_map(|line| line.strip_prefix("total compute time, ")).unwrap();
        row.strip_suffix(", seconds").unwrap().parse().unwrap()
    };
    let mut found: Vec<f64> = ran
        .run_directories()
        .iter()
        .map(|directory| compute_of(&std::fs::read_to_string(directory.join("c.csv")).unwrap()))
        .collect();
    found.sort_by(f64::total_cmp);
    let wanted = [0.0, 0.0, 0.1, 0.1, 0.4, 0.4, 1.0, 1.0];
    assert!(found.len() == 8 && found.iter().zip(wanted).all(|(f, w)| *f >= w && *f < w + 5.0), "{found:?}");
}
