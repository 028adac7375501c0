//! What a machine costs, what a workload would take on it, and on which stack it would take least: the library behind
//! `hyperslab train`, `predict` and `advise`.
//!
//! [`Input`] is what is looked at, read as `bench` would; [`Search`] compares stacks for it, which [`reasons`] and [`settings`] put
//! into words. [`measure_all`] and [`fit`] make the profile of a machine, [`evaluate`] and [`held_back`] judge it.

pub mod bars_plot;
pub mod busy_machine;
mod call_floors;
mod candidates;
mod compressibility;
pub mod evaluate;
mod evaluation_report;
pub mod held_back;
mod held_back_cases;
mod inputs;
pub mod layer_costs;
mod layer_trials;
mod measured;
mod measurement;
mod measurement_plan;
mod memcpy_probe;
pub mod metadata_ops;
mod predicted;
pub mod profile_path;
pub mod python_calls;
pub mod reasons;
mod samples;
mod scatter_plot;
mod scored_stack;
mod search;
pub mod settings;
mod sharing;
pub mod thinned;
mod timings;
mod training;
mod variants;

pub use candidates::chunk_shapes;
pub use inputs::{Input, SearchSpace, check_ranks, estimate, results_file};
pub use measured::Bench;
pub use measurement::Measurement;
pub use measurement_plan::{Extent, trials};
pub use predicted::{Predicted, UNKNOWN_RANKS, guesses, seconds};
pub use samples::fit;
pub use scored_stack::{ScoredStack, ScoredWorkload, Sizes};
pub use search::Search;
pub use timings::{Timing, Timings};
pub use training::measure_all;
