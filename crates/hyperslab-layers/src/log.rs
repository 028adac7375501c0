//! Parts of the burst-buffer log.

pub mod reorder;
