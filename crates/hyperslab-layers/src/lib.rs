//! Layers: [`Format`](hyperslab_core::Format)s that wrap another format. Each layer is one module and one entry of the
//! registry; the stack, not the layer, decides what it wraps.

mod array_key;
mod async_io;
mod auto;
mod background;
mod cache;
mod chunk_blocks;
pub mod connector_settings;
pub mod fork;
mod interval_map;
#[doc(hidden)]
pub mod log;
mod loglayout;
mod order_rules;
mod rank_shared;
mod registry;
mod slow;
mod trace;
mod twophase;

#[doc(hidden)]
pub use auto::fuzz_api as auto_fuzz_api;
pub use chunk_blocks::ChunkBlocks;
#[doc(hidden)]
pub use loglayout::fuzz_api as loglayout_fuzz_api;
pub use loglayout::is_log_layout;
pub use order_rules::check_order;
pub use registry::{Effect, LayerEntry, Wrap, build, effect, layers};
pub use trace::{LateNames, TraceParts, trace_parts, traced};
