//! Where arrays rest: the traits that formats fulfil and layers forward.

use crate::{Communicator, Datatype, Dims, Error, MemoryLayout, MemoryView, MemoryViewMut, Request, Result, Selection};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a format can do. Code asks for facts, never for names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caps {
    /// Keeps data: what was written can be read. (`null` does not.)
    pub stores: bool,
    /// Survives the process.
    pub persistent: bool,
    /// Arrays can change shape, up to `max_shape`.
    pub resize: bool,
    /// Arrays that grow share the dimension along which they do: resizing one resizes all.
    pub shared_growth: bool,
    /// Arrays can be cut into chunks.
    pub chunks: bool,
    /// Compound datatypes keep their field names.
    pub compound: bool,
    /// A write may transfer some fields of a compound and leave the others.
    pub partial_fields: bool,
    /// Fill value for elements never written.
    pub fill_value: bool,
    /// Attributes on the root, groups and arrays.
    pub attributes: bool,
    /// Groups as objects of their own.
    pub groups: bool,
    /// Several ranks may write different elements of one array at once.
    pub concurrent_writers: bool,
    /// Calls of several ranks run one after the other inside the library.
    pub serialises_ranks: bool,
    /// A collective transfer does something an independent one does not.
    pub collective: bool,
    /// Works on ranks that are separate processes.
    pub many_processes: bool,
    /// Makes use of [`Array::prefetch`].
    pub prefetch: bool,
    /// A chunk with filters that changes may get another place, of which the file tells only after a flush, and its old place
    /// may be another chunk's by then: the end of the process before the flush can cost whole chunks.
    pub moves_chunks: bool,
    /// Filters that arrays may ask for.
    pub deflate: bool,
    /// Byte shuffle.
    pub shuffle: bool,
    /// Fletcher-32 checksum.
    pub fletcher32: bool,
    /// Zstandard.
    pub zstd: bool,
    /// Blosc.
    pub blosc: bool,
    /// LZ4, LZF, bitshuffle and Blosc2, as HDF5's registered filters have them.
    pub registered: bool,
    /// Most dimensions of an array.
    pub max_rank: usize,
}

/// A transformation of chunks, in the order applied at writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// zlib/gzip at level 0 to 9.
    Deflate(u8),
    /// Bytes of equal significance together.
    Shuffle,
    /// Checksum.
    Fletcher32,
    /// Zstandard at level 1 to 22.
    Zstd(u8),
    /// Blosc (LZ4 inside, byte shuffle) at level 0 to 9.
    Blosc(u8),
    /// Blosc2 (Zstandard inside, byte shuffle) at level 0 to 9.
    Blosc2(u8),
    /// LZ4.
    Lz4,
    /// LZF.
    Lzf,
    /// Bits of equal significance together, then LZ4.
    Bitshuffle,
}

impl Caps {
    /// Whether arrays may ask for the filter.
    pub fn has(&self, filter: &Filter) -> bool {
        match filter {
            Filter::Deflate(_) => self.deflate,
            Filter::Shuffle => self.shuffle,
            Filter::Fletcher32 => self.fletcher32,
            Filter::Zstd(_) => self.zstd,
            Filter::Blosc(_) => self.blosc,
            Filter::Blosc2(_) | Filter::Lz4 | Filter::Lzf | Filter::Bitshuffle => self.registered,
        }
    }
}

/// What an array is, apart from its name. Parts a format lacks are refused at `create`, never dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// Type of one element.
    pub dtype: Datatype,
    /// Extents, slowest first; empty for a scalar.
    pub shape: Dims,
    /// Extents it may grow to; `None` inside means without limit. Absent: fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_shape: Option<Vec<Option<u64>>>,
    /// Chunk extents. Absent: the format's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Dims>,
    /// Filters of chunks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// Bytes of one element that stand for "never written". Absent: zeros.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_value: Option<Vec<u8>>,
}

