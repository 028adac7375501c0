//! Orders of samples that every rank works out alike.

use crate::random::Random;

/// The numbers below `count`, in an order that follows from `seed` and `epoch`.
pub fn order(count: u64, seed: u64, epoch: u64) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count as u32).collect();
    Random::new(seed ^ epoch.wrapping_add(1).wrapping_mul(0xD134_2543_DE82_EF95)).shuffle(&mut numbers);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_has_all_numbers_in_another_order() {
        let orders: Vec<Vec<u32>> = (0..4).map(|epoch| order(1000, 7, epoch)).collect();
        for (epoch, numbers) in orders.iter().enumerate() {
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..1000).collect::<Vec<u32>>());
            assert_ne!(&sorted, numbers, "epoch {epoch} is not shuffled");
            assert!(orders[..epoch].iter().all(|other| other != numbers), "epoch {epoch} repeats another");
            assert_eq!(*numbers, order(1000, 7, epoch as u64), "ranks must agree");
        }
        assert_ne!(order(1000, 8, 0), orders[0]);
        assert_eq!(order(1, 7, 0), [0]);
    }
}
