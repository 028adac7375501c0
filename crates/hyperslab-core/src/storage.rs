//! How an array is stored. Decided here once, from the array and the options of the stack's format: formats store by it, models
//! count by it, the advisor asks it.

mod file_rules;
mod store_rules;

pub use file_rules::{AllocationTime, FileLayout, FileRules, FillTime};
pub use store_rules::StoreRules;

use crate::{ArraySpec, Dims, Error, Filter, Result, Shapes, dims};

/// By what a format decides how arrays are stored, its options read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageRules {
    /// All elements in one piece, in row-major order, as they are in memory.
    Raw,
    /// One file of pieces and chunks.
    File(FileRules),
    /// A file for each chunk, or for each shard of several chunks.
    Store(StoreRules),
}

/// Where the elements of an array are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredLayout {
    /// In one piece.
    Contiguous,
    /// In one piece, in the array's description.
    Compact,
    /// In chunks of these extents.
    Chunks(Dims),
    /// In files that hold several chunks.
    Shards {
        /// Extents of a file.
        file: Dims,
        /// Extents of a chunk in it.
        chunk: Dims,
    },
}

/// What was decided for an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArray {
    /// Where its elements are.
    pub layout: StoredLayout,
    /// Filters of its chunks, in the order of writing.
    pub filters: Vec<Filter>,
    /// Each chunk has a checksum besides its filters.
    pub crc32c: bool,
    /// When space is allocated; `None` leaves that to the library.
    pub allocation: Option<AllocationTime>,
}

impl StorageRules {
    /// Decides. Refuses what contradicts itself, or what the format cannot store.
    pub fn decide(&self, spec: &ArraySpec) -> Result<StoredArray> {
        match self {
            Self::Raw => spec.check().map(|()| StoredArray::plain(StoredLayout::Contiguous)),
            Self::File(rules) => rules.decide(spec),
            Self::Store(rules) => rules.decide(spec),
        }
    }

    /// Bytes at whose multiples large objects begin; 1 where it makes no difference.
    pub fn align(&self) -> u64 {
        match self {
            Self::File(rules) => rules.align.unwrap_or(1).max(1),
            Self::Raw | Self::Store(_) => 1,
        }
    }
}

impl StoredArray {
    /// Without filters.
    fn plain(layout: StoredLayout) -> Self {
        Self { layout, filters: Vec::new(), crc32c: false, allocation: None }
    }
}

impl StoredLayout {
    /// Extents of the chunks, if there are any.
    pub fn chunk(&self) -> Option<&Dims> {
        match self {
            Self::Chunks(chunk) | Self::Shards { chunk, .. } => Some(chunk),
            Self::Contiguous | Self::Compact => None,
        }
    }
}

/// The shape that an option asks for arrays of `rank` dimensions. Refuses a single one of another number of dimensions.
fn asked<'a>(option: &str, shapes: Option<&'a Shapes>, rank: usize) -> Result<Option<&'a Dims>> {
    match shapes.and_then(Shapes::single) {
        Some(extents) if extents.len() != rank => Err(Error::invalid(
            "create array",
            format!("{option}={} has {} dimensions, the array {rank}", dims::display(extents), extents.len()),
        )
        .hint(format!(
            "give a {option} for each number of dimensions, such as {option}=1024;64x64, or leave the option out"
        ))),
        _ => Ok(shapes.and_then(|shapes| shapes.of_rank(rank))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Datatype;

    fn shapes(text: &str) -> Option<Shapes> {
        format!("x(chunk={text})").parse::<crate::Stack>().unwrap().format.shapes("chunk").unwrap()
    }

    #[test]
    fn raw_files_are_in_one_piece() {
        let mut spec = ArraySpec::new(Datatype::F32, &[10]);
        spec.filters = vec![Filter::Shuffle];
        assert_eq!(StorageRules::Raw.decide(&spec).unwrap(), StoredArray::plain(StoredLayout::Contiguous));
        spec.fill_value = Some(vec![1]);
        assert!(StorageRules::Raw.decide(&spec).is_err(), "it contradicts itself");
    }

    #[test]
    fn stores_have_chunks_or_shards_of_whole_chunks() {
        let spec = ArraySpec::new(Datatype::F32, &[100, 100]);
        let decide = |rules: StoreRules| StorageRules::Store(rules).decide(&spec);
        let chunks = decide(StoreRules { chunk: shapes("10x20"), ..StoreRules::default() }).unwrap();
        assert_eq!(chunks.layout, StoredLayout::Chunks(Dims::from_slice(&[10, 20])));
        let sharded = StoreRules { chunk: shapes("10x20"), shard: shapes("20x20"), ..StoreRules::default() };
        let shards = decide(sharded.clone()).unwrap();
        assert_eq!(shards.layout.chunk().unwrap().as_slice(), [10, 20]);
        assert!(decide(StoreRules { shard: shapes("25x20"), ..sharded.clone() }).is_err());
        assert!(decide(StoreRules { chunk: shapes("10"), ..sharded }).unwrap_err().to_string().contains("the array 2"));
        let filtered = StoreRules { filters: Some(vec![Filter::Zstd(3)]), crc32c: true, ..StoreRules::default() };
        let stored = decide(filtered).unwrap();
        assert_eq!((stored.filters, stored.crc32c), (vec![Filter::Zstd(3)], true));
    }

    #[test]
    fn aligned_chunks_are_allocated_early_unless_the_user_says_otherwise() {
        let spec = ArraySpec::new(Datatype::F32, &[100]);
        let aligned = FileRules { chunk: shapes("10"), align: Some(4096), ..FileRules::default() };
        let allocation = |rules: &FileRules| rules.decide(&spec).unwrap().allocation;
        assert_eq!(allocation(&aligned), Some(AllocationTime::Early));
        assert_eq!(allocation(&FileRules { deflate: Some(1), ..aligned.clone() }), None);
        assert_eq!(allocation(&FileRules { align: None, ..aligned.clone() }), None);
        let late = FileRules { allocation: Some(AllocationTime::Late), ..aligned };
        assert_eq!(allocation(&late), Some(AllocationTime::Late));
    }
}
