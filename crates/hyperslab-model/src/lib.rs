//! Interpreter 2: counts what a workload makes a stack do, fits these counts to measured times, and predicts.
//! Nothing here touches storage.

mod configuration;
mod counts;
mod epochs;
mod evaluate;
mod fit;
mod footprint;
mod chunk_bitmap;
mod layers;
mod cost_models;
mod chunk_pieces;
mod predict;
mod profile;
mod contention;
mod counter;

pub use configuration::{Class, Configuration, Counting};
pub use counts::{Count, Counts, Part};
pub use epochs::{Epoch, Staging, saturating};
pub use evaluate::{Choice, Judgement, Run, judge};
pub use fit::{
    Bias, Fit, Fold, Interval, LeftOut, Method, Quality, Sample, folds_by_group, leave_out, non_negative,
};
pub use footprint::{Footprint, Stored, footprint};
pub use layers::{LayerCost, LayerUse, LayerWork};
pub use predict::{Prediction, predict};
pub use profile::{Alignment, MachineFacts, PROFILE_VERSION, Profile, Warmth, ordinary};
pub use contention::{Conditions, Contention, RankKind, ContentionCurve};
pub use counter::{Overlap, Costs, Work, count};
