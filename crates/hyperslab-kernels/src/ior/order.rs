//! In which order, and at which places, a rank makes its calls.

use super::c_random::CRandom;
use super::{Ior, MOST_SHUFFLED};
use hyperslab_core::{Error, Result};
use std::sync::Arc;

/// The order of a rank's transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Segment by segment, each block from its beginning.
    Sequential,
    /// In every segment the same random order. In a shared file every transfer of a segment is given to a random rank, so
    /// that ranks have different numbers of them: IOR's `-z`, with the numbers that it draws.
    Shuffled {
        /// Where the random numbers begin; in a file per rank, the rank is added.
        seed: u32,
    },
    /// Every segment is a block at a random place of the whole file, so that blocks may overlap and others stay untouched:
    /// `-zz`.
    RandomBlocks {
        /// Where the random numbers begin.
        seed: u32,
    },
}

impl Order {
    /// How it is described.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Sequential => "in order",
            Self::Shuffled { .. } => "shuffled",
            Self::RandomBlocks { .. } => "in random blocks",
        }
    }

    pub(super) fn check(self, ior: &Ior) -> Result<()> {
        let slots = ior.segment_bytes() / ior.transfer;
        match self {
            Self::Shuffled { .. } if ior.block == ior.transfer => {
                Err(Error::invalid("plan IOR", "a block of one transfer leaves nothing to shuffle within it")
                    .hint("choose -b larger than -t"))
            }
            Self::Shuffled { .. } if slots > MOST_SHUFFLED => Err(Error::invalid(
                "plan IOR",
                format!("{slots} transfers of a segment are too many to shuffle; {MOST_SHUFFLED} are possible"),
            )
            .hint("use larger transfers, or more segments of smaller blocks")),
            _ => Ok(()),
        }
    }
}

/// One call of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// The segment that it belongs to, or the first of several.
    pub segment: u64,
    /// First byte in the container.
    pub offset: u64,
    /// The regular blocks that it covers.
    pub blocks: u64,
}

/// The calls of one rank, worked out as they are needed.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    ior: Ior,
    rank: usize,
    /// Offsets inside a segment, in their order, if that is no rule.
    shuffled: Option<Arc<[u64]>>,
    per_segment: u64,
    segment: u64,
    call: u64,
}

impl Calls {
    pub fn of(ior: &Ior, rank: usize) -> Result<Self> {
        let shuffled = match ior.order {
            Order::Shuffled { seed } => Some(Arc::<[u64]>::from(shuffled(ior, rank, seed))),
            _ => None,
        };
        let per_segment = match &shuffled {
            Some(offsets) => offsets.len() as u64,
            None if ior.gather > 1 => 1,
            None => ior.block / ior.transfer,
        };
        Ok(Self { ior: ior.clone(), rank, shuffled, per_segment, segment: 0, call: 0 })
    }

    /// How many there are altogether.
    pub fn total(&self) -> u64 {
        self.per_segment * self.ior.segments.div_ceil(self.ior.gather)
    }

    /// The same for the rank that makes most calls of all.
    pub fn most(ior: &Ior) -> u64 {
        let slots = match ior.order {
            Order::Shuffled { seed } if !ior.file_per_rank => {
                let mut counts = vec![0_u64; ior.ranks];
                drawn_ranks(ior, &mut CRandom::new(seed)).for_each(|rank| counts[rank] += 1);
                counts.into_iter().max().unwrap_or(0)
            }
            _ if ior.gather > 1 => 1,
            _ => ior.block / ior.transfer,
        };
        slots * ior.segments.div_ceil(ior.gather)
    }
}

impl Iterator for Calls {
    type Item = Call;

    fn next(&mut self) -> Option<Call> {
        let ior = &self.ior;
        if self.call >= self.per_segment {
            self.segment += ior.gather;
            self.call = 0;
        }
        if self.segment >= ior.segments || self.per_segment == 0 {
            return None;
        }
        let (segment, call) = (self.segment, self.call);
        self.call += 1;
        let offset = match (ior.order, &self.shuffled) {
            (_, Some(offsets)) => segment * ior.segment_bytes() + offsets[call as usize],
            (Order::RandomBlocks { seed }, _) => random_block(ior, self.rank, seed, segment) + call * ior.transfer,
            _ => ior.offset(self.rank, segment, call),
        };
        let blocks = ior.gather.min(ior.segments - segment);
        Some(Call { segment, offset, blocks })
    }
}

/// The rank that gets each transfer of a segment of a shared file.
fn drawn_ranks(ior: &Ior, random: &mut CRandom) -> impl Iterator<Item = usize> {
    let (slots, ranks) = (ior.segment_bytes() / ior.transfer, ior.ranks as u64);
    (0..slots).map(move |_| random.below(ranks) as usize)
}

/// A rank's offsets inside a segment, as IOR shuffles them.
fn shuffled(ior: &Ior, rank: usize, seed: u32) -> Vec<u64> {
    let own = seed.wrapping_add(if ior.file_per_rank { rank as u32 } else { 0 });
    let mut random = CRandom::new(own);
    let mut offsets: Vec<u64> = if ior.file_per_rank {
        (0..ior.block / ior.transfer).map(|slot| slot * ior.transfer).collect()
    } else {
        let drawn = drawn_ranks(ior, &mut random).enumerate();
        drawn.filter(|(_, owner)| *owner == rank).map(|(slot, _)| slot as u64 * ior.transfer).collect()
    };
    for at in 0..offsets.len() {
        let other = random.below(offsets.len() as u64) as usize;
        offsets.swap(at, other);
    }
    offsets
}

/// Where the block of a segment lies in random order.
fn random_block(ior: &Ior, rank: usize, seed: u32, segment: u64) -> u64 {
    let mixed = u64::from(seed) ^ (rank as u64).rotate_left(20) ^ segment.rotate_left(40);
    let mut random = CRandom::new((mixed ^ (mixed >> 32)) as u32);
    let wide = (u64::from(random.next()) << 31) | u64::from(random.next());
    wide % (ior.container_bytes() / ior.block) * ior.block
}

/// Who writes which bytes of a container.
#[derive(Debug, Clone)]
pub enum Writers {
    /// One rank all of them.
    One(usize),
    /// Blocks in turn.
    Blocks {
        /// Bytes of a block.
        block: u64,
        /// Number of ranks.
        ranks: u64,
    },
    /// Transfers as they were drawn.
    Drawn {
        /// Bytes of a transfer.
        transfer: u64,
        /// The rank of each transfer of a segment.
        ranks: Arc<[u32]>,
    },
}

impl Writers {
    /// Of the container of `ior`; with a file per rank, of that of `rank`.
    pub fn of(ior: &Ior, rank: usize) -> Self {
        match ior.order {
            _ if ior.file_per_rank => Self::One(rank),
            Order::Shuffled { seed } => {
                let ranks = drawn_ranks(ior, &mut CRandom::new(seed)).map(|rank| rank as u32).collect();
                Self::Drawn { transfer: ior.transfer, ranks }
            }
            _ => Self::Blocks { block: ior.block, ranks: ior.ranks as u64 },
        }
    }

    /// The rank that writes the byte at `offset`.
    pub fn rank_at(&self, offset: u64) -> usize {
        match self {
            Self::One(rank) => *rank,
            Self::Blocks { block, ranks } => (offset / block % ranks) as usize,
            Self::Drawn { transfer, ranks } => ranks[(offset / transfer) as usize % ranks.len()] as usize,
        }
    }
}
