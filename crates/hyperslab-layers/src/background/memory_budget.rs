//! Default memory budget.

use hyperslab_core::{Communicator, Result};

/// Divisor of the available memory that all ranks of a node use together.
const SHARE: u64 = 4;
/// Minimum budget of a rank.
const LEAST: u64 = 32 << 20;
/// Assumed available memory if unknown.
const UNKNOWN: u64 = 1 << 30;

/// A quarter of the available memory, divided among the ranks of the node. Collective.
pub(crate) fn share_of_memory(comm: &dyn Communicator) -> Result<u64> {
    let ranks = if comm.one_process() { comm.size() } else { comm.split_by_node()?.size() };
    let available = system().unwrap_or(UNKNOWN).min(control_group().unwrap_or(u64::MAX));
    Ok((available / SHARE / ranks.max(1) as u64).max(LEAST))
}

fn system() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory left in the control group of a container or batch job, if limited.
fn control_group() -> Option<u64> {
    let number =
        |name| std::fs::read_to_string(format!("/sys/fs/cgroup/memory.{name}")).ok()?.trim().parse::<u64>().ok();
    Some(number("max")?.saturating_sub(number("current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_what_there_is() -> Result<()> {
        let alone = hyperslab_comm::Threads::run(1, |comm| share_of_memory(&*comm))?[0];
        let four = hyperslab_comm::Threads::run(4, |comm| share_of_memory(&*comm))?[0];
        assert!(alone >= LEAST && four >= LEAST && four <= alone, "{alone} {four}");
        Ok(())
    }
}
