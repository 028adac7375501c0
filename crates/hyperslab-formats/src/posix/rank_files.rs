//! The data of an array as one file per rank that wrote.
//!
//! Each file has the layout of the whole array, with holes where its rank wrote nothing. Reading asks the indices who
//! wrote an element last.

use super::buffer_pool::BufferPool;
use super::data_file::{Access, DataFile};
use super::names::DATA;
use super::placement::Placement;
use super::rank_index::{Event, IndexReader, IndexWriter};
use super::transfer;
use super::write_order::WriteClock;
use hyperslab_core::{Datatype, Error, ErrorKind, MemoryView, MemoryViewMut, Result, Run, Runs, Selection, lock};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The files of one array, seen from one rank.
#[derive(Debug)]
pub(crate) struct RankFiles {
    directory: PathBuf,
    rank: u32,
    direct: bool,
    staging: Arc<BufferPool>,
    clock: Arc<WriteClock>,
    own: Mutex<Option<Own>>,
    indices: Mutex<IndexReader>,
}

/// The files that this rank writes, made at its first write.
#[derive(Debug)]
struct Own {
    data: Arc<DataFile>,
    index: IndexWriter,
}

impl RankFiles {
    pub fn open(
        directory: &Path,
        (rank, size): (usize, usize),
        dimensions: usize,
        direct: bool,
        staging: &Arc<BufferPool>,
        clock: &Arc<WriteClock>,
    ) -> Result<Self> {
        let number = |n: usize| u32::try_from(n).map_err(|_| Error::unsupported("open", "more than 2^32 ranks"));
        Ok(Self {
            directory: directory.into(),
            rank: number(rank)?,
            direct,
            staging: staging.clone(),
            clock: clock.clone(),
            own: Mutex::new(None),
            indices: Mutex::new(IndexReader::new(directory, number(size)?, dimensions)?),
        })
    }

    /// Runs `work` on this rank's own files, opening or making them first.
    fn with_own<T>(&self, work: impl FnOnce(&mut Own) -> Result<T>) -> Result<T> {
        let mut own = lock(&self.own);
        if own.is_none() {
            // Stamps must be above those of every earlier write, also of an earlier program.
            lock(&self.indices).refresh(&self.clock)?;
            let path = self.data_path(self.rank);
            let data = Arc::new(DataFile::open(&path, Access::Make, self.direct, &self.staging)?);
            *own = Some(Own { data, index: IndexWriter::open(&self.directory, self.rank)? });
        }
        match own.as_mut() {
            Some(own) => work(own),
            None => Err(Error::new(ErrorKind::Io, "open", "the rank's files are not open")),
        }
    }

    fn data_path(&self, rank: u32) -> PathBuf {
        self.directory.join(format!("{rank}.{DATA}"))
    }

    /// Writes whole elements into this rank's file, then says so in its index.
    pub fn write(&self, selection: &Selection, shape: &[u64], dtype: &Datatype, memory: MemoryView<'_>) -> Result<()> {
        let data = self.with_own(|own| Ok(own.data.clone()))?;
        transfer::write((&data, &Placement::ALONE), &self.staging, selection, shape, dtype, memory)?;
        self.with_own(|own| own.index.append(self.clock.stamp(), Event::Wrote(selection.clone())))
    }

    /// Notes that the array shrank. One rank calls it, between two agreements of the clocks.
    pub fn cut(&self, shape: &[u64]) -> Result<()> {
        self.with_own(|own| own.index.append(self.clock.stamp(), Event::Cut(shape.into())))
    }

    /// Reads each element from the file of its last writer, or as the fill value.
    pub fn read(
        &self,
        selection: &Selection,
        shape: &[u64],
        dtype: &Datatype,
        fill: Option<&[u8]>,
        memory: MemoryViewMut<'_>,
    ) -> Result<()> {
        let holders = {
            let mut indices = lock(&self.indices);
            indices.refresh(&self.clock)?;
            indices.holders(selection, shape)?
        };
        let mut files = Vec::with_capacity(holders.len());
        let mut runs = Vec::with_capacity(holders.len());
        for (rank, part) in &holders {
            let open = |rank: &u32| DataFile::open(&self.data_path(*rank), Access::Read, self.direct, &self.staging);
            files.push(rank.as_ref().map(open).transpose()?);
            runs.push(part.runs(shape, dtype.size())?);
        }
        let fetch = |source: usize, bytes: &mut [u8], offset: u64| match &files[source] {
            Some(file) => file.read_at(bytes, offset),
            None => {
                fill_with(bytes, fill);
                Ok(())
            }
        };
        transfer::read(Merged::new(runs), fetch, &self.staging, &Placement::ALONE, (selection.len(), dtype), memory)
    }

    /// Makes this rank's writes survive loss of power: the data before the index that speaks of it.
    /// Returns the directory to sync for the files themselves, if this rank wrote.
    pub fn sync(&self) -> Result<Option<PathBuf>> {
        match lock(&self.own).as_mut() {
            Some(own) => own.data.sync().and_then(|()| own.index.sync()).map(|()| Some(self.directory.clone())),
            None => Ok(None),
        }
    }

    /// The files this rank has open for writing, and their directory.
    pub fn own_paths(&self) -> Vec<PathBuf> {
        match lock(&self.own).as_ref() {
            Some(own) => vec![own.data.path().into(), own.index.path().into(), self.directory.clone()],
            None => Vec::new(),
        }
    }
}

/// Whole elements of the fill value; zeros without one.
pub(crate) fn fill_with(bytes: &mut [u8], fill: Option<&[u8]>) {
    match fill {
        Some(fill) => bytes.chunks_mut(fill.len().max(1)).for_each(|to| to.copy_from_slice(&fill[..to.len()])),
        None => bytes.fill(0),
    }
}

/// Several rising lists of runs as one, each run with the number of its list.
struct Merged<'a> {
    lists: Vec<Runs<'a>>,
    heads: BinaryHeap<Reverse<(u64, u64, usize)>>,
}

impl<'a> Merged<'a> {
    fn new(mut lists: Vec<Runs<'a>>) -> Self {
        let heads = lists.iter_mut().enumerate();
        let heads = heads.filter_map(|(i, runs)| runs.next().map(|run| Reverse((run.offset, run.len, i)))).collect();
        Self { lists, heads }
    }
}

impl Iterator for Merged<'_> {
    type Item = (Run, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((offset, len, list)) = self.heads.pop()?;
        if let Some(run) = self.lists[list].next() {
            self.heads.push(Reverse((run.offset, run.len, list)));
        }
        Some((Run { offset, len }, list))
    }
}
