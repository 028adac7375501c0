//! Transfers that the program asked to be asynchronous, by the calls of HDF5 with event sets, in modes that have layers.
//!
//! A write is submitted to the layers. A read is announced to them, and made when the program waits for it, or before the next
//! call that could change what it reads.

use super::dataset::Dataset;
use super::file::FileState;
use hyperslab_core::{
    Array, Bytes, Error, Gather, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Selection, TransferMode,
    lock,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A transfer that the program may wait for.
pub(crate) struct Operation {
    begun: Instant,
    state: Mutex<State>,
}

enum State {
    Write(Request),
    Read(Arc<AnnouncedRead>),
    Ended { result: Result<()>, took: Duration },
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    InFlight,
    Done,
    Failed,
}

impl Operation {
    pub(super) fn write(request: Request) -> Self {
        Self { begun: Instant::now(), state: Mutex::new(State::Write(request)) }
    }

    pub(super) fn read(read: Arc<AnnouncedRead>) -> Self {
        Self { begun: Instant::now(), state: Mutex::new(State::Read(read)) }
    }

    /// Waits for the end, at most so long; `None`: as long as it takes. Inside a callback.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> Progress {
        let mut state = lock(&self.state);
        let result = match &mut *state {
            State::Ended { result, .. } => return Progress::of(result),
            State::Write(request) => match limit {
                Some(limit) => request.wait_for(limit),
                None => Some(std::mem::replace(request, Request::done()).wait()),
            },
            State::Read(read) => Some(read.result()),
        };
        let Some(result) = result else { return Progress::InFlight };
        let progress = Progress::of(&result);
        *state = State::Ended { result, took: self.begun.elapsed() };
        progress
    }

    /// How long it took, if it has ended.
    pub(crate) fn took(&self) -> Option<Duration> {
        match &*lock(&self.state) {
            State::Ended { took, .. } => Some(*took),
            _ => None,
        }
    }

    /// Hands its error to `tell`, if it has failed.
    pub(crate) fn tell_error(&self, tell: impl FnOnce(&Error)) {
        if let State::Ended { result: Err(error), .. } = &*lock(&self.state) {
            tell(error);
        }
    }
}

impl Progress {
    fn of(result: &Result<()>) -> Self {
        if result.is_ok() { Self::Done } else { Self::Failed }
    }
}

/// A read that was announced to the layers and not made yet.
#[derive(Debug)]
pub(crate) struct AnnouncedRead {
    array: Arc<dyn Array>,
    selection: Selection,
    layout: MemoryLayout,
    /// The program's memory, which is there until it has waited.
    memory: *mut u8,
    len: usize,
    result: Mutex<Option<Result<()>>>,
    /// Keeps the dataset known.
    _dataset: Arc<Dataset>,
}

// SAFETY: the memory is used by one thread at a time, which the lock of the result sees to.
unsafe impl Send for AnnouncedRead {}
// SAFETY: as above.
unsafe impl Sync for AnnouncedRead {}

impl AnnouncedRead {
    /// Announces a read into the program's memory.
    ///
    /// # Safety
    /// The memory has all selected elements, and the program leaves it alone until it has waited.
    pub(super) unsafe fn announce(
        file: &FileState,
        dataset: &Arc<Dataset>,
        array: Arc<dyn Array>,
        selection: &Selection,
        layout: &MemoryLayout,
        memory: &mut [u8],
    ) -> Arc<Self> {
        array.prefetch(selection);
        let read = Arc::new(Self {
            array,
            selection: selection.clone(),
            layout: layout.clone(),
            memory: memory.as_mut_ptr(),
            len: memory.len(),
            result: Mutex::default(),
            _dataset: dataset.clone(),
        });
        lock(&file.announced_reads).push(read.clone());
        read
    }

    /// Makes the read unless it was made. Inside a callback.
    pub(super) fn complete(&self) {
        lock(&self.result).get_or_insert_with(|| {
            // SAFETY: the program answers for the memory until it has waited, which ends after this.
            let data = unsafe { std::slice::from_raw_parts_mut(self.memory, self.len) };
            let memory = MemoryViewMut { data, layout: &self.layout };
            self.array.read(&self.selection, memory, TransferMode::Independent)
        });
    }

    /// The result, of which the error is given once.
    fn result(&self) -> Result<()> {
        self.complete();
        lock(&self.result).replace(Ok(())).unwrap_or(Ok(()))
    }

    fn is_made(&self) -> bool {
        lock(&self.result).is_some()
    }
}

/// Submits a write of a copy of the program's elements.
pub(super) fn submit(array: &dyn Array, selection: &Selection, memory: MemoryView<'_>, whole: bool) -> Result<Request> {
    let transfer = TransferMode::Independent;
    let dtype = array.spec()?.dtype;
    let bytes = selection.len() * dtype.size();
    if memory.layout.is_packed() {
        let copy = Bytes::copy_from_slice(memory.data);
        return array.submit_write(selection, copy, memory.layout, transfer);
    }
    if !whole {
        return array.write(selection, memory, transfer).map(|()| Request::done());
    }
    let mut packed =
        vec![0; usize::try_from(bytes).map_err(|_| Error::invalid("write", "it exceeds the address space"))?];
    Gather::new(memory, &dtype, selection.len())?.next_into(&mut packed);
    array.submit_write(selection, packed.into(), &MemoryLayout::packed(), transfer)
}

impl FileState {
    /// Makes the reads that were announced, before something changes what they read. Inside a callback.
    pub(super) fn complete_reads(&self) {
        let reads = std::mem::take(&mut *lock(&self.announced_reads));
        reads.iter().for_each(|read| read.complete());
    }

    /// Forgets reads that were made.
    pub(super) fn forget_made_reads(&self) {
        lock(&self.announced_reads).retain(|read| !read.is_made());
    }
}
