//! Storage traits [`Format`], [`Container`], [`Hierarchy`] and [`Array`]: implemented by formats, wrapped by layers.

use crate::{
    BackgroundStats, Caps, Communicator, Datatype, Dims, Error, Filter, MemoryLayout, MemoryView, MemoryViewMut,
    NoTelemetry, Request, Result, Selection, Strings, Telemetry,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Immutable dataset metadata plus the current shape. What a format does not support is refused at `create`, never dropped.
///
/// ```
/// use hyperslab_core::{ArraySpec, Datatype, Filter};
///
/// let mut spec = ArraySpec::new(Datatype::F32, &[1000, 64]);
/// spec.chunk = Some([100, 64].as_slice().into());
/// spec.max_shape = Some(vec![None, Some(64)]);
/// spec.filters = vec![Filter::Shuffle, Filter::Deflate(4)];
/// spec.check()?;
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// Type of one element.
    pub dtype: Datatype,
    /// Extents, slowest first; empty for a scalar.
    pub shape: Dims,
    /// Maximum extents; `None` inside means unlimited. Absent: fixed size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_shape: Option<Vec<Option<u64>>>,
    /// Chunk extents. Absent: chosen by the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Dims>,
    /// Filters applied to chunks, in the order of writing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// Fill value: the bytes of an element never written; of a string of variable length its text. Absent: zeros, or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_value: Option<Vec<u8>>,
    /// Names of the dimensions, such as `time`; of a dimension that belongs to a group, its path. Dimensions of one name are one
    /// and the same. Absent: chosen by the format, if it has names ([`DataModel::dimension_names`](crate::DataModel::dimension_names)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dims: Option<Vec<String>>,
}

impl ArraySpec {
    /// A fixed-size array without chunks or filters.
    pub fn new(dtype: Datatype, shape: &[u64]) -> Self {
        let (shape, filters) = (shape.into(), Vec::new());
        Self { dtype, shape, max_shape: None, chunk: None, filters, fill_value: None, dims: None }
    }

    /// Refuses names of dimensions, for formats that have none.
    pub fn refuse_dimension_names(&self) -> Result<()> {
        match &self.dims {
            None => Ok(()),
            Some(names) => {
                let message = format!("this format does not keep the names of dimensions ({})", names.join(", "));
                Err(Error::unsupported("create array", message).hint("leave out dims, or use netcdf4"))
            }
        }
    }

