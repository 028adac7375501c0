//! The oracle with a defect.

use hyperslab_core::{
    Array, ArraySpec, Attribute, Caps, Communicator, Container, Datatype, Error, Format, Hierarchy, MemoryLayout,
    MemoryView, MemoryViewMut, OpenMode, Result, Selection, TransferMode,
};
use hyperslab_testkit::Memory;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    None,
    LosesLastByteOfReads,
    TouchesBytesBetween,
    IgnoresStrides,
    AcceptsAnything,
    KeepsCutOffData,
    ForgetsFillValue,
    WidensAttributes,
    WritesWhenReading,
    WorksAfterClose,
    LosesUpdates,
    HearsOnlyItself,
}

#[derive(Debug)]
pub struct Broken(pub Defect);

#[derive(Debug)]
struct BrokenContainer {
    inner: Arc<dyn Container>,
    defect: Defect,
    comm: Arc<dyn Communicator>,
}

#[derive(Debug)]
struct BrokenArray {
    inner: Arc<dyn Array>,
    defect: Defect,
    comm: Arc<dyn Communicator>,
    /// What was there before a resize.
    cut_off: Mutex<Option<(Vec<u64>, Vec<u8>)>>,
}

impl Format for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }
    fn caps(&self) -> Caps {
        Memory.caps()
    }
    fn extension(&self) -> &'static str {
        ""
    }
    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let how = if self.0 == Defect::WritesWhenReading && how == OpenMode::Read { OpenMode::Update } else { how };
        let inner = Memory.open(path, how, comm)?;
        Ok(Arc::new(BrokenContainer { inner, defect: self.0, comm: comm.clone() }))
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        Memory.exists(path)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        Memory.remove(path)
    }
    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        Memory.files(path)
    }
}

impl BrokenContainer {
    fn wrap(&self, inner: Arc<dyn Array>) -> Arc<dyn Array> {
        Arc::new(BrokenArray { inner, defect: self.defect, comm: self.comm.clone(), cut_off: Mutex::default() })
    }
}

impl Container for BrokenContainer {
    hyperslab_core::forward!(self, self.inner, [write_back, flush]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.inner.array(name).map(|array| self.wrap(array))
    }

    fn close(&self) -> Result<()> {
        if self.defect == Defect::WorksAfterClose {
            return self.comm.barrier();
        }
        self.inner.close()
    }
}

impl Hierarchy for BrokenContainer {
    hyperslab_core::forward!(self, self.inner, [arrays, groups, create_group, attribute, attributes]);

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let mut spec = spec.clone();
        if self.defect == Defect::ForgetsFillValue {
            spec.fill_value = None;
        }
        if self.defect == Defect::HearsOnlyItself && self.comm.rank() > 0 && spec.check().is_err() {
            spec.fill_value = None;
        }
        self.inner.create(name, &spec).map(|array| self.wrap(array))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        if self.defect == Defect::WidensAttributes && value.dtype == Datatype::F32 && value.shape.is_empty() {
            return self.inner.set_attribute(object, name, &Attribute::float(1.0));
        }
        self.inner.set_attribute(object, name, value)
    }
}

impl BrokenArray {
    fn whole(&self) -> Result<(Vec<u64>, Vec<u8>)> {
        let spec = self.inner.spec()?;
        let all = Selection::all(&spec.shape)?;
        let mut data = vec![0; (all.len() * spec.dtype.size()) as usize];
        self.inner.read(&all, MemoryViewMut::packed(&mut data), TransferMode::Independent)?;
        Ok((spec.shape.to_vec(), data))
    }

    /// The bounding box instead of a regular slab with gaps, cut to as many elements.
    fn without_strides(selection: &Selection) -> Result<Selection> {
        match selection.as_slab() {
            Some(slab) if !slab.is_dense() => Selection::dense(&slab.start(), &slab.counts()),
            _ => Ok(selection.clone()),
        }
    }
}

impl Array for BrokenArray {
    hyperslab_core::forward!(self, self.inner, [spec, close]);

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        match self.defect {
            Defect::IgnoresStrides => self.inner.write(&Self::without_strides(selection)?, memory, transfer),
            Defect::AcceptsAnything => self.inner.write(selection, memory, transfer).or(Ok(())),
            Defect::LosesUpdates if self.comm.rank() > 0 => {
                let before = self.whole()?.1;
                self.comm.barrier()?;
                self.inner.write(selection, memory, TransferMode::Independent)?;
                self.comm.barrier()?;
                let all = Selection::all(&self.inner.spec()?.shape)?;
                self.inner.write(&all, MemoryView::packed(&before), TransferMode::Independent)
            }
            Defect::LosesUpdates if self.comm.size() > 1 => {
                self.comm.barrier()?;
                self.inner.write(selection, memory, TransferMode::Independent)?;
                self.comm.barrier()
            }
            _ => self.inner.write(selection, memory, transfer),
        }
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        let MemoryViewMut { data, layout } = memory;
        let last = data.last().copied();
        self.inner.read(selection, MemoryViewMut { data, layout }, transfer)?;
        match (self.defect, data.last_mut(), last) {
            (Defect::LosesLastByteOfReads, Some(byte), Some(before)) if *layout == MemoryLayout::packed() => {
                *byte = before
            }
            (Defect::TouchesBytesBetween, Some(byte), _) if layout.within.is_some() => *byte = byte.wrapping_add(1),
            _ => {}
        }
        Ok(())
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        let before = self.whole()?;
        self.inner.resize(shape)?;
        if self.defect != Defect::KeepsCutOffData || shape.is_empty() {
            return Ok(());
        }
        let mut cut_off = self.cut_off.lock().map_err(|_| Error::invalid("resize", "poisoned"))?;
        let now = before.0[0];
        if let Some((old, data)) = cut_off.take().filter(|(old, _)| old[1..] == shape[1..] && shape[0] > now) {
            // Rows from before the array shrank come back.
            let row = data.len() / old[0].max(1) as usize;
            let to = old[0].min(shape[0]);
            if to > now && row > 0 {
                let mut start = vec![0; old.len()];
                start[0] = now;
                let mut count = old;
                count[0] = to - now;
                let view = MemoryView::packed(&data[now as usize * row..to as usize * row]);
                self.inner.write(&Selection::dense(&start, &count)?, view, TransferMode::Independent)?;
            }
        }
        if before.0[0] > shape[0] {
            *cut_off = Some(before);
        }
        Ok(())
    }
}
