//! `hyperslab train`, `predict` and `advise`: what this machine costs, what a workload would take on it, and on which stack it
//! would take least.

mod advise;
mod metadata_ops;
mod candidates;
mod compressibility;
mod memcpy_probe;
mod evaluate;
mod inputs;
mod layer_costs;
mod layer_trials;
mod measured;
mod evaluation_report;
mod profile_path;
mod predict;
mod scored_stack;
mod reasons;
mod scatter_plot;
mod search;
mod settings;
mod sharing;
mod timings;
mod train;
mod measurement;
mod measurement_plan;
mod variants;
mod verify;

pub use advise::{ADVISE_EXAMPLES, AdviseOptions, run as advise};
pub use predict::{PREDICT_EXAMPLES, PredictOptions, run as predict};
pub use train::{TRAIN_EXAMPLES, TrainOptions, run as train};
