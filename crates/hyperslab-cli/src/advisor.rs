//! `hyperslab train`, `predict` and `advise`: what this machine costs, what a workload would take on it, and on which stack it
//! would take least.

mod advise;
mod candidates;
mod compressibility;
mod evaluate;
mod evaluation_report;
mod inputs;
mod layer_costs;
mod layer_trials;
mod measured;
mod measurement;
mod measurement_plan;
mod memcpy_probe;
mod metadata_ops;
mod predict;
pub(crate) mod profile_path;
mod reasons;
mod scatter_plot;
mod scored_stack;
mod search;
mod settings;
mod sharing;
mod timings;
mod train;
mod variants;
mod verify;

pub use advise::{ADVISE_EXAMPLES, AdviseOptions, run as advise};
pub use inputs::estimate;
pub use predict::{PREDICT_EXAMPLES, PredictOptions, run as predict};
pub use train::{TRAIN_EXAMPLES, TrainOptions, run as train};
