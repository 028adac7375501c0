//! Truncation: removing the files of completed segments, from the front.

use super::segment::Segment;
use super::segment_list::SegmentList;
use super::{failed, file_names};
use hyperslab_core::{Result, lock};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Below this total size, removed files are closed by the caller.
const MUCH: u64 = 4 << 20;

/// Closes removed files on a short-lived thread: freeing their page cache takes the kernel about as long as a copy. Closes
/// them here if no thread can be started.
fn close_in_background(segments: Vec<Arc<Segment>>, bytes: u64) {
    if bytes >= MUCH {
        let _ = std::thread::Builder::new().name("hyperslab-close".into()).spawn(move || drop(segments));
    }
}

impl SegmentList {
    /// Removes the files of sealed segments without pending writes, from the front.
    pub fn remove_done(&self) {
        let mut leaving = lock(&self.leaving);
        let mut state = lock(&self.state);
        while let Some(first) = state.segments.front()
            && first.full
            && first.done.pending() == 0
            && state.failure.is_none()
        {
            if let Some(first) = state.segments.pop_front() {
                leaving.push_back((first.segment, first.bytes));
            }
        }
        drop(state);
        while let Some((segment, bytes)) = leaving.front() {
            if let Err(error) = self.remove(segment) {
                return self.fail(error);
            }
            self.used.fetch_sub(*bytes, Ordering::AcqRel);
            leaving.pop_front();
            // Waiters check the space under the lock.
            drop(lock(&self.state));
            self.changed.notify_all();
        }
    }

    /// Removes all files of a journal whose writes are all completed. The head is renamed first: from then on the journal
    /// is not replayed, whatever files are left.
    pub fn remove_all(&self) -> Result<()> {
        let mut leaving = lock(&self.leaving);
        let (head, finished) =
            (format!("{}{}", self.stem, file_names::HEAD), format!("{}{}", self.stem, file_names::FINISHED));
        let failed = |cause| failed("remove journal", format!("{}/{head}", self.files.place()), cause);
        match self.files.rename(&head, &finished) {
            Ok(()) if self.durable => self.files.sync_directory().map_err(failed)?,
            // Removed or renamed already.
            Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(failed(cause)),
            _ => {}
        }
        self.all_leave();
        let mut state = lock(&self.state);
        let kept = std::mem::take(&mut state.segments).into_iter().map(|kept| kept.segment);
        let segments: Vec<_> = leaving.drain(..).map(|(segment, _)| segment).chain(kept).collect();
        let bytes = self.used.swap(0, Ordering::AcqRel);
        let had_failed = state.failure.take().is_some();
        self.failed.store(false, Ordering::Release);
        drop(state);
        segments.iter().try_for_each(|segment| self.remove(segment))?;
        close_in_background(segments, bytes);
        if had_failed {
            self.remove_strays();
        }
        match self.files.remove(&finished) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(failed(cause)),
            _ => Ok(()),
        }
    }

    /// Removes the remains of a segment that could not be created.
    fn remove_strays(&self) {
        let names = self.files.list().unwrap_or_default();
        for name in names.iter().filter(|name| file_names::segment_of(name, &self.stem).is_some()) {
            // Without its head it is not found as a journal.
            let _ = self.files.remove(name);
        }
    }

    /// Removes the files of a segment whose tail is in memory only, after those of all earlier segments.
    pub fn remove_files(&self, segment: &Segment) -> Result<()> {
        let leaving = lock(&self.leaving);
        leaving.iter().try_for_each(|(before, _)| self.remove(before))?;
        self.remove(segment)
    }

    /// Removes records before data: data without records has no effect, records without data would look like damage.
    fn remove(&self, segment: &Segment) -> Result<()> {
        let remove = |name: String| match self.files.remove(&name) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(failed("remove journal segment", name, cause)),
            _ => Ok(()),
        };
        self.leaves(segment.number).map_err(|cause| failed("remove journal segment", self.files.place(), cause))?;
        remove(file_names::meta(&self.stem, segment.number))?;
        self.names.changed();
        if self.durable {
            self.names
                .sync(&*self.files)
                .map_err(|cause| failed("remove journal segment", self.files.place(), cause))?;
        }
        match segment.data.get() {
            Some(_) => remove(file_names::data(&self.stem, segment.number)),
            None => Ok(()),
        }
    }
}
