//! Watches when storage is at work: a format that notes every call it hands on, put below the layer that is shown.

use hyperslab_core::{
    Array, ArraySpec, Attribute, Bytes, Communicator, Container, Durability, Format, Hierarchy, MemoryLayout,
    MemoryView, MemoryViewMut, OpenMode, Request, Result, Selection, Strings, TransferMode,
};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Instant;

/// What was seen from the first opening of a container to its closing.
#[derive(Debug, Default)]
pub struct Seen {
    opened: OnceLock<(Instant, ThreadId)>,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    background: Vec<(f64, f64)>,
    over: bool,
}

impl Seen {
    /// When calls were made that the program did not make itself, in seconds since it opened the container.
    pub fn background(&self) -> Vec<(f64, f64)> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).background.clone()
    }

    /// Notes that storage worked from `from` until now, if that was in the background.
    fn note(&self, from: Instant, background: bool) {
        let Some((opened, _)) = self.opened.get().filter(|_| background) else { return };
        let seconds = |at: Instant| at.saturating_duration_since(*opened).as_secs_f64();
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.over {
            notes.background.push((seconds(from), seconds(Instant::now())));
        }
    }

    fn watch<T>(&self, call: impl FnOnce() -> T) -> T {
        let program = self.opened.get().map(|(_, thread)| *thread);
        let from = Instant::now();
        let value = call();
        self.note(from, program != Some(std::thread::current().id()));
        value
    }
}

/// A format, container or array that is watched.
#[derive(Debug)]
pub struct Probe<T: ?Sized> {
    inner: Arc<T>,
    seen: Arc<Seen>,
}

impl Probe<dyn Format> {
    /// Watches `inner`.
    pub fn new(inner: Arc<dyn Format>, seen: &Arc<Seen>) -> Self {
        Self { inner, seen: seen.clone() }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Format for Probe<dyn Format> {
    hyperslab_core::forward!(self, self.inner, [name, caps, extension, exists, remove, files]);

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        self.seen.opened.get_or_init(|| (Instant::now(), std::thread::current().id()));
        let inner = self.inner.open(path, how, comm)?;
        Ok(Arc::new(Probe { inner, seen: self.seen.clone() }))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for Probe<dyn Container> {
    hyperslab_core::forward!(self, self.inner, [telemetry, write_back]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let inner = self.seen.watch(|| self.inner.array(name))?;
        Ok(Arc::new(Probe { inner, seen: self.seen.clone() }))
    }

    fn flush(&self, how: Durability) -> Result<()> {
        self.seen.watch(|| self.inner.flush(how))
    }

    fn close(&self) -> Result<()> {
        let closed = self.seen.watch(|| self.inner.close());
        self.seen.notes.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        closed
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for Probe<dyn Container> {
    hyperslab_core::forward!(self, self.inner, [arrays, groups, attribute, attributes]);

    fn create_group(&self, name: &str) -> Result<()> {
        self.seen.watch(|| self.inner.create_group(name))
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let inner = self.seen.watch(|| self.inner.create(name, spec))?;
        Ok(Arc::new(Probe { inner, seen: self.seen.clone() }))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.seen.watch(|| self.inner.set_attribute(object, name, value))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for Probe<dyn Array> {
    hyperslab_core::forward!(self, self.inner, [spec, prefetch, telemetry, allows_background_io, object, write_back]);

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        self.seen.watch(|| self.inner.write(selection, memory, transfer))
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        self.seen.watch(|| self.inner.read(selection, memory, transfer))
    }

    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        self.seen.watch(|| self.inner.write_strings(selection, strings, transfer))
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        self.seen.watch(|| self.inner.read_strings(selection, transfer))
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        self.seen.watch(|| self.inner.write_many(parts, transfer))
    }

    /// What was submitted is in the background, whoever did so.
    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        let (from, seen) = (Instant::now(), self.seen.clone());
        let request = self.inner.submit_write(selection, data, layout, transfer)?;
        Ok(Request::pending(async move {
            let done = request.await;
            seen.note(from, true);
            done
        }))
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.seen.watch(|| self.inner.resize(shape))
    }

    fn close(&self) -> Result<()> {
        self.seen.watch(|| self.inner.close())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::Datatype;
    use hyperslab_testkit::Memory;

    #[test]
    fn what_other_threads_do_is_the_background() {
        let seen = Arc::new(Seen::default());
        let format = Probe::new(Arc::new(Memory), &seen);
        let comm = hyperslab_comm::Solo::shared();
        let container = format.open(Path::new("demo probe"), OpenMode::Truncate, &comm).unwrap();
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[4])).unwrap();
        let all = Selection::all(&[4]).unwrap();
        let write = || array.write(&all, MemoryView::packed(&[1; 4]), TransferMode::Independent).unwrap();
        write();
        assert!(seen.background().is_empty());
        std::thread::scope(|scope| scope.spawn(write).join()).unwrap();
        assert_eq!(seen.background().len(), 1);
        let submitted =
            array.submit_write(&all, Bytes::from_static(&[2; 4]), &MemoryLayout::packed(), TransferMode::Independent);
        submitted.unwrap().wait().unwrap();
        let background = seen.background();
        assert!(background.len() == 2 && background.iter().all(|(from, to)| 0.0 <= *from && from <= to));
        container.close().unwrap();
        let again = format.open(Path::new("demo probe"), OpenMode::Read, &comm).unwrap().array("a").unwrap();
        let mut data = [0; 4];
        std::thread::scope(|scope| {
            let read = || again.read(&all, MemoryViewMut::packed(&mut data), TransferMode::Independent);
            scope.spawn(read).join().unwrap().unwrap();
        });
        assert_eq!((data, seen.background().len()), ([2; 4], 2), "reading back does not count");
    }
}
