//! The program's file as the container at the bottom of the layers.

use super::callback_scope::in_callback;
use super::dataset_io::{DatasetArray, DatasetIo};
use crate::settings::Settings;
use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, Caps, Communicator, Container, DataModel, Durability, Error, Execution, Format, Hierarchy, OpenMode, Result,
    Stack, StackElement,
};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Callback of the container for flushing libhdf5's metadata.
pub(crate) trait FlushMetadata: Send + Sync {
    /// Has libhdf5 flush the file. Only inside a callback.
    fn flush_metadata(&self) -> Result<()>;
}

/// How a file was opened.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) writable: bool,
    /// Whether the ranks of an MPI program did so together.
    pub(crate) is_parallel: bool,
    /// Whose log it is then.
    pub(crate) member: Option<String>,
    /// Whether a rollback journal restores the last commit after a kill.
    pub(crate) rolls_back: bool,
}

/// The layers above the direct paths of a file.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) container: Arc<dyn Container>,
    base: Arc<LayerBase>,
}

impl Layers {
    /// Opens the layers that the settings ask for; `None` if there are none.
    pub(crate) fn open(
        settings: &Settings,
        path: &Path,
        opening: Opening,
        file: Arc<File>,
        flush_metadata: Weak<dyn FlushMetadata>,
    ) -> Result<Option<Self>> {
        let Opening { writable, rolls_back, is_parallel, .. } = opening;
        let layers = layer_elements(settings, opening);
        if layers.is_empty() {
            return Ok(None);
        }
        let format = StackElement { name: "hdf5".into(), options: Vec::new() };
        // Ranks write no chunks that move.
        let relocates_chunks = !rolls_back && !is_parallel;
        let base = Arc::new(LayerBase { next: Mutex::default(), file, flush_metadata, relocates_chunks });
        let below: Arc<dyn Format> = Arc::new(BaseFormat(base.clone()));
        let whole = hyperslab_layers::build(&Stack { layers, format }, below)?;
        let how = if writable { OpenMode::Update } else { OpenMode::Read };
        let comm: Arc<dyn Communicator> = Arc::new(Solo);
        let container = whole.open(path, how, &comm)?;
        Ok(Some(Self { container, base }))
    }

    /// The array of a dataset, on top of the layers; `object` is its object number.
    pub(crate) fn array(&self, io: &Arc<DatasetIo>, object: u64) -> Result<Arc<dyn Array>> {
        let next = DatasetArray { io: io.clone(), object };
        *self.base.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
        let array = self.container.array(&io.name);
        self.base.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        array
    }
}

/// The layers that settings ask for, outermost first.
fn layer_elements(settings: &Settings, opening: Opening) -> Vec<StackElement> {
    let Opening { writable, is_parallel, member, .. } = opening;
    let (modes, memory) = (settings.modes, settings.memory);
    let option = |name: &str, value: String| (name.to_owned(), value);
    let lag = settings.lag.map(|_| option("lag", settings.lag_text()));
    let mut layers = Vec::new();
    if modes.log && writable {
        // Bytes of pending writes, and of one drain round.
        let mut options =
            vec![option("memory", (memory / 2).to_string()), option("buffer", (memory / 16).max(1 << 16).to_string())];
        options.extend(settings.log_dir.iter().map(|folder| option("dir", folder.display().to_string())));
        options.extend(settings.log_limit.iter().map(|bytes| option("limit", bytes.to_string())));
        options.extend(settings.durability.iter().map(|text| option("durability", text.clone())));
        options.extend(member.map(|member| option("member", member)));
        options.extend(settings.on_log_failure.iter().map(|how| option("on-log-failure", (*how).to_owned())));
        layers.push(StackElement { name: "log".into(), options });
    }
    if modes.cache {
        let half = (memory / 2).to_string();
        let mut options = vec![option("memory", half.clone()), option("stage", half)];
        options.extend(lag);
        layers.push(StackElement { name: "cache".into(), options });
    } else if modes.background && writable {
        let mut options = vec![option("memory", memory.to_string())];
        options.extend(lag);
        if is_parallel {
            // Another rank may be writing what would be read ahead.
            options.push(option("ahead", "0".into()));
        }
        layers.push(StackElement { name: "async".into(), options });
    } else if modes.auto && writable {
        let mut options = vec![option("memory", memory.to_string())];
        options.extend(lag);
        options.extend(settings.state.iter().map(|folder| option("state", folder.clone())));
        options.extend(settings.explain.iter().map(|file| option("explain", file.display().to_string())));
        layers.push(StackElement { name: "auto".into(), options });
    }
    layers
}

/// The file below the layers.
#[derive(Debug)]
struct LayerBase {
    /// The dataset that is being opened.
    next: Mutex<Option<DatasetArray>>,
    file: Arc<File>,
    flush_metadata: Weak<dyn FlushMetadata>,
    /// Whether chunks may move before the metadata say so, and no rollback journal repairs that after a kill.
    relocates_chunks: bool,
}

impl std::fmt::Debug for dyn FlushMetadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Saving")
    }
}

#[derive(Debug)]
struct BaseFormat(Arc<LayerBase>);

#[derive(Debug)]
struct BaseContainer(Arc<LayerBase>);

fn by_program<T>() -> Result<T> {
    Err(Error::unsupported("access", "the program does that by calls of HDF5"))
}

#[deny(clippy::missing_trait_methods)]
impl Format for BaseFormat {
    fn name(&self) -> &'static str {
        "hdf5"
    }

    fn caps(&self) -> Caps {
        Caps {
            data: DataModel {
                readable: true,
                persistent: true,
                chunks: true,
                compound: true,
                strings: false,
                partial_fields: true,
                fill_value: true,
                max_rank: hyperslab_core::MAX_RANK,
                ..DataModel::default()
            },
            execution: Execution { relocates_chunks: self.0.relocates_chunks, ..Execution::default() },
            ..Caps::default()
        }
    }

    fn extension(&self) -> &'static str {
        "h5"
    }

    fn open(&self, _: &Path, _: OpenMode, _: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(BaseContainer(self.0.clone())))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(path.exists())
    }

    fn remove(&self, _: &Path) -> Result<()> {
        by_program()
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        Ok(vec![path.to_path_buf()])
    }
}

impl Container for BaseContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        by_program()
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        match next.filter(|next| next.io.name == name) {
            Some(next) => Ok(Arc::new(next)),
            None => by_program(),
        }
    }

    /// Background writes are in the file already; the rest is flushed by libhdf5, if inside a callback.
    fn write_back(&self) -> Result<()> {
        match self.0.flush_metadata.upgrade().filter(|_| in_callback()) {
            Some(flush_metadata) => flush_metadata.flush_metadata(),
            None => Ok(()),
        }
    }

    fn flush(&self, how: Durability) -> Result<()> {
        self.write_back()?;
        match how {
            Durability::Visible => Ok(()),
            Durability::Durable => self.0.file.sync_all().map_err(|cause| Error::io("flush", cause)),
        }
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
