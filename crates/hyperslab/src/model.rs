//! `hyperslab train`, `predict` and `advise`: what this machine costs, what a workload would take on it, and on which stack it
//! would take least.

mod advise;
mod candidates;
mod evaluate;
mod inputs;
mod measured;
mod page;
mod place;
mod predict;
mod scatter;
mod settings;
mod timings;
mod train;
mod trial;
mod trials;

pub use advise::{ADVISE_EXAMPLES, AdviseOptions, run as advise};
pub use predict::{PREDICT_EXAMPLES, PredictOptions, run as predict};
pub use train::{TRAIN_EXAMPLES, TrainOptions, run as train};
