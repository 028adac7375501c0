//! A file of the program as a container that layers may lie on.

use super::elements::{Elements, ElementsArray};
use super::inside::is_inside;
use crate::settings::Settings;
use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Attribute, BackgroundStats, Caps, Communicator, Container, Durability, Error, Format, OpenMode,
    Result, Stack, StackElement,
};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What the container needs of the file.
pub(crate) trait Saving: Send + Sync {
    /// Has libhdf5 write everything it knows to the file. On a thread that it has called only.
    fn save(&self) -> Result<()>;
}

/// The layers above the planes of a file.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) container: Arc<dyn Container>,
    bottom: Arc<Bottom>,
}

impl Layers {
    /// As the settings say; `None` if they want none.
    pub(crate) fn open(
        settings: &Settings,
        path: &Path,
        writable: bool,
        file: Arc<File>,
        saving: Weak<dyn Saving>,
        rolls_back: bool,
    ) -> Result<Option<Self>> {
        let layers = elements(settings, writable);
        if layers.is_empty() {
            return Ok(None);
        }
        let format = StackElement { name: "hdf5".into(), options: Vec::new() };
        let bottom = Arc::new(Bottom { next: Mutex::default(), file, saving, rolls_back });
        let below: Arc<dyn Format> = Arc::new(BottomFormat(bottom.clone()));
        let whole = hyperslab_layers::build(&Stack { layers, format }, below)?;
        let how = if writable { OpenMode::Update } else { OpenMode::Read };
        let comm: Arc<dyn Communicator> = Arc::new(Solo);
        let container = whole.open(path, how, &comm)?;
        Ok(Some(Self { container, bottom }))
    }

    /// The elements of a dataset, which is the object of this number, seen through the layers.
    pub(crate) fn array(&self, elements: &Arc<Elements>, object: u64) -> Result<Arc<dyn Array>> {
        let next = ElementsArray { elements: elements.clone(), object };
        *self.bottom.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
        let array = self.container.array(&elements.name);
        self.bottom.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        array
    }
}

/// The layers that settings ask for, outermost first.
fn elements(settings: &Settings, writable: bool) -> Vec<StackElement> {
    let (modes, memory) = (settings.modes, settings.memory);
    let option = |name: &str, value: String| (name.to_owned(), value);
    let lag = settings.lag.map(|_| option("lag", settings.lag_text()));
    let mut layers = Vec::new();
    if modes.log && writable {
        // Bytes of the list of writes, and of a round of moving them.
        let mut options =
            vec![option("memory", (memory / 2).to_string()), option("buffer", (memory / 16).max(1 << 16).to_string())];
        options.extend(settings.log_dir.iter().map(|folder| option("dir", folder.display().to_string())));
        options.extend(settings.log_limit.iter().map(|bytes| option("limit", bytes.to_string())));
        options.extend(settings.durability.iter().map(|text| option("durability", text.clone())));
        options.extend(settings.on_log_failure.iter().map(|how| option("on-log-failure", (*how).to_owned())));
        layers.push(StackElement { name: "log".into(), options });
    }
    if modes.cache {
        let half = (memory / 2).to_string();
        let mut options = vec![option("memory", half.clone()), option("stage", half)];
        options.extend(lag);
        layers.push(StackElement { name: "cache".into(), options });
    } else if modes.background && writable {
        let options = [option("memory", memory.to_string())].into_iter().chain(lag).collect();
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

/// The file itself.
#[derive(Debug)]
struct Bottom {
    /// The dataset that is being opened.
    next: Mutex<Option<ElementsArray>>,
    file: Arc<File>,
    saving: Weak<dyn Saving>,
    /// Whether a kill leaves the file as it was at its last commit.
    rolls_back: bool,
}

impl std::fmt::Debug for dyn Saving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Saving")
    }
}

#[derive(Debug)]
struct BottomFormat(Arc<Bottom>);

#[derive(Debug)]
struct BottomContainer(Arc<Bottom>);

fn by_program<T>() -> Result<T> {
    Err(Error::unsupported("access", "the program does that by calls of HDF5"))
}

#[deny(clippy::missing_trait_methods)]
impl Format for BottomFormat {
    fn name(&self) -> &'static str {
        "hdf5"
    }

    fn caps(&self) -> Caps {
        Caps {
            readable: true,
            persistent: true,
            chunks: true,
            compound: true,
            partial_fields: true,
            fill_value: true,
            relocates_chunks: !self.0.rolls_back,
            max_rank: hyperslab_core::MAX_RANK,
            ..Caps::default()
        }
    }

    fn extension(&self) -> &'static str {
        "h5"
    }

    fn open(&self, _: &Path, _: OpenMode, _: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(BottomContainer(self.0.clone())))
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

#[deny(clippy::missing_trait_methods)]
impl Container for BottomContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        by_program()
    }

    fn groups(&self) -> Result<Vec<String>> {
        by_program()
    }

    fn create_group(&self, _: &str) -> Result<()> {
        by_program()
    }

    fn create(&self, _: &str, _: &ArraySpec) -> Result<Arc<dyn Array>> {
        by_program()
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let next = self.0.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        match next.filter(|next| next.elements.name == name) {
            Some(next) => Ok(Arc::new(next)),
            None => by_program(),
        }
    }

    fn set_attribute(&self, _: &str, _: &str, _: &Attribute) -> Result<()> {
        by_program()
    }

    fn attribute(&self, _: &str, _: &str) -> Result<Attribute> {
        by_program()
    }

    fn attributes(&self, _: &str) -> Result<Vec<String>> {
        by_program()
    }

    fn diagnostics(&self) -> Vec<String> {
        Vec::new()
    }

    fn background(&self) -> BackgroundStats {
        BackgroundStats::default()
    }

    /// What threads of ours have written is in the file; the rest has to be saved by libhdf5, in a call of the program.
    fn write_back(&self) -> Result<()> {
        match self.0.saving.upgrade().filter(|_| is_inside()) {
            Some(saving) => saving.save(),
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
