//! Choosing the aggregator ranks.

use hyperslab_core::{Communicator, Result};

/// Default number of aggregators per node. One core copies less than memory and storage of a node can take.
const PER_NODE: usize = 2;

/// The ranks of the aggregators, increasing. Collective.
pub(super) fn choose(comm: &dyn Communicator, wanted: Option<usize>) -> Result<Vec<usize>> {
    let size = comm.size();
    if let Some(wanted) = wanted {
        // Spread out, since neighbouring ranks share a node.
        let number = wanted.min(size);
        return Ok((0..number).map(|i| (i as u128 * size as u128 / number as u128) as usize).collect());
    }
    if size == 1 {
        return Ok(vec![0]);
    }
    let mine = comm.split_by_node()?.rank() < PER_NODE;
    let all = comm.all_gather(&[u8::from(mine)])?;
    Ok((0..size).filter(|&rank| all[rank] == [1]).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_comm::Threads;

    #[test]
    fn aggregators_are_spread_or_two_per_node() {
        let chosen = Threads::run(5, |comm| {
            Ok((choose(&*comm, Some(2))?, choose(&*comm, Some(9))?, choose(&*comm, Some(1))?, choose(&*comm, None)?))
        });
        for (two, many, one, per_node) in chosen.unwrap() {
            assert_eq!(two, [0, 2]);
            assert_eq!(many, [0, 1, 2, 3, 4]);
            assert_eq!((one, per_node), (vec![0], vec![0, 1]));
        }
    }
}
