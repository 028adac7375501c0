//! Files that are there already: overwritten and appended to.

use crate::python::{and, check, particles};
use crate::workflow::{Ran, Workflow, pattern};
use serde_json::{Value, json};

fn all_verified(ran: &Ran) {
    for case in ran.results["cases"].as_array().unwrap() {
        assert_eq!(case["verified"], "yes", "{case}");
    }
}

/// An overwrite has values of its own, made with the next seed; a later read knows it.
pub fn overwrite() {
    let mut jobs = Vec::new();
    let mut runs = Vec::new();
    for ranks in 1..=3 {
        let mut workflow = Workflow::default();
        let mut expected = Vec::new();
        for extent in [&[9][..], &[4, 3], &[2, 3, 2]] {
            for (layout, file) in [("arrays", "CONTIG"), ("compound", "INTERLEAVED")] {
                for times in 0..=2 {
                    let name = format!("{layout}-{}d-{times}.h5", extent.len());
                    let keys = and(pattern(extent, 2), json!({"FILE_PATTERN": file}));
                    workflow.add("write", &name, keys.clone());
                    (0..times).for_each(|_| {
                        let said = json!({"IO_OPERATION": "OVERWRITE", "READ_OPTION": "FULL"});
                        workflow.add("overwrite", &name, and(keys.clone(), said));
                    });
                    workflow.add("read", &name, keys);
                    expected.push((name, extent, layout, times));
                }
            }
        }
        let ran = workflow.run(ranks, &[]);
        all_verified(&ran);
        for (name, extent, layout, times) in expected {
            let seed = [1, 2, 3][times];
            let shape = crate::workflow::file_shape(extent, ranks);
            let more = json!({"layout": layout, "seeds": [[shape[0], seed]], "seed_attribute": seed});
            jobs.push(and(particles(ran.file(&name), &shape, 2), more));
        }
        runs.push(ran);
    }
    check(&jobs);
}

/// A file that grows by what all ranks have, once and twice.
fn appended(ranks: u64, times: usize, extent: &[u64], arguments: &[&str]) -> (Ran, Value) {
    let keys = pattern(extent, 2);
    let mut workflow = Workflow::default();
    workflow.add("write-unlimited", "a.h5", and(keys.clone(), json!({"CHUNK_DIM_1": 3})));
    (0..times).for_each(|_| {
        workflow.add("append", "a.h5", keys.clone());
    });
    workflow.add("read", "a.h5", keys.clone());
    let ran = workflow.run(ranks, arguments);
    all_verified(&ran);
    for index in 0..=times {
        assert_eq!(ran.case(index)["bytes"], extent.iter().product::<u64>() * ranks * 32 * 2);
    }
    let mut shape = crate::workflow::file_shape(extent, ranks);
    shape[0] *= 1 + times as u64;
    let job = and(particles(ran.file("a.h5"), &shape, 2), json!({"seed_attribute": 1}));
    (ran, job)
}

pub fn append() {
    let mut jobs = Vec::new();
    let mut runs = Vec::new();
    for ranks in [1, 2, 5] {
        for times in [1, 2] {
            for extent in [&[7][..], &[3, 4]] {
                let (ran, job) = appended(ranks, times, extent, &[]);
                assert_eq!(ran.err.contains("append: every rank adds DIM_1 of its own"), ranks > 1, "{}", ran.err);
                runs.push(ran);
                jobs.push(job);
            }
        }
    }
    // Appended, then overwritten: the first part is new, the rest as before, and no seed tells both.
    let keys = pattern(&[5], 2);
    let mut workflow = Workflow::default();
    workflow.add("write-unlimited", "m.h5", keys.clone()).add("append", "m.h5", keys.clone());
    workflow.add("overwrite", "m.h5", keys);
    let ran = workflow.run(2, &[]);
    let mixed = json!({"seeds": [[10, 2], [10, 1]], "seed_attribute": -1});
    jobs.push(and(particles(ran.file("m.h5"), &[20], 2), mixed));
    check(&jobs);
}

/// Every repetition starts from the same file, and none leaves anything beside it.
pub fn repeated() {
    let names = |ran: &Ran| {
        let entries = std::fs::read_dir(ran.data()).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| !path.join("stdout").is_file());
        let mut names: Vec<_> = files.map(|path| path.file_name().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let (once, once_job) = appended(2, 1, &[6], &[]);
    let (thrice, thrice_job) = appended(2, 1, &[6], &["--repeat", "3"]);
    assert_eq!(names(&thrice), ["a.h5"]);
    assert_eq!(names(&once), names(&thrice));
    let keys = pattern(&[8], 1);
    let mut workflow = Workflow::default();
    workflow.add("write", "o.h5", keys.clone()).add("overwrite", "o.h5", keys.clone()).add("read", "o.h5", keys);
    let overwritten = workflow.run(3, &["--repeat", "3", "--cold", "--warm"]);
    all_verified(&overwritten);
    assert_eq!(names(&overwritten), ["o.h5"]);
    for case in thrice.results["cases"].as_array().unwrap() {
        assert_eq!(case["repetitions"].as_array().unwrap().len(), 3, "{case}");
    }
    let same = json!({"kind": "same", "label": "repeated", "paths": [once.file("a.h5"), thrice.file("a.h5")]});
    let seed = json!({"seeds": [[24, 2]], "seed_attribute": 2});
    check(&[once_job, thrice_job, same, and(particles(overwritten.file("o.h5"), &[24], 1), seed)]);
}
