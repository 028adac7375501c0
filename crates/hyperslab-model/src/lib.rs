//! Interpreter 2: counts what a workload makes a stack do, fits these counts to measured times, and predicts.
//! Nothing here touches storage.

mod chunk_bitmap;
mod chunk_pieces;
mod configuration;
mod contention;
mod cost_models;
mod counter;
mod counts;
mod epochs;
mod evaluate;
mod fit;
mod footprint;
mod layers;
mod predict;
mod profile;
mod python_costs;

pub use configuration::{Class, Configuration, Counting};
pub use contention::{Conditions, Contention, ContentionCurve, RankKind};
pub use counter::{Costs, Overlap, Work, count};
pub use counts::{Count, Counts, Part};
pub use epochs::{Epoch, Staging, saturating};
pub use evaluate::{Choice, Judgement, ScoredRun, judge};
pub use fit::{Bias, Fit, Fold, Interval, LeftOut, Method, Quality, Sample, folds_by_group, leave_out, non_negative};
pub use footprint::{Footprint, Stored, footprint};
pub use layers::{LayerCost, LayerUse, LayerWork};
pub use predict::{Prediction, predict, seconds_of_transfers};
pub use profile::{Alignment, MachineFacts, PROFILE_VERSION, Profile, default_coefficients, least};
pub use python_costs::{PythonCosts, PythonLibrary, seconds_in_python};
