//! `hyperslab train`, `predict` and `advise`: what this machine costs, what a workload would take on it, and on which stack it
//! would take least. The work is that of `hyperslab-advisor`; here are options, tables and words.

mod advise;
mod predict;
mod train;
mod verify;

pub use advise::{ADVISE_EXAMPLES, AdviseOptions, run as advise};
pub use predict::{PREDICT_EXAMPLES, PredictOptions, run as predict};
pub use train::{TRAIN_EXAMPLES, TrainOptions, run as train};
