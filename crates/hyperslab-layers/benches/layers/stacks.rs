//! Opening stacks for measurements, and statistics of them.

use hyperslab_comm::Solo;
use hyperslab_core::{Array, ArraySpec, Communicator, Container, Datatype, Format, OpenMode, Stack};
use std::path::Path;
use std::sync::Arc;

pub fn build(text: &str) -> Arc<dyn Format> {
    let stack: Stack = text.parse().unwrap();
    let bottom = hyperslab_formats::build(&stack.format).unwrap();
    hyperslab_layers::build(&stack, bottom).unwrap()
}

/// A new container with one array of bytes.
pub fn create(format: &dyn Format, path: &Path, shape: &[u64]) -> (Arc<dyn Container>, Arc<dyn Array>) {
    let comm: Arc<dyn Communicator> = Arc::new(Solo);
    let container = format.open(path, OpenMode::Truncate, &comm).unwrap();
    let array = container.create("a", &ArraySpec::new(Datatype::U8, shape)).unwrap();
    (container, array)
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
