//! Interpreter 3: plays a workload on a described system with a striped parallel file system. Pure: no I/O, no threads.

mod bottleneck;
mod builtin;
mod calibrate;
mod calibration;
mod extent_locks;
mod fair_sharing;
mod file_layout;
mod flow_classes;
mod judgement;
mod layer_effects;
mod load;
mod published_claims;
mod published_tables;
mod reproduction;
mod rescale;
mod simulation;
mod stage;
mod stripe_placement;
mod system;
mod timing;
mod uncertainty;
mod walk;

pub use bottleneck::{Gain, ResourceUse, RunLimits, limits};
pub use builtin::{builtin, builtin_names, template};
pub use calibrate::{Fitted, MeasuredRun, fit};
pub use calibration::{Calibrated, CalibratedRow, CalibrationRun, FEWEST_RUNS, calibrate, conformal_factor};
pub use extent_locks::{ExtentLocks, LockTables};
pub use fair_sharing::{Capacities, fair_seconds, stretch};
pub use file_layout::{ArrayPlacement, ChunkIndex, FileExtent, FileLayout, FileRanges};
pub use flow_classes::{FlowClass, FlowClasses};
pub use judgement::{Accuracy, quantile, spearman};
pub use layer_effects::{Below, LayerEffects};
pub use load::{CallKind, Load, RoundCall, Scene};
pub use published_claims::{PublishedClaim, published_claims};
pub use published_tables::{RowGroup, TableRow, published_tables};
pub use reproduction::{ReproducedRow, TableReproduction};
pub use rescale::rescaled;
pub use simulation::{Simulated, SpanKind, TimelineSpan, simulate, transfer_seconds, transfers};
pub use stage::{Rates, StageTime, round_time};
pub use stripe_placement::{StripePlacement, TargetRange};
pub use system::{
    Background, BurstBuffer, Calibration, MetadataServers, Nodes, ObjectStorage, SYSTEM_VERSION, Sourced, System,
};
pub use timing::{PARAMETERS, TimingParameters};
pub use uncertainty::{Intervals, intervals};
pub use walk::{RunPlacement, WalkEvent, Walked, walk};