    /// Refuses strings of variable length, for formats that cannot hold them.
    pub fn refuse_strings(&self) -> Result<()> {
        match self.dtype {
            Datatype::VariableString => {
                let message = "this format cannot hold strings of variable length";
                Err(Error::unsupported("create array", message)
                    .hint("use hdf5, netcdf4 or zarr, or fixed-length text (|S16)"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses inconsistent specifications.
    pub fn check(&self) -> Result<()> {
        let bad = |m: String| Err(Error::invalid("check array", m));
        crate::dims::byte_count(&self.shape, self.dtype.size())?;
        if let Some(max) = &self.max_shape {
            if max.len() != self.shape.len() {
                return bad("shape and maximum shape differ in number of dimensions".into());
            }
            if max.iter().zip(&self.shape).any(|(m, s)| m.is_some_and(|m| m < *s)) {
                return bad("an extent exceeds its maximum".into());
            }
        }
        if let Some(chunk) = &self.chunk {
            if chunk.len() != self.shape.len() {
                return bad(format!(
                    "chunk {} has {} dimensions, the array {}",
                    crate::dims::display(chunk),
                    chunk.len(),
                    self.shape.len()
                ));
            }
            if chunk.contains(&0) {
                return bad("a chunk extent is 0".into());
            }
            crate::dims::byte_count(chunk, self.dtype.size())?;
        }
        if let Some(names) = &self.dims {
            if names.len() != self.shape.len() {
                return bad(format!("{} names for {} dimensions", names.len(), self.shape.len()));
            }
            let is_path = |name: &String| !name.split('/').any(|part| part.is_empty() || part.contains('\0'));
            if let Some(name) = names.iter().find(|name| !is_path(name)) {
                return bad(format!("{name:?} is no name of a dimension"));
            }
        }
        let is_text = self.dtype == Datatype::VariableString;
        if let Some(text) = self.fill_value.as_ref().filter(|_| is_text) {
            Strings::check(text)?;
        }
        if let Some(fill) = &self.fill_value
            && !is_text
            && fill.len() as u64 != self.dtype.size()
        {
            return bad(format!("the fill value has {} bytes, an element {}", fill.len(), self.dtype.size()));
        }
        Ok(())
    }
}

/// The value of an attribute: packed elements of a type and shape.
///
/// ```
/// use hyperslab_core::Attribute;
///
/// assert_eq!(Attribute::text("kelvin").as_text(), Some("kelvin"));
/// assert_eq!(Attribute::integer(7).data, 7_i64.to_ne_bytes());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    /// Type of one element.
    pub dtype: Datatype,
    /// Extents; empty for a scalar.
    pub shape: Dims,
    /// Packed elements; of strings of variable length the texts, each ended by a NUL.
    pub data: Vec<u8>,
}

impl Attribute {
    /// Text, as a fixed-length string. Empty text is stored as one NUL.
    pub fn text(value: &str) -> Self {
        let mut data = value.as_bytes().to_vec();
        if data.is_empty() {
            data.push(0);
        }
        Self { dtype: Datatype::FixedString(data.len() as u32), shape: Dims::new(), data }
    }

    /// A 64-bit integer.
    pub fn integer(value: i64) -> Self {
        Self { dtype: Datatype::I64, shape: Dims::new(), data: value.to_ne_bytes().to_vec() }
    }

    /// A 64-bit float.
    pub fn float(value: f64) -> Self {
        Self { dtype: Datatype::F64, shape: Dims::new(), data: value.to_ne_bytes().to_vec() }
    }

    /// Texts of variable length.
    pub fn strings(shape: &[u64], texts: &Strings) -> Self {
        let data = texts.iter().flat_map(|text| text.iter().copied().chain(std::iter::once(0))).collect();
        Self { dtype: Datatype::VariableString, shape: shape.into(), data }
    }

    /// The text of a scalar string.
    pub fn as_text(&self) -> Option<&str> {
        match self.dtype {
            Datatype::FixedString(_) | Datatype::VariableString if self.shape.is_empty() => {
                std::str::from_utf8(&self.data).ok().map(|t| t.trim_end_matches('\0'))
            }
            _ => None,
        }
    }

    /// The texts of a string or a list of them, without what pads them; `None` for other types.
    pub fn texts(&self) -> Option<Vec<&[u8]>> {
        match self.dtype {
            Datatype::VariableString => Some(
                self.data
                    .split_inclusive(|byte| *byte == 0)
                    .map(|text| text.strip_suffix(&[0]).unwrap_or(text))
                    .collect(),
            ),
            Datatype::FixedString(size) => {
                let end = |text: &[u8]| text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                Some(self.data.chunks((size as usize).max(1)).map(|text| &text[..end(text)]).collect())
            }
            _ => None,
        }
    }

    /// Refuses a value whose data is not what its type and shape say.
    pub fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::invalid("check attribute", message));
        let need = crate::dims::byte_count(&self.shape, self.dtype.size())?;
        if self.dtype == Datatype::VariableString {
            let (need, have) = (need / self.dtype.size(), self.data.iter().filter(|byte| **byte == 0).count() as u64);
            return match need == have && self.data.last().is_none_or(|byte| *byte == 0) {
                true => Ok(()),
                false => bad(format!("it has {have} texts that end in NUL, its shape needs {need}")),
            };
        }
        match need == self.data.len() as u64 {
            true => Ok(()),
            false => bad(format!("it has {} bytes, its type and shape need {need}", self.data.len())),
        }
    }
}

/// How to open a container.
///
/// ```
/// use hyperslab_core::OpenMode;
///
/// let how = |overwrite: bool| if overwrite { OpenMode::Truncate } else { OpenMode::Create };
/// assert_eq!(how(false), OpenMode::Create, "which refuses what exists");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenMode {
    /// Read-only. Must exist.
    Read,
    /// Read-write. Must exist.
    Update,
    /// Creates it. Must not exist.
    Create,
    /// Replaces an existing container of this format; refuses to replace anything else.
    Truncate,
}

/// Whether a transfer is independent or collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferMode {
    /// Each rank transfers by itself; no other rank need call.
    #[default]
    Independent,
    /// Every rank calls, possibly with an empty selection. A refused request on one rank returns an error there and does not
    /// block the others; whether they get an error too is up to the format.
    Collective,
}

