//! The pseudo-random numbers of the C library that IOR is run with on Linux, so that its random orders are ours too.

/// Numbers that the state remembers.
const MEMORY: usize = 31;
/// From one number that is added to the other.
const GAP: usize = 28;

/// `srandom` and `random` of the GNU C library: additive feedback over 31 numbers.
#[derive(Debug, Clone)]
pub struct CRandom {
    state: [u32; MEMORY],
    at: usize,
}

impl CRandom {
    /// After `srandom(seed)`.
    pub fn new(seed: u32) -> Self {
        let mut state = [0; MEMORY];
        // 16807 times the number before, modulo 2^31 - 1, in signed arithmetic.
        let mut word = i64::from(if seed == 0 { 1 } else { seed } as i32);
        for to in &mut state {
            *to = word as u32;
            word = (word * 16807) % 0x7fff_ffff;
            if word < 0 {
                word += 0x7fff_ffff;
            }
        }
        let mut random = Self { state, at: MEMORY - GAP };
        (0..10 * MEMORY).for_each(|_| {
            random.next();
        });
        random
    }

    /// The next of 31 bits.
    pub fn next(&mut self) -> u32 {
        let sum = self.state[self.at].wrapping_add(self.state[(self.at + GAP) % MEMORY]);
        self.state[self.at] = sum;
        self.at = (self.at + 1) % MEMORY;
        sum >> 1
    }

    /// `random() % limit`; `limit` is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        u64::from(self.next()) % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a C program prints after `srandom` of these seeds.
    #[test]
    fn numbers_are_those_of_the_c_library() {
        let first = |seed| {
            let mut random = CRandom::new(seed);
            [(); 4].map(|()| random.next())
        };
        assert_eq!(first(1), [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915]);
        assert_eq!(first(0), first(1));
        assert_eq!(first(42), [71_876_166, 708_592_740, 1_483_128_881, 907_283_241]);
        assert_eq!(first(3_000_000_000), [2_058_147_116, 854_483_408, 922_419_988, 286_396_165]);
    }
}