impl ArraySpec {
    /// A fixed-size array without chunks or filters.
    pub fn new(dtype: Datatype, shape: &[u64]) -> Self {
        Self { dtype, shape: shape.into(), max_shape: None, chunk: None, filters: Vec::new(), fill_value: None }
    }

    /// Refuses specifications that contradict themselves.
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
        if let Some(fill) = &self.fill_value
            && fill.len() as u64 != self.dtype.size()
        {
            return bad(format!("the fill value has {} bytes, an element {}", fill.len(), self.dtype.size()));
        }
        Ok(())
    }
}

/// The value of an attribute: packed elements of a type and shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    /// Type of one element.
    pub dtype: Datatype,
    /// Extents; empty for a scalar.
    pub shape: Dims,
    /// Packed elements.
    pub data: Vec<u8>,
}

impl Attribute {
    /// Text, as a fixed string. Empty text is kept as one NUL.
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

    /// The text of a scalar fixed string.
    pub fn as_text(&self) -> Option<&str> {
        match self.dtype {
            Datatype::FixedString(_) if self.shape.is_empty() => {
                std::str::from_utf8(&self.data).ok().map(|t| t.trim_end_matches('\0'))
            }
            _ => None,
        }
    }
}

/// How to open a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Open {
    /// Must exist; nothing may be changed.
    Read,
    /// Must exist.
    Update,
    /// Must not exist.
    Create,
    /// Replaces what is there, if it is a container of this format; anything else is left alone and refused.
    Truncate,
}

/// Whether ranks act together in a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transfer {
    /// Each rank for itself.
    #[default]
    Independent,
    /// Every rank calls, possibly with an empty selection. A rank whose request is refused returns its error, and no other
    /// waits for it; whether the others hear of it is the format's choice.
    Collective,
}

/// What a flush promises when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Other ranks and programs can read it.
    Visible,
    /// It survives loss of power.
    Durable,
}

/// What a container did in the background, on one rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Background {
    /// How long the format below was at work in the background.
    pub busy: Duration,
    /// How long callers waited for it.
    pub waited: Duration,
    /// Bytes written or read in the background.
    pub bytes: u64,
    /// The most bytes of memory held for it at a time.
    pub memory: u64,
}

impl Background {
    /// The share of the background work that no caller waited for, from 0 to 1; `None` if there was no such work.
    pub fn hidden(&self) -> Option<f64> {
        let share = self.waited.as_secs_f64() / self.busy.as_secs_f64();
        (!self.busy.is_zero()).then_some(1.0 - share.min(1.0))
    }
}

impl std::ops::AddAssign for Background {
    fn add_assign(&mut self, other: Self) {
        self.busy += other.busy;
        self.waited += other.waited;
        self.bytes += other.bytes;
        self.memory = self.memory.max(other.memory);
    }
}

