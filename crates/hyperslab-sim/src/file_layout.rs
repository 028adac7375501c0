//! Where the elements of arrays lie in files: the layout of each format, from its options and the order of creation.

use crate::extent_locks::PAGE;
use hyperslab_core::default_chunk::{cut_to_fixed_extents, for_growth, grows, near_cube, target_bytes};
use hyperslab_core::dims::byte_count;
use hyperslab_core::{ArraySpec, ChunkGrid, Dims, Error, Result, Selection, Shapes, Stack, StackElement};

/// Bytes of a file, or of one of the objects that an array is stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileExtent {
    /// Number of the object in its file; 0 unless the format stores many.
    pub object: u64,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// What a selection becomes in the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileRanges {
    /// Ranges in order; neighbours are joined. A part of them if `scale` is above 1.
    pub extents: Vec<FileExtent>,
    /// How many times more there is than was listed.
    pub scale: f64,
    /// Chunks that are touched.
    pub chunks: f64,
    /// Chunks that are read before they are written, since they are covered in part.
    pub partial_chunks: f64,
    /// Bytes of elements.
    pub bytes: f64,
    /// Ends of pieces inside a page; two pieces that meet there have one in common.
    pub page_ends: f64,
}

/// How a format lays out its files.
#[derive(Debug, Clone, PartialEq)]
pub struct FileLayout {
    kind: FormatFamily,
    /// Objects begin at multiples of this.
    pub align: u64,
    /// The library around MPI-IO that calls go through, if any.
    pub library: bool,
    /// Calls go to the file system itself, not through MPI-IO.
    pub posix: bool,
    chunk: Option<Shapes>,
    chunked: Option<bool>,
    shard: Option<Dims>,
    meta_block: u64,
    latest: bool,
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatFamily {
    Raw,
    Hdf5,
    Classic,
    Objects,
}

/// What calls go through on their way to the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CalledThrough {
    Posix,
    MpiIo,
    Library,
}

/// The formats whose layout is known.
const KNOWN: [(&str, FormatFamily, CalledThrough); 6] = [
    ("hdf5", FormatFamily::Hdf5, CalledThrough::Library),
    ("netcdf4", FormatFamily::Hdf5, CalledThrough::Library),
    ("netcdf3", FormatFamily::Classic, CalledThrough::Library),
    ("zarr", FormatFamily::Objects, CalledThrough::Posix),
    ("posix", FormatFamily::Raw, CalledThrough::Posix),
    ("mpiio", FormatFamily::Raw, CalledThrough::MpiIo),
];

/// Where one array lies.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayPlacement {
    shape: Dims,
    element: u64,
    /// First byte of the first chunk, or of all.
    base: u64,
    chunks: Option<Chunked>,
}

#[derive(Debug, Clone, PartialEq)]
struct Chunked {
    grid: ChunkGrid,
    /// Bytes from one chunk to the next.
    step: u64,
    bytes: u64,
    index: ChunkIndex,
    /// Chunks are objects of their own.
    objects: bool,
}

/// Which index of chunks is written between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkIndex {
    /// None, or all of it lies before the first chunk.
    Before,
    /// A tree, whose nodes of this many bytes come after the first 64 chunks, and then after every 57.
    Tree(u64),
    /// An extensible array, whose blocks of this many bytes come after 116 chunks, 76 more, and then after every 128.
    Extensible(u64),
}

impl ChunkIndex {
    /// Bytes of the index that lie before chunk `number`.
    pub fn before(self, number: u64) -> u64 {
        match self {
            Self::Before => 0,
            Self::Tree(node) => if number < 64 { 0 } else { 1 + (number - 64) / 57 }.saturating_mul(node),
            Self::Extensible(block) => {
                let blocks = match number {
                    0..116 => 0,
                    116..192 => 1,
                    _ => 2 + (number - 192) / 128,
                };
                blocks.saturating_mul(block)
            }
        }
    }
}

/// Bytes of a node of the tree of chunks, as libhdf5 writes it.
const TREE_NODE: u64 = 2096;
/// Bytes before the data of an ordinary file of libhdf5: superblock, root group, object header.
const HEADER: u64 = 2048;