/// Guarantee of a flush, when it returns.
///
/// ```
/// use hyperslab_core::{Container, Durability, Result};
///
/// fn end_of_time_step(file: &dyn Container, checkpoint: bool) -> Result<()> {
///     file.flush(if checkpoint { Durability::Durable } else { Durability::Visible })
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Visible: other ranks and programs can read the data.
    Visible,
    /// Durable: the data survives power loss.
    Durable,
}

/// A storage format with its options.
pub trait Format: Send + Sync + Debug {
    /// The name in stack strings.
    fn name(&self) -> &'static str;
    /// Its capabilities with these options.
    fn caps(&self) -> Caps;
    /// The usual file name extension without dot; empty if none.
    fn extension(&self) -> &'static str;
    /// Opens or creates the container at `path`. Collective over `comm`; every rank gets its own container.
    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>>;
    /// Whether `path` is taken, so that [`OpenMode::Create`] would refuse it.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Deletes the container at `path`; refuses to delete anything that is not a container of this format. Not collective.
    fn remove(&self, path: &Path) -> Result<()>;
    /// The files that make up the container (to measure their size, or to evict them from the page cache).
    fn files(&self, path: &Path) -> Result<Vec<PathBuf>>;
}

/// An open file, store or directory: its arrays, and when what was written to them is safe. Object paths are `a/b/c` without
/// leading slash; the root is `""`. All methods are collective unless stated otherwise.
///
/// What lists, creates and annotates objects is [`Hierarchy`]; on a `dyn Container` its methods and those of [`Telemetry`] can
/// be called directly.
pub trait Container: Send + Sync + Debug {
    /// Its objects. Refused where another program's library owns them. Not collective.
    fn hierarchy(&self) -> Result<&dyn Hierarchy>;
    /// Opens an array.
    fn array(&self, name: &str) -> Result<Arc<dyn Array>>;
    /// Notes on this rank's transfers, and statistics of its background I/O. Not collective.
    fn telemetry(&self) -> &dyn Telemetry {
        &NoTelemetry
    }
    /// Writes this rank's buffered data to the operating system: when this returns, it survives a process crash, but not power
    /// loss. No visibility guarantee. Not collective. (Where ranks are processes that share a parallel library, the container's
    /// metadata may be written by `flush` only.)
    fn write_back(&self) -> Result<()>;
    /// Makes all earlier writes visible or durable, and reports deferred errors.
    fn flush(&self, how: Durability) -> Result<()>;
    /// Flushes to [`Durability::Visible`], releases all resources and reports deferred errors. Later calls on the container or
    /// its arrays fail; a second close does nothing. Dropping without close releases resources too, but loses errors.
    fn close(&self) -> Result<()>;
}

/// The objects of a container: arrays, groups and attributes. All methods are collective unless stated otherwise.
pub trait Hierarchy {
    /// Names of all arrays, sorted. Not collective.
    fn arrays(&self) -> Result<Vec<String>>;
    /// Names of all groups but the root, sorted. Not collective. Formats without group objects report the groups implied by
    /// array paths.
    fn groups(&self) -> Result<Vec<String>> {
        let arrays = self.arrays()?;
        let above = arrays.iter().flat_map(|name| name.match_indices('/').map(|(end, _)| name[..end].to_owned()));
        Ok(above.collect::<BTreeSet<_>>().into_iter().collect())
    }
    /// Creates a group and its parents; does nothing if the group exists.
    fn create_group(&self, name: &str) -> Result<()>;
    /// Creates an array and its parent groups; refuses an existing name.
    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>>;
    /// Sets an attribute of the root, a group or an array, replacing an earlier value. All ranks pass the same value.
    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()>;
    /// Reads an attribute. Not collective. Where a format has one kind of text only, fixed and variable length may change places.
    fn attribute(&self, object: &str, name: &str) -> Result<Attribute>;
    /// Names of the attributes of an object, sorted. Not collective.
    fn attributes(&self, object: &str) -> Result<Vec<String>>;
}

