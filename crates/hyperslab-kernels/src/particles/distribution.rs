//! How many particles each rank has.

use super::Particles;
use hyperslab_core::{Dims, Error, Result};
use std::f64::consts::TAU;

impl Particles {
    /// Where each rank begins along the first dimension, and where the last ends.
    pub(super) fn starts(&self) -> Result<Vec<u64>> {
        let mut starts = Vec::with_capacity(self.ranks + 1);
        let mut at: u64 = 0;
        starts.push(at);
        for rank in 0..self.ranks {
            at = at
                .checked_add(self.count_of(rank)?)
                .ok_or_else(|| Error::invalid("plan particles", "the first extent of all ranks exceeds 2^64"))?;
            starts.push(at);
        }
        Ok(starts)
    }

    /// Extents of the particles of `rank`.
    pub(super) fn extent_of(&self, rank: usize, starts: &[u64]) -> Dims {
        let mut extent = self.extent.clone();
        extent[0] = starts[rank + 1] - starts[rank];
        extent
    }

    /// The extents that no rank's exceed.
    pub(super) fn largest_extent(&self) -> Result<Dims> {
        let mut extent = self.extent.clone();
        for rank in 0..self.ranks {
            extent[0] = extent[0].max(self.count_of(rank)?);
        }
        Ok(extent)
    }

    /// Mean and standard deviation over the ranks of what [`deviation`](Self::deviation) made of their first extents.
    pub fn distribution(&self) -> Result<(f64, f64)> {
        let counts = (0..self.ranks).map(|rank| Ok(self.count_of(rank)? as f64)).collect::<Result<Vec<_>>>()?;
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / counts.len() as f64;
        Ok((mean, variance.sqrt()))
    }

    /// The extent of `rank` along the first dimension: normally distributed, the same in every run, at least 1.
    fn count_of(&self, rank: usize) -> Result<u64> {
        if self.deviation == 0 {
            return Ok(self.extent[0]);
        }
        // Box and Muller: two even numbers make a normal one.
        let even = |salt: u64| (mix(self.seed ^ mix(2 * rank as u64 + salt)) >> 11) as f64 / (1u64 << 53) as f64;
        let normal = (-2.0 * (1.0 - even(0)).ln()).sqrt() * (TAU * even(1)).cos();
        let count = (self.extent[0] as f64 + normal * self.deviation as f64).round();
        if count >= i64::MAX as f64 {
            return Err(Error::invalid("plan particles", "the standard deviation makes a rank's extent exceed 2^63"));
        }
        Ok(count.max(1.0) as u64)
    }
}

/// One step of SplitMix64: spreads the bits of a number.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
