//! The words of Hyperslab: shapes, datatypes, selections, memory views, workloads, and the traits that formats,
//! layers and communicators fulfil. No I/O, no threads, no C.

pub mod default_chunk;
pub mod dims;
pub mod nearest;
pub mod units;
pub mod workload;

mod chunks;
mod communicator;
mod copy;
mod dtype;
mod error;
mod fill;
mod format;
mod memory;
mod page_buffer;
mod request;
mod runs;
mod selection;
mod shared_bytes;
mod slab;
mod span;
mod stack;

pub use bytes::Bytes;
pub use chunks::{ChunkGrid, ChunkPart, ChunkParts};
pub use communicator::{Communicator, Reduce, agree};
pub use copy::{Gather, MemoryMap, Scatter, copy_rows};
pub use dims::{Dims, MAX_RANK};
pub use dtype::{ByteOrder, Compound, Datatype, Field};
pub use error::{Error, ErrorKind, Result};
pub use fill::{Fill, FillRules, FillStream};
pub use format::{
    Array, ArraySpec, Attribute, Background, Caps, Container, Durability, Filter, Format, Open, Transfer,
};
pub use memory::{ElementPiece, ElementPlan, Member, MemoryLayout, MemoryView, MemoryViewMut, Structure, Within};
pub use page_buffer::PageBuffer;
pub use request::{EventSet, Request};
pub use runs::{Row, Run, Runs, SlabRuns, zip_runs};
pub use selection::Selection;
pub use shared_bytes::SharedBytes;
pub use slab::Slab;
pub use span::Span;
pub use stack::{OptionSpec, Shapes, Stack, StackElement, parse_stacks};
