//! The other way that elements of datasets go, and everything that keeps it coherent with libhdf5's own.
//!
//! A `FileState` stands for a file that libhdf5 has open, a `Dataset` for one of its datasets whose elements go by the data
//! plane. With modes that hold writes back, a stack of layers lies above the planes of a file (`stack`); its threads move
//! bytes only, since `Array::allows_background_io` says for which arrays that is enough.

mod acknowledge;
mod control;
mod dataset;
mod early;
mod elements;
mod file;
mod held;
mod inside;
mod kind;
mod objects;
mod opening;
mod space;
mod stack;
mod suitability;
pub(crate) mod transfer;

pub(crate) use acknowledge::{ATTRIBUTE, acknowledged, acknowledged_link};
pub(crate) use control::Handle;
pub(crate) use dataset::{Dataset, Taken, name, taken};
pub(crate) use file::{FileState, changed, renaming, settle_all};
pub(crate) use inside::{Inside, is_inside, make_call, native_call};
pub(crate) use kind::Kind;
pub(crate) use opening::Opening;
pub(crate) use space::Space;
pub(crate) use suitability::{named_filters, shape_of, stored, unsuitable};
pub(crate) use transfer::{Plan, Transfer};
