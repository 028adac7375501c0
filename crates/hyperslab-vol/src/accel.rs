//! Acceleration of dataset transfers, and coherence with libhdf5.
//!
//! `FileState` is a file that libhdf5 has open, `Dataset` one of its datasets that uses the direct path. In modes that
//! buffer writes, layers wrap the direct paths of a file (`layer_base`); their threads never call libhdf5, which
//! `Array::allows_background_io` guarantees.

mod acknowledge;
mod attachment;
mod callback_scope;
mod conversion_check;
mod dataset;
mod dataset_io;
mod dataspace;
mod early_flush;
mod element_type;
mod eligibility;
mod field_buffer;
mod file;
mod file_open;
mod launched_job;
mod layer_base;
mod metadata_backend;
mod object_numbers;
mod operation;
mod parallel_file;
mod piecewise;
pub(crate) mod transfer;

pub(crate) use acknowledge::{ATTRIBUTE, acknowledged, acknowledged_link};
pub(crate) use attachment::{Attachment, Undecided, decide, decide_if_known, expose_offset};
pub(crate) use callback_scope::{CallbackScope, in_callback, run_native_call, settle, with_native_call};
pub(crate) use dataset::{Dataset, name, object_name};
pub(crate) use dataspace::Dataspace;
pub(crate) use element_type::ElementType;
pub(crate) use eligibility::{ineligible, named_filters, shape_of, stored};
pub(crate) use file::{FileState, before_rename, note_metadata_change, write_back_all};
pub(crate) use file_open::FileOpen;
pub(crate) use metadata_backend::Handle;
pub(crate) use operation::{Operation, Progress};
pub(crate) use parallel_file::{drain_ranks, publish_dataset};
pub(crate) use transfer::{Plan, Transfer};