/// Short forms.
impl dyn Container + '_ {
    /// [`Hierarchy::arrays`].
    pub fn arrays(&self) -> Result<Vec<String>> {
        self.hierarchy()?.arrays()
    }

    /// [`Hierarchy::groups`].
    pub fn groups(&self) -> Result<Vec<String>> {
        self.hierarchy()?.groups()
    }

    /// [`Hierarchy::create_group`].
    pub fn create_group(&self, name: &str) -> Result<()> {
        self.hierarchy()?.create_group(name)
    }

    /// [`Hierarchy::create`].
    pub fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.hierarchy()?.create(name, spec)
    }

    /// [`Hierarchy::set_attribute`].
    pub fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.hierarchy()?.set_attribute(object, name, value)
    }

    /// [`Hierarchy::attribute`].
    pub fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.hierarchy()?.attribute(object, name)
    }

    /// [`Hierarchy::attributes`].
    pub fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.hierarchy()?.attributes(object)
    }

    /// [`Telemetry::diagnostics`].
    pub fn diagnostics(&self) -> Vec<String> {
        self.telemetry().diagnostics()
    }

    /// [`Telemetry::background`].
    pub fn background(&self) -> BackgroundStats {
        self.telemetry().background()
    }
}

/// An open array. Transfers are independent unless [`TransferMode::Collective`].
pub trait Array: Send + Sync + Debug {
    /// The metadata of the array, with its current shape.
    fn spec(&self) -> Result<ArraySpec>;
    /// Writes the selected elements from memory.
    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()>;
    /// Reads the selected elements into memory.
    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()>;
    /// Writes the selected elements of an array of [`Datatype::VariableString`], one string for each in row-major order. They
    /// are in the array when it returns, below all layers.
    fn write_strings(&self, _selection: &Selection, _strings: &Strings, _transfer: TransferMode) -> Result<()> {
        Err(no_strings("write"))
    }
    /// Reads the selected elements of an array of [`Datatype::VariableString`], in row-major order.
    fn read_strings(&self, _selection: &Selection, _transfer: TransferMode) -> Result<Strings> {
        Err(no_strings("read"))
    }
    /// Several writes in one call; where they overlap, the later one wins.
    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        parts.iter().try_for_each(|(selection, memory)| self.write(selection, *memory, transfer))
    }
    /// Starts a write from a buffer that the callee owns until completion, without copying it. Any owned buffer converts to
    /// `Bytes`.
    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        self.write(selection, MemoryView { data: &data, layout }, transfer).map(|()| Request::done())
    }
    /// Hints that this rank will read the selected elements soon. Never fails and never blocks on storage.
    fn prefetch(&self, _selection: &Selection) {}
    /// Explanations of its transfers. Not collective.
    fn telemetry(&self) -> &dyn Telemetry {
        &NoTelemetry
    }
    /// Whether background threads may transfer its elements. If not, layers transfer them only on the program's threads, within
    /// its calls: the array may belong to a library that is not thread-safe. Callable from any thread; the answer may change
    /// only while no layer buffers data of the array. Not collective.
    fn allows_background_io(&self) -> bool {
        true
    }
    /// Identity of the array where names are not unique over time: objects can be renamed, and a new array can take the name of
    /// a deleted one. Equal for all handles of an array for as long as it exists, and never reused in the container. `None`: the
    /// name identifies it. Layers key their per-array state by this. Not collective.
    fn object(&self) -> Option<u64> {
        None
    }
    /// Writes what layers buffer of this rank's writes to the format below. Not collective.
    fn write_back(&self) -> Result<()> {
        Ok(())
    }
    /// Changes the shape. Collective.
    fn resize(&self, shape: &[u64]) -> Result<()>;
    /// Releases the array. Collective. A second close does nothing.
    fn close(&self) -> Result<()>;
}

fn no_strings(operation: &'static str) -> Error {
    Error::unsupported(operation, "the elements of this array are no strings of variable length")
}

impl dyn Array + '_ {
    /// [`Telemetry::explain`].
    pub fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        self.telemetry().explain(selection, layout, writes)
    }
}
