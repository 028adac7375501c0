//! What layers do to the calls that pass through them, and what a call and a byte cost there.

use crate::configuration::Layer;
use crate::counts::{Count, Counts};
use hyperslab_core::LayerEffect;
use hyperslab_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// Seconds that a layer adds before the program goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerCost {
    /// For a write.
    pub write_call: f64,
    /// For a byte of it.
    pub write_byte: f64,
    /// For a read.
    pub read_call: f64,
    /// For a byte of it.
    pub read_byte: f64,
}

impl LayerCost {
    /// Seconds of what a rank does through the layer.
    pub fn seconds(&self, passed: &LayerUse) -> f64 {
        passed.writes as f64 * self.write_call
            + passed.bytes_written as f64 * self.write_byte
            + passed.reads as f64 * self.read_call
            + passed.bytes_read as f64 * self.read_byte
    }

    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let all = [self.write_call, self.write_byte, self.read_call, self.read_byte];
        match all.iter().all(|seconds| seconds.is_finite() && *seconds >= 0.0) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Corrupt, "read profile", format!("the layer {name} costs {all:?}"))),
        }
    }
}

/// What passes through a layer in calls of one rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LayerUse {
    /// Writes.
    pub writes: u64,
    /// Bytes of them.
    pub bytes_written: u64,
    /// Reads.
    pub reads: u64,
    /// Bytes of them.
    pub bytes_read: u64,
}

/// What passes through one layer of a stack.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LayerWork {
    /// Its name.
    pub name: String,
    /// By rank, as those that are walked.
    pub by_rank: Vec<LayerUse>,
    /// The device that it stands for, if it is one: what is below is part of its time.
    pub device: Option<LayerCost>,
}

/// Counts a transfer on its way through the layers.
pub(crate) fn count(layers: &[Layer], passed: &mut [LayerUse], bytes: u64, writes: bool, counts: &mut Counts) {
    for (layer, passed) in layers.iter().zip(passed) {
        counts.add(Count::LayerCalls, 1);
        // Some copy what is written before the call returns, some what is read too; others hand it on.
        let copies = match layer.way {
            LayerEffect::Overlap | LayerEffect::Chosen | LayerEffect::Logged { .. } => writes,
            LayerEffect::ReadCache { .. } | LayerEffect::Together { .. } => true,
            LayerEffect::Through => writes && layer.name == "loglayout",
            LayerEffect::Emulated { .. } => false,
        };
        if copies {
            counts.add(Count::LayerBytes, bytes);
        }
        let (calls, moved) = match writes {
            true => (&mut passed.writes, &mut passed.bytes_written),
            false => (&mut passed.reads, &mut passed.bytes_read),
        };
        *calls = calls.saturating_add(1);
        *moved = moved.saturating_add(bytes);
    }
}
