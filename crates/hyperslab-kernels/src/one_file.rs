//! How a kernel with one shared container begins and ends.

use hyperslab_core::workload::{SEED_ATTRIBUTE, Step};
use hyperslab_core::{Attribute, Durability, OpenMode};

/// Creates the container and says in it with which seed its data are made.
pub fn create(seed: u64) -> Vec<Step> {
    vec![Step::Barrier, Step::OpenFile { file: 0, how: OpenMode::Create }, seed_tag(seed as i64)]
}

/// Says in the container with which seed its data are made.
pub fn seed_tag(seed: i64) -> Step {
    let value = Attribute::integer(seed);
    Step::Attribute { file: 0, object: "".into(), name: SEED_ATTRIBUTE.into(), value }
}

/// Opens the container to read.
pub fn open() -> Vec<Step> {
    vec![Step::Barrier, Step::OpenFile { file: 0, how: OpenMode::Read }]
}

/// Ends a write.
pub fn flush_and_close() -> Vec<Step> {
    vec![Step::Barrier, Step::Flush { file: 0, how: Durability::Visible }, Step::CloseFile { file: 0 }, Step::Barrier]
}

/// Ends a read.
pub fn close() -> Vec<Step> {
    vec![Step::Barrier, Step::CloseFile { file: 0 }, Step::Barrier]
}
