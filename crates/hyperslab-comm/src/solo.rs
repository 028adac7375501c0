//! The communicator of a single rank.

use hyperslab_core::{Communicator, Error, Reduce, Result};
use std::sync::Arc;

/// The communicator of a program with one rank. Every collective call returns at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Solo;

impl Solo {
    /// The communicator as a trait object, as formats take it.
    pub fn shared() -> Arc<dyn Communicator> {
        Arc::new(Self)
    }
}

impl Communicator for Solo {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn one_process(&self) -> bool {
        true
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn broadcast(&self, root: usize, _data: &mut Vec<u8>) -> Result<()> {
        if root != 0 {
            return Err(Error::invalid("broadcast", format!("the root is rank {root}, the only rank is 0")));
        }
        Ok(())
    }

    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![mine.to_vec()])
    }

    fn all_to_all(&self, parts: &mut Vec<Vec<u8>>, received: &mut Vec<Vec<u8>>) -> Result<()> {
        if parts.len() != 1 {
            return Err(Error::invalid("all to all", format!("{} parts for 1 rank", parts.len())));
        }
        std::mem::swap(parts, received);
        parts.resize_with(1, Vec::new);
        Ok(())
    }

    fn all_reduce(&self, _values: &mut [u64], _how: Reduce) -> Result<()> {
        Ok(())
    }

    fn all_reduce_f64(&self, _values: &mut [f64], _how: Reduce) -> Result<()> {
        Ok(())
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        Ok(Self::shared())
    }

    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        Ok(Self::shared())
    }

    /// Does nothing: there is no other rank.
    fn abort(&self, _reason: &Error) {}
}
