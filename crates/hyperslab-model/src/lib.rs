//! Interpreter 2: counts what a workload makes a stack do, fits these counts to measured times, and predicts.
//! Nothing here touches storage.

mod configuration;
mod counts;
mod fit;
mod known_chunks;
mod layers;
mod paths;
mod pieces;
mod walk;

pub use configuration::{Class, Configuration, Counting};
pub use counts::{Count, Counts, Part};
pub use fit::{Fit, Interval, Method, Quality, Sample, leave_groups_out, non_negative};
pub use walk::{Costs, Work, count};
