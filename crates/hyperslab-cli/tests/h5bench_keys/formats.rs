//! One workflow on several formats.

use crate::python::{and, check, particles};
use crate::workflow::{Workflow, pattern};
use serde_json::{Value, json};

pub fn same_values_in_all() {
    let mut workflow = Workflow::default();
    let mut expected = Vec::new();
    for (layout, memory, file) in [
        ("arrays", "CONTIG", "CONTIG"),
        ("compound", "INTERLEAVED", "INTERLEAVED"),
        ("one-field compounds", "INTERLEAVED", "CONTIG"),
    ] {
        let keys = and(pattern(&[6, 5], 2), json!({"MEM_PATTERN": memory, "FILE_PATTERN": file}));
        let name = layout.replace(' ', "-");
        workflow.add("write", &format!("{name}.h5"), keys.clone()).add("read", &format!("{name}.h5"), keys);
        expected.push((layout, name));
    }
    let formats: &[(&str, &str)] = &[("hdf5", "h5"), ("zarr", "zarr"), ("posix", "posix")];
    let formats: Vec<_> = formats.iter().filter(|(format, _)| cfg!(feature = "zarr") || *format != "zarr").collect();
    // A chunk for each rank: what ranks in other processes write of one, zarr refuses.
    let stack = |format: &str| if format == "zarr" { "zarr(chunk=6x5)".to_owned() } else { format.to_owned() };
    let list: Vec<String> = formats.iter().map(|(format, _)| stack(format)).collect();
    let ran = workflow.run(3, &["--stack", &list.join(",")]);
    assert_eq!(ran.results["cases"].as_array().unwrap().len(), list.len() * 6);
    let mut jobs: Vec<Value> = Vec::new();
    for (layout, name) in &expected {
        for (format, extension) in &formats {
            let job = particles(ran.file(&format!("{name}.{extension}")), &[18, 5], 2);
            jobs.push(and(job, json!({"format": format, "layout": layout, "seed_attribute": 1})));
        }
    }
    check(&jobs);
}