impl FileLayout {
    /// The layout of a stack's format.
    pub fn of(stack: &Stack) -> Result<Self> {
        let format = &stack.format;
        let Some(&(_, kind, through)) = KNOWN.iter().find(|(name, ..)| *name == format.name) else {
            let names: Vec<&str> = KNOWN.iter().map(|(name, ..)| *name).collect();
            return Err(Error::unsupported("simulate", format!("where {} puts bytes is not known", format.name))
                .hint(format!("use a stack on one of {}", names.join(", "))));
        };
        let choices = [("auto", None), ("contiguous", Some(false)), ("compact", Some(false)), ("chunked", Some(true))];
        Ok(Self {
            kind,
            align: format.size("align")?.unwrap_or(1).max(1),
            library: through == CalledThrough::Library,
            posix: through == CalledThrough::Posix,
            chunk: format.shapes("chunk")?,
            chunked: format.choice("layout", &choices)?.flatten(),
            shard: shard(format, kind)?,
            meta_block: format.size("meta_block")?.unwrap_or(2048),
            latest: format.get("libver").is_some_and(|version| ["v110", "v112", "v114", "latest"].contains(&version)),
            next: 0,
        })
    }

    /// An empty file.
    pub fn emptied(&self) -> Self {
        Self { next: 0, ..self.clone() }
    }

    /// Whether chunks or arrays are objects, each found by its name.
    pub fn stores_objects(&self) -> bool {
        self.kind == FormatFamily::Objects
    }

    /// Places an array behind those that are there.
    pub fn place(&mut self, spec: &ArraySpec) -> Result<ArrayPlacement> {
        let element = spec.dtype.size().max(1);
        let bytes = byte_count(&spec.shape, element)?;
        let chunk = self.chunk_of(spec);
        let header = match self.kind {
            FormatFamily::Raw => 0,
            FormatFamily::Objects => 0,
            FormatFamily::Classic => 512,
            FormatFamily::Hdf5 => HEADER,
        };
        let base = self.next.saturating_add(header).next_multiple_of(self.align);
        let Some(chunk) = chunk else {
            self.next = base.saturating_add(bytes);
            return Ok(ArrayPlacement { shape: spec.shape.clone(), element, base, chunks: None });
        };
        let grid = ChunkGrid::new(&spec.shape, &chunk)?;
        let chunk_bytes = byte_count(&chunk, element)?;
        let step = chunk_bytes.next_multiple_of(self.align);
        let unit = TREE_NODE.next_multiple_of(self.align);
        let index = match (self.kind, self.latest) {
            _ if self.kind == FormatFamily::Objects || self.meta_block >= 64 << 10 => ChunkIndex::Before,
            (_, false) => ChunkIndex::Tree(unit),
            (_, true) if spec.max_shape.is_some() => ChunkIndex::Extensible(unit),
            (_, true) => ChunkIndex::Before,
        };
        let objects = self.kind == FormatFamily::Objects;
        let chunks = Chunked { step, bytes: chunk_bytes, index, objects, grid };
        let number = chunks.grid.len();
        let used = step.saturating_mul(number).saturating_add(index.before(number));
        self.next = if objects { 0 } else { base.saturating_add(used) };
        Ok(ArrayPlacement { shape: spec.shape.clone(), element, base, chunks: Some(chunks) })
    }

    fn chunk_of(&self, spec: &ArraySpec) -> Option<Dims> {
        let rank = spec.shape.len();
        let asked = self.chunk.as_ref().and_then(|chunk| chunk.of_rank(rank)).or(spec.chunk.as_ref()).cloned();
        let must = grows(spec) || !spec.filters.is_empty();
        match self.kind {
            _ if rank == 0 => None,
            FormatFamily::Raw | FormatFamily::Classic => None,
            FormatFamily::Objects => {
                let shard = self.shard.clone().filter(|shard| shard.len() == rank);
                Some(shard.or(asked).unwrap_or_else(|| near_cube(spec)))
            }
            FormatFamily::Hdf5 if self.chunked.unwrap_or(must || asked.is_some()) => {
                let own = || if grows(spec) { for_growth(spec, target_bytes(self.align)) } else { near_cube(spec) };
                Some(cut_to_fixed_extents(asked.unwrap_or_else(own), spec))
            }
            FormatFamily::Hdf5 => None,
        }
    }
}

