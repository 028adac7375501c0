//! `hyperslab train`, `predict` and `advise`: what this machine costs, what a workload would take on it, and on which stack it
//! would take least.

mod advise;
mod beside;
mod candidates;
mod compressibility;
mod copying;
mod evaluate;
mod inputs;
mod layer_costs;
mod layer_trials;
mod measured;
mod page;
mod place;
mod predict;
mod ranked;
mod reasons;
mod scatter;
mod search;
mod settings;
mod sharing;
mod timings;
mod train;
mod trial;
mod trials;
mod variants;
mod verify;

pub use advise::{ADVISE_EXAMPLES, AdviseOptions, run as advise};
pub use predict::{PREDICT_EXAMPLES, PredictOptions, run as predict};
pub use train::{TRAIN_EXAMPLES, TrainOptions, run as train};
