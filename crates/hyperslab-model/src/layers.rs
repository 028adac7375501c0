//! What layers add to the calls that pass through them.

use crate::counts::{Count, Counts};

/// Counts the way of a transfer through layers.
pub(crate) fn count(layers: &[String], bytes: u64, writes: bool, counts: &mut Counts) {
    for layer in layers {
        counts.add(Count::LayerCalls, 1);
        // These copy what is written before the call returns; the others hand it on.
        let copies = matches!(layer.as_str(), "async" | "cache" | "log" | "loglayout" | "twophase");
        if copies && writes {
            counts.add(Count::LayerBytes, bytes);
        }
    }
}
