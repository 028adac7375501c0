//! Core types of Hyperslab: shapes, datatypes, selections, memory views, workloads, and the traits that formats, layers and
//! communicators implement. No I/O, no threads, no C.

pub mod default_chunk;
pub mod dims;
pub mod positive_definite;
pub mod storage;
pub mod suggest;
pub mod units;
pub mod workload;

mod cache_state;
mod caps;
mod chunks;
mod communicator;
mod copy;
mod datagen;
mod disjoint_write_buffer;
mod dtype;
mod error;
mod filter;
mod format;
mod forward;
mod json_problem;
mod lock;
mod memcpy_rate;
mod memory;
mod page_buffer;
mod request;
mod runs;
mod selection;
mod slab;
mod stack;
mod storage_override;
mod strided_range;
mod strings;
mod telemetry;
mod transfer_cost;

pub use bytes::Bytes;
pub use cache_state::CacheState;
pub use caps::{Caps, DataModel, Execution};
pub use chunks::{ChunkGrid, ChunkSubset, ChunkSubsets};
pub use communicator::{Communicator, Reduce, agree};
pub use copy::{ElementMap, Gather, Scatter, copy_rows};
pub use datagen::{DataRules, DataStream, Fill};
pub use dims::{Dims, MAX_RANK};
pub use disjoint_write_buffer::DisjointWriteBuffer;
pub use dtype::{ByteOrder, Compound, Datatype, Field};
pub use error::{Error, ErrorKind, Result};
pub use filter::{Filter, FilterSet};
pub use format::{Array, ArraySpec, Attribute, Container, Durability, Format, Hierarchy, OpenMode, TransferMode};
pub use json_problem::json_problem;
pub use lock::lock;
pub use memcpy_rate::memcpy_rate;
pub use memory::{
    BufferRegion, ElementPiece, ElementPlan, MemoryLayout, MemoryView, MemoryViewMut, StructField, StructLayout,
};
pub use page_buffer::PageBuffer;
pub use request::{EventSet, Request};
pub use runs::{Row, Run, Runs, SlabRuns, zip_runs};
pub use selection::{Selection, packed_intersection};
pub use slab::Slab;
pub use stack::{OptionSpec, Shapes, Stack, StackElement, parse_stacks};
pub use storage_override::{DatasetOverride, FileOverride, LayoutOverride, StorageOverrides};
pub use strided_range::StridedRange;
pub use strings::Strings;
pub use telemetry::{BackgroundStats, NoTelemetry, Telemetry};
pub use transfer_cost::{ChunkedFileCost, LayerEffect, TransferCost};