fn shard(format: &StackElement, kind: FormatFamily) -> Result<Option<Dims>> {
    Ok(match kind {
        FormatFamily::Objects => format.shapes("shard")?.and_then(|shapes| shapes.single().cloned()),
        _ => None,
    })
}

impl ArrayPlacement {
    /// The same with other extents, after a growth.
    pub fn resized(&self, shape: &[u64]) -> Result<Self> {
        let mut grown = self.clone();
        grown.shape = shape.into();
        if let Some(chunks) = &mut grown.chunks {
            chunks.grid = ChunkGrid::new(shape, chunks.grid.chunk())?;
        }
        Ok(grown)
    }

    /// Whether it is stored in chunks.
    pub fn is_chunked(&self) -> bool {
        self.chunks.is_some()
    }

    /// Whether chunks are objects of their own.
    pub fn stores_objects(&self) -> bool {
        self.chunks.as_ref().is_some_and(|chunks| chunks.objects)
    }

    /// Where the elements of `selection` lie. Lists at most `most` ranges, and says how many times more there are.
    pub fn ranges(&self, selection: &Selection, most: usize) -> Result<FileRanges> {
        selection.check_inside(&self.shape)?;
        let bytes = selection.len() as f64 * self.element as f64;
        let mut found = FileRanges { extents: Vec::new(), scale: 1.0, bytes, ..FileRanges::default() };
        if selection.is_empty() {
            return Ok(found);
        }
        let Some(chunks) = &self.chunks else {
            for run in selection.runs(&self.shape, self.element)?.take(most) {
                found.push(FileExtent { object: 0, offset: self.base + run.offset, len: run.len });
            }
            return Ok(found.scaled());
        };
        let whole: u64 = chunks.grid.chunk().iter().product();
        for subset in selection.split_by_chunk(&chunks.grid)? {
            if found.extents.len() >= most {
                break;
            }
            let subset = subset?;
            let number = linear(&subset.chunk, chunks.grid.counts());
            found.chunks += 1.0;
            let (object, begin) = match chunks.objects {
                true => (number + 1, 0),
                false => (0, self.base + number * chunks.step + chunks.index.before(number)),
            };
            let covered = subset.within.len();
            if covered == whole {
                found.push(FileExtent { object, offset: begin, len: chunks.bytes });
                continue;
            }
            found.partial_chunks += 1.0;
            let room = most.saturating_sub(found.extents.len()).max(1);
            for run in subset.within.runs(chunks.grid.chunk(), self.element)?.take(room) {
                found.push(FileExtent { object, offset: begin + run.offset, len: run.len });
            }
        }
        Ok(found.scaled())
    }
}

impl FileRanges {
    fn push(&mut self, extent: FileExtent) {
        self.page_ends += f64::from(!extent.offset.is_multiple_of(PAGE));
        match self.extents.last_mut() {
            Some(last) if last.object == extent.object && last.offset + last.len == extent.offset => {
                last.len += extent.len;
            }
            last => {
                let end = last.map_or(0, |last| last.offset + last.len);
                self.page_ends += f64::from(!end.is_multiple_of(PAGE));
                self.extents.push(extent);
            }
        }
    }

    fn scaled(mut self) -> Self {
        let end = self.extents.last().map_or(0, |last| last.offset + last.len);
        self.page_ends += f64::from(!end.is_multiple_of(PAGE));
        let listed: f64 = self.extents.iter().map(|extent| extent.len as f64).sum();
        if listed > 0.0 && listed < self.bytes {
            self.scale = self.bytes / listed;
            self.chunks *= self.scale;
            self.partial_chunks *= self.scale;
            self.page_ends *= self.scale;
        }
        self
    }
}

/// The number of a chunk in row-major order.
fn linear(chunk: &[u64], counts: &[u64]) -> u64 {
    chunk.iter().zip(counts).fold(0, |number, (at, count)| number * count + at)
}
