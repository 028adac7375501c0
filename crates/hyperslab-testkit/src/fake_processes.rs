//! Communicators that claim to span processes, for what formats refuse or allow then.

use hyperslab_comm::Solo;
use hyperslab_core::{Communicator, Error, Reduce, Result};
use std::sync::Arc;

/// Rank 0 of two processes, the other of which always agrees.
#[derive(Debug)]
pub struct OtherProcess;

impl Communicator for OtherProcess {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        2
    }
    fn one_process(&self) -> bool {
        false
    }
    fn barrier(&self) -> Result<()> {
        Ok(())
    }
    fn broadcast(&self, _: usize, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![mine.to_vec(), Vec::new()])
    }
    fn all_to_all(&self, parts: &mut Vec<Vec<u8>>, received: &mut Vec<Vec<u8>>) -> Result<()> {
        std::mem::swap(parts, received);
        Ok(())
    }
    fn all_reduce(&self, _: &mut [u64], _: Reduce) -> Result<()> {
        Ok(())
    }
    fn all_reduce_f64(&self, _: &mut [f64], _: Reduce) -> Result<()> {
        Ok(())
    }
    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        Ok(Arc::new(Self))
    }
    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        Ok(Solo::shared())
    }
    fn abort(&self, _: &Error) {}
}

/// Thread ranks that claim to be processes.
#[derive(Debug)]
pub struct AsProcesses(pub Arc<dyn Communicator>);

impl Communicator for AsProcesses {
    fn rank(&self) -> usize {
        self.0.rank()
    }
    fn size(&self) -> usize {
        self.0.size()
    }
    fn one_process(&self) -> bool {
        false
    }
    fn barrier(&self) -> Result<()> {
        self.0.barrier()
    }
    fn broadcast(&self, root: usize, data: &mut Vec<u8>) -> Result<()> {
        self.0.broadcast(root, data)
    }
    fn all_gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.0.all_gather(mine)
    }
    fn all_to_all(&self, parts: &mut Vec<Vec<u8>>, received: &mut Vec<Vec<u8>>) -> Result<()> {
        self.0.all_to_all(parts, received)
    }
    fn all_reduce(&self, values: &mut [u64], how: Reduce) -> Result<()> {
        self.0.all_reduce(values, how)
    }
    fn all_reduce_f64(&self, values: &mut [f64], how: Reduce) -> Result<()> {
        self.0.all_reduce_f64(values, how)
    }
    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        Ok(Arc::new(Self(self.0.duplicate()?)))
    }
    fn many_threads(&self) -> bool {
        self.0.many_threads()
    }
    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        self.0.split_by_node()
    }
    fn abort(&self, reason: &Error) {
        self.0.abort(reason);
    }
}
