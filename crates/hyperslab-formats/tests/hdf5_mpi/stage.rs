//! What every check begins with.

use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, Format, MemoryView, MemoryViewMut, OpenMode, Selection, Stack,
    TransferMode, dims::element_count,
};
use std::path::PathBuf;
use std::sync::Arc;

/// A name and what all ranks do.
pub type Check = (&'static str, fn(&Stage));

/// The ranks and their folder.
pub struct Stage {
    pub comm: Arc<dyn Communicator>,
    pub folder: PathBuf,
}

pub fn format(stack: &str) -> Arc<dyn Format> {
    hyperslab_formats::build(&stack.parse::<Stack>().unwrap().format).unwrap()
}

/// Each element is its own row-major number.
pub fn numbers(selection: &Selection, shape: &[u64]) -> Vec<u8> {
    selection
        .runs(shape, 1)
        .unwrap()
        .flat_map(|run| run.offset..run.end())
        .flat_map(|n| (n as i64).to_ne_bytes())
        .collect()
}

impl Stage {
    pub fn rank(&self) -> u64 {
        self.comm.rank() as u64
    }

    pub fn size(&self) -> u64 {
        self.comm.size() as u64
    }

    pub fn first(&self) -> bool {
        self.comm.rank() == 0
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn open(&self, stack: &str, name: &str, how: OpenMode) -> Arc<dyn Container> {
        format(stack).open(&self.path(name), how, &self.comm).unwrap()
    }

    pub fn create(&self, file: &Arc<dyn Container>, name: &str, shape: &[u64]) -> Arc<dyn Array> {
        file.create(name, &ArraySpec::new(Datatype::I64, shape)).unwrap()
    }

    /// This rank's rows, when the rows are dealt out in blocks as even as possible; perhaps none.
    pub fn rows(&self, shape: &[u64]) -> Selection {
        let cut = |rank: u64| shape[0] * rank / self.size();
        let (from, to) = (cut(self.rank()), cut(self.rank() + 1));
        let (mut start, mut extents) = (vec![0; shape.len()], shape.to_vec());
        (start[0], extents[0]) = (from, to - from);
        if from == to { Selection::empty(shape.len()) } else { Selection::dense(&start, &extents).unwrap() }
    }

    /// Every n-th column from the rank's own, for n ranks.
    pub fn columns(&self, shape: &[u64]) -> Selection {
        let count = (shape[1] + self.size() - 1 - self.rank()) / self.size();
        if count == 0 {
            return Selection::empty(2);
        }
        Selection::strided(&[0, self.rank()], &[1, self.size()], &[shape[0], count], &[1, 1]).unwrap()
    }

    pub fn put(&self, array: &dyn Array, selection: &Selection, shape: &[u64], transfer: TransferMode) {
        array.write(selection, MemoryView::packed(&numbers(selection, shape)), transfer).unwrap();
    }

    pub fn write_rows(&self, array: &dyn Array, shape: &[u64]) {
        self.put(array, &self.rows(shape), shape, TransferMode::Collective);
    }

    /// Reads and compares.
    pub fn get(&self, array: &dyn Array, selection: &Selection, shape: &[u64], transfer: TransferMode) {
        let mut found = vec![0xA5; selection.len() as usize * 8];
        array.read(selection, MemoryViewMut::packed(&mut found), transfer).unwrap();
        assert!(found == numbers(selection, shape), "elements differ on rank {}", self.rank());
    }

    /// One rank, in one process without MPI, finds every element of an array.
    pub fn verify_alone(&self, name: &str, array: &str, shape: &[u64]) {
        if self.first() {
            let file = format("hdf5").open(&self.path(name), OpenMode::Read, &Solo::shared()).unwrap();
            let array = file.array(array).unwrap();
            assert_eq!(element_count(&array.spec().unwrap().shape).unwrap(), element_count(shape).unwrap());
            self.get(&*array, &Selection::all(shape).unwrap(), shape, TransferMode::Independent);
            file.close().unwrap();
        }
        self.comm.barrier().unwrap();
    }
}
