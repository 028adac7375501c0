//! Arguments and results of in-process collectives.

use hyperslab_core::Reduce;
use std::sync::Arc;

/// The collective call a rank is in. All ranks must call the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Barrier,
    Broadcast,
    AllGather,
    AllToAll,
    AllReduce(Reduce),
    AllReduceFloat(Reduce),
    SplitByNode,
}

impl Operation {
    pub fn words(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::AllGather => "all gather",
            Self::AllToAll => "all to all",
            Self::AllReduce(Reduce::Sum) => "all reduce (sum)",
            Self::AllReduce(Reduce::Min) => "all reduce (minimum)",
            Self::AllReduce(Reduce::Max) => "all reduce (maximum)",
            Self::AllReduceFloat(Reduce::Sum) => "all reduce (sum of floats)",
            Self::AllReduceFloat(Reduce::Min) => "all reduce (minimum of floats)",
            Self::AllReduceFloat(Reduce::Max) => "all reduce (maximum of floats)",
            Self::SplitByNode => "split by node",
        }
    }
}

/// The arguments of one rank.
#[derive(Debug, Default)]
pub(crate) enum Contribution {
    /// No data: the call only synchronises.
    #[default]
    Nothing,
    /// The root it names, and the data if it is the root.
    Root(usize, Option<Arc<Vec<u8>>>),
    /// The same bytes for everyone.
    Bytes(Arc<Vec<u8>>),
    /// Bytes for each rank.
    Parts(Vec<Vec<u8>>),
    /// Integers to reduce.
    Integers(Vec<u64>),
    /// Floats to reduce.
    Floats(Vec<f64>),
    /// Bad arguments. The rank still takes part, so that the call fails on every rank and none blocks.
    Refused(String),
}

/// The result of a collective call, shared by all ranks.
#[derive(Debug, Default)]
pub(crate) enum Outcome {
    #[default]
    Nothing,
    Bytes(Arc<Vec<u8>>),
    Everyones(Vec<Arc<Vec<u8>>>),
    /// Indexed by sender, then receiver; each receiver moves its own out.
    Parts(Vec<Vec<Vec<u8>>>),
    Integers(Arc<[u64]>),
    Floats(Arc<[f64]>),
    Rendezvous(Arc<crate::rendezvous::Rendezvous>),
    /// The arguments of one rank are bad, or (`None`) those of different ranks contradict each other.
    Refused(Option<usize>, Arc<str>),
}

/// Computes the outcome from the contributions of all ranks, in rank order, and resets them to `Nothing`.
/// `SplitByNode` is not handled here: the rendezvous creates the new group itself.
pub(crate) fn combine(operation: Operation, contributions: &mut [Contribution]) -> Outcome {
    for (rank, contribution) in contributions.iter().enumerate() {
        if let Contribution::Refused(message) = contribution {
            return Outcome::Refused(Some(rank), message.as_str().into());
        }
    }
    let contributions = contributions.iter_mut().map(std::mem::take);
    match operation {
        Operation::Barrier | Operation::SplitByNode => Outcome::Nothing,
        Operation::Broadcast => broadcast(contributions),
        Operation::AllGather => Outcome::Everyones(
            contributions
                .map(|contribution| if let Contribution::Bytes(bytes) = contribution { bytes } else { Arc::default() })
                .collect(),
        ),
        Operation::AllToAll => Outcome::Parts(
            contributions
                .map(|contribution| if let Contribution::Parts(parts) = contribution { parts } else { Vec::new() })
                .collect(),
        ),
        Operation::AllReduce(how) => {
            let integers =
                contributions.filter_map(|o| if let Contribution::Integers(values) = o { Some(values) } else { None });
            reduce(integers, how, u64::wrapping_add, u64::min, u64::max, Outcome::Integers)
        }
        Operation::AllReduceFloat(how) => {
            let floats =
                contributions.filter_map(|o| if let Contribution::Floats(values) = o { Some(values) } else { None });
            reduce(floats, how, |a, b| a + b, f64::min, f64::max, Outcome::Floats)
        }
    }
}

fn broadcast(contributions: impl Iterator<Item = Contribution>) -> Outcome {
    let (mut agreed, mut found) = (None, None);
    for contribution in contributions {
        let Contribution::Root(root, data) = contribution else { continue };
        let first = *agreed.get_or_insert(root);
        if first != root {
            let message = format!("some ranks name rank {first} as root, others rank {root}");
            return Outcome::Refused(None, message.into());
        }
        found = found.or(data);
    }
    Outcome::Bytes(found.unwrap_or_default())
}

fn reduce<T: Copy>(
    mut lists: impl Iterator<Item = Vec<T>>,
    how: Reduce,
    sum: fn(T, T) -> T,
    min: fn(T, T) -> T,
    max: fn(T, T) -> T,
    outcome: fn(Arc<[T]>) -> Outcome,
) -> Outcome {
    let mut total = lists.next().unwrap_or_default();
    let fold = match how {
        Reduce::Sum => sum,
        Reduce::Min => min,
        Reduce::Max => max,
    };
    for list in lists {
        if list.len() != total.len() {
            let message = format!("some ranks bring {} values, others {}", total.len(), list.len());
            return Outcome::Refused(None, message.into());
        }
        for (total, value) in total.iter_mut().zip(list) {
            *total = fold(*total, value);
        }
    }
    outcome(total.into())
}