/// A way to store arrays, with its options chosen.
pub trait Format: Send + Sync + Debug {
    /// The name in stack strings.
    fn name(&self) -> &'static str;
    /// What it can do with these options.
    fn caps(&self) -> Caps;
    /// The usual file name extension without dot; empty if none.
    fn extension(&self) -> &'static str;
    /// Opens or creates the container at `path`. Collective over `comm`; every rank gets its own container.
    fn open(&self, path: &Path, how: Open, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>>;
    /// Whether anything is at `path` that `Create` would refuse.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Removes the container at `path` and nothing else; refuses what is no container of this format. Not collective.
    fn remove(&self, path: &Path) -> Result<()>;
    /// The files that hold the container's bytes (for sizes and for dropping them from the page cache).
    fn files(&self, path: &Path) -> Result<Vec<PathBuf>>;
}

/// An open file, store or directory. Paths of objects are `a/b/c` without leading slash; the root is `""`.
/// All methods are collective unless said otherwise.
pub trait Container: Send + Sync + Debug {
    /// Names of all arrays, sorted. Not collective.
    fn arrays(&self) -> Result<Vec<String>>;
    /// Names of all groups but the root, sorted. Not collective. Where groups are no objects of their own, those above
    /// arrays.
    fn groups(&self) -> Result<Vec<String>> {
        let arrays = self.arrays()?;
        let above = arrays.iter().flat_map(|name| name.match_indices('/').map(|(end, _)| name[..end].to_owned()));
        Ok(above.collect::<BTreeSet<_>>().into_iter().collect())
    }
    /// Creates a group and the groups above it; an existing group is left as it is.
    fn create_group(&self, name: &str) -> Result<()>;
    /// Creates an array and the groups above it; refuses an existing name.
    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>>;
    /// Opens an array.
    fn array(&self, name: &str) -> Result<Arc<dyn Array>>;
    /// Sets an attribute of the root, a group or an array, replacing an earlier value. Every rank passes the same.
    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()>;
    /// Reads an attribute. Not collective.
    fn attribute(&self, object: &str, name: &str) -> Result<Attribute>;
    /// Names of the attributes of an object, sorted. Not collective.
    fn attributes(&self, object: &str) -> Result<Vec<String>>;
    /// What people should know about the transfers of this rank so far, such as collective ones that were none. Not
    /// collective.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
    /// What was done in the background so far. Not collective.
    fn background(&self) -> Background {
        Background::default()
    }
    /// Hands what this rank has written to the operating system: when this returns, it survives the end of the process.
    /// Says nothing about who can see it. Not collective. (Where ranks are processes that share a library, the description
    /// of the container may be handed over by `flush` only.)
    fn settle(&self) -> Result<()>;
    /// Makes all writes before it visible or durable, and reports deferred errors.
    fn flush(&self, how: Durability) -> Result<()>;
    /// Flushes to `Visible`, releases everything and reports deferred errors. Later calls on the container or its
    /// arrays fail; a second close does nothing. Dropping without close releases too, but errors are lost.
    fn close(&self) -> Result<()>;
}

/// An open array. Transfers are per rank unless [`Transfer::Collective`].
pub trait Array: Send + Sync + Debug {
    /// What the array is now.
    fn spec(&self) -> Result<ArraySpec>;
    /// Writes the selected elements from memory.
    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: Transfer) -> Result<()>;
    /// Reads the selected elements into memory.
    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: Transfer) -> Result<()>;
    /// Several writes as one; with overlaps the later one wins.
    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: Transfer) -> Result<()> {
        parts.iter().try_for_each(|(selection, memory)| self.write(selection, *memory, transfer))
    }
    /// Writes from a buffer that the callee keeps until done; no copy of it is needed. `Bytes` is made from any owned
    /// buffer.
    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: Transfer,
    ) -> Result<Request> {
        self.write(selection, MemoryView { data: &data, layout }, transfer).map(|()| Request::done())
    }
    /// Says that the selected elements will be read soon by this rank. Only a hint: it never fails, and never waits for
    /// storage.
    fn prefetch(&self, _selection: &Selection) {}
    /// In words what a transfer of these elements by this rank alone would do, and why; `None` if there is nothing to
    /// tell. Not collective.
    fn explain(&self, _selection: &Selection, _layout: &MemoryLayout, _writes: bool) -> Result<Option<String>> {
        Ok(None)
    }
    /// Whether other threads than the program's may transfer its elements. If not, layers do so only within calls of the
    /// program: the array may belong to a library that nobody else may enter. May be asked by any thread, and may change
    /// only while no layer holds anything of the array back. Not collective.
    fn any_thread(&self) -> bool {
        true
    }
    /// Which array it is, where a name does not tell: names may be moved, and a new array may have the name of one that was
    /// deleted. Equal for all handles of an array as long as it stays the same, and never given to another one of the
    /// container. `None`: the name tells. Layers keep what they know of an array by this. Not collective.
    fn object(&self) -> Option<u64> {
        None
    }
    /// Hands what this rank has written to the array, and a layer holds back, to the format below. Not collective.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
    /// Changes the shape. Collective.
    fn resize(&self, shape: &[u64]) -> Result<()>;
    /// Releases the array. Collective. A second close does nothing.
    fn close(&self) -> Result<()>;
}
