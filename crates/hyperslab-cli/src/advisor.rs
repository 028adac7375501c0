//! `hyperslab train`, `predict` and `advise`: what this machine costs, what a workload would take on it, and on which stack it
//! would take least.

mod advise;
mod bars_plot;
mod busy_machine;
mod call_floors;
mod candidates;
mod compressibility;
mod evaluate;
mod evaluation_report;
mod held_back;
mod held_back_cases;
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
mod python_calls;
mod reasons;
mod scatter_plot;
mod scored_stack;
mod search;
mod settings;
mod sharing;
mod thinned;
mod timings;
mod train;
mod variants;
mod verify;

pub use advise::{ADVISE_EXAMPLES, AdviseOptions, run as advise};
pub use busy_machine::is_busy as busy_machine;
pub use candidates::chunk_shapes;
pub use inputs::estimate;
pub use predict::{PREDICT_EXAMPLES, PredictOptions, run as predict};
pub use profile_path::{facts, load as load_profile, usual as usual_profile};
pub use train::{TRAIN_EXAMPLES, TrainOptions, run as train};
