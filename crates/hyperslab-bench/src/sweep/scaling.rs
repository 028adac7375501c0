//! Weak and strong scaling: how the amount of work follows the number of ranks.

use anyhow::{Context, Result, bail};
use hyperslab_core::units::parse_size;
use hyperslab_kernels::{Growth, Kernel, Scaling};

/// A key, and what its value is multiplied by and divided by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaledKey {
    pub key: &'static str,
    pub times: usize,
    pub over: usize,
}

/// What has to change of a kernel's keys at `ranks` ranks, when keys are meant for `base` ranks.
pub fn of_kernel(scaling: Scaling, kernel: &Kernel, ranks: usize, base: usize) -> Result<Option<ScaledKey>> {
    match (scaling, kernel.growth) {
        (Scaling::Weak, Growth::PerRank(_)) | (Scaling::Strong, Growth::Total(_)) => Ok(None),
        (Scaling::Weak, Growth::Total(key)) => Ok(Some(ScaledKey { key, times: ranks, over: base })),
        (Scaling::Strong, Growth::PerRank(key)) => Ok(Some(ScaledKey { key, times: base, over: ranks })),
        (_, Growth::Other) => bail!(
            "--scaling: no single key of {} follows the ranks; vary several together, as in --sweep 'ranks=1,8 KEY=A,B'",
            kernel.name
        ),
    }
}

/// The same of a workflow, whose patterns count particles per rank.
pub fn of_workflow(scaling: Scaling, ranks: usize, base: usize) -> Option<ScaledKey> {
    (scaling == Scaling::Strong).then_some(ScaledKey { key: "DIM_1", times: base, over: ranks })
}

impl ScaledKey {
    /// A value of the key, or of its first extent, scaled.
    pub fn of(&self, value: &str) -> Result<String> {
        let (first, rest) = value.split_at(value.find('x').unwrap_or(value.len()));
        let amount = parse_size(first).with_context(|| format!("--scaling: {}={value} cannot be scaled", self.key))?;
        let product = u128::from(amount) * self.times as u128;
        let over = self.over.max(1) as u128;
        if !product.is_multiple_of(over) || product == 0 {
            bail!("--scaling: {}={value} cannot be shared out: {product} is not a multiple of {over}", self.key);
        }
        Ok(format!("{}{rest}", product / over))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_a_rank_or_of_all_stays_the_same() {
        let of = |scaling: Scaling, name: &str, ranks| {
            of_kernel(scaling, Kernel::named(name).unwrap(), ranks, 1)
                .map(|share| share.map(|share| (share.times, share.over)))
        };
        assert_eq!(of(Scaling::Weak, "flash", 4).unwrap(), None);
        assert_eq!(of(Scaling::Strong, "flash", 4).unwrap(), Some((1, 4)));
        assert_eq!(of(Scaling::Weak, "btio", 4).unwrap(), Some((4, 1)));
        assert_eq!(of(Scaling::Strong, "btio", 4).unwrap(), None);
        assert!(of(Scaling::Weak, "amrex", 4).is_err());
        let share = ScaledKey { key: "grid", times: 4, over: 1 };
        assert_eq!(share.of("64x64x8").unwrap(), "256x64x8");
        assert_eq!(ScaledKey { times: 1, over: 4, ..share.clone() }.of("2K").unwrap(), "512");
        assert!(ScaledKey { times: 1, over: 3, ..share.clone() }.of("80").is_err());
        assert!(share.of("many").is_err());
    }
}
