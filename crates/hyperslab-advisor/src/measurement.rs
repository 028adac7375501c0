//! One array on one stack, and the accesses that are measured on it.

use hyperslab_core::workload::{
    ArrayDeclaration, FileDeclaration, Header, Step, StepSource, Steps, WORKLOAD_VERSION, Workload,
};
use hyperslab_core::{
    ArraySpec, Datatype, Dims, Durability, Fill, OpenMode, Result, Selection, Stack, TransferMode, dims,
};
use hyperslab_model::Class;
use std::sync::Arc;

/// An array.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredArray {
    /// Type of its elements.
    pub dtype: Datatype,
    /// Its extents.
    pub shape: Dims,
    /// Its values, which matter to codecs.
    pub fill: Fill,
}

impl MeasuredArray {
    /// What it is called in timings.
    pub fn name(&self) -> String {
        let values = match self.fill {
            Fill::Index => ", counted",
            Fill::Ramp => ", smooth",
            _ => "",
        };
        format!("{} of {}{values}", dims::display(&self.shape), self.dtype)
    }
}

/// A way to go over an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// All at once.
    Whole,
    /// In bands along the slowest dimension, in order.
    Bands,
    /// Single rows, here and there.
    Rows,
    /// Single columns.
    Columns,
    /// Boxes, here and there; to write, parts of chunks that are read, changed and written again.
    Boxes,
    /// Every other element of large parts.
    Strided,
    /// Single elements, each from another place.
    Points,
    /// Many single elements in one request.
    Scattered,
}

impl Access {
    /// What is done to write.
    pub const WRITES: [Self; 3] = [Self::Whole, Self::Bands, Self::Boxes];
    /// What is done to read.
    pub const READS: [Self; 7] =
        [Self::Whole, Self::Rows, Self::Columns, Self::Boxes, Self::Strided, Self::Points, Self::Scattered];
    /// What of that is done from the device too.
    pub const COLD_READS: [Self; 2] = [Self::Whole, Self::Boxes];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Bands => "bands",
            Self::Rows => "rows",
            Self::Columns => "columns",
            Self::Boxes => "boxes",
            Self::Strided => "strided",
            Self::Points => "points",
            Self::Scattered => "scattered",
        }
    }

    /// The requests.
    fn selections(self, shape: &[u64]) -> Result<Vec<Selection>> {
        let (rows, last) = (shape[0], shape.len() - 1);
        // Always the same, and spread over the array.
        let spread = |i: u64, extent: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % extent;
        let slab = |start: &dyn Fn(usize) -> u64, count: &dyn Fn(usize) -> u64| {
            let extents = |of: &dyn Fn(usize) -> u64| (0..shape.len()).map(of).collect::<Dims>();
            Selection::dense(&extents(start), &extents(count))
        };
        match self {
            Self::Whole => Ok(vec![Selection::all(shape)?]),
            Self::Bands => {
                let band = rows.div_ceil(64);
                let bands = (0..rows.div_ceil(band)).map(|i| i * band);
                bands
                    .map(|first| {
                        slab(&|d| if d == 0 { first } else { 0 }, &|d| {
                            if d == 0 { band.min(rows - first) } else { shape[d] }
                        })
                    })
                    .collect()
            }
            Self::Rows => (0..64)
                .map(|i| slab(&|d| if d == 0 { spread(i, rows) } else { 0 }, &|d| if d == 0 { 1 } else { shape[d] }))
                .collect(),
            Self::Columns => (0..8)
                .map(|i| {
                    slab(&|d| if d == last { spread(i, shape[last]) } else { 0 }, &|d| {
                        if d == last { 1 } else { shape[d] }
                    })
                })
                .collect(),
            Self::Boxes => (0..48)
                .map(|i| {
                    let count = |d: usize| (shape[d] / 10).max(1);
                    slab(&|d| spread(i * 7 + d as u64, shape[d] - count(d) + 1), &count)
                })
                .collect(),
            Self::Strided => (0..4)
                .map(|i| {
                    let count = |d: usize| (shape[d] / 6).max(1);
                    let start = |d: usize| spread(i * 5 + d as u64, shape[d] - (2 * count(d) - 1).min(shape[d]) + 1);
                    let extents = |of: &dyn Fn(usize) -> u64| (0..shape.len()).map(of).collect::<Dims>();
                    let (step, block) = (Dims::from_elem(2, shape.len()), Dims::from_elem(1, shape.len()));
                    Selection::strided(&extents(&start), &step, &extents(&count), &block)
                })
                .collect(),
            Self::Points => (0..64).map(|i| slab(&|d| spread(i * 11 + d as u64, shape[d]), &|_| 1)).collect(),
            Self::Scattered => {
                let mut all = Selection::empty(shape.len());
                for i in 0..256 {
                    all = all.union_with(&slab(&|d| spread(i * 13 + d as u64, shape[d]), &|_| 1)?)?;
                }
                Ok(vec![all])
            }
        }
    }
}

/// One array on one stack.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The array.
    pub subject: MeasuredArray,
    /// Trials of one layout differ in the format only, and can be chosen among.
    pub layout: String,
    /// Where it is stored.
    pub stack: Stack,
    /// The coefficients that it helps to find.
    pub class: Class,
}

impl Measurement {
    /// What it is called in timings.
    pub fn name(&self) -> String {
        format!("{} on {}", self.subject.name(), self.stack)
    }

    /// Writes the array in this way; `durable` until it is on the device.
    pub fn write(&self, file: &str, access: Access, durable: bool) -> Result<Workload> {
        let transfers = access.selections(&self.subject.shape)?;
        let source = Source { writes: true, durable, ranks: 1, transfers };
        self.workload(FileDeclaration::created(file), 1, None, source)
    }

    /// Reads the array in this way.
    pub fn read(&self, file: &str, access: Access) -> Result<Workload> {
        let transfers = access.selections(&self.subject.shape)?;
        let source = Source { writes: false, durable: false, ranks: 1, transfers };
        self.workload(FileDeclaration::read(file), 1, None, source)
    }

    /// Has several ranks write or read the array, each a part of the rows.
    pub fn shared(&self, file: &str, ranks: usize, writes: bool) -> Result<Workload> {
        let shape = &self.subject.shape;
        let share = |rank: usize| shape[0] * rank as u64 / ranks as u64;
        let part = |rank: usize| {
            let (mut start, mut count) = (Dims::from_elem(0, shape.len()), shape.clone());
            (start[0], count[0]) = (share(rank), share(rank + 1) - share(rank));
            Selection::dense(&start, &count)
        };
        let transfers = (0..ranks).map(part).collect::<Result<_>>()?;
        let file = if writes { FileDeclaration::created(file) } else { FileDeclaration::read(file) };
        self.workload(file, ranks, None, Source { writes, durable: false, ranks, transfers })
    }

    /// Has several ranks make or open such arrays, `OPENED` of them, and close them again.
    pub fn opened(&self, file: &str, ranks: usize, makes: bool) -> Result<Workload> {
        let file = if makes { FileDeclaration::created(file) } else { FileDeclaration::read(file) };
        self.workload(file, ranks, None, Opening { makes })
    }

    /// Does these steps to the array, which may grow to `max_shape`.
    pub fn workload(
        &self,
        file: FileDeclaration,
        ranks: usize,
        max_shape: Option<Vec<Option<u64>>>,
        source: impl StepSource + 'static,
    ) -> Result<Workload> {
        let spec = ArraySpec { max_shape, ..ArraySpec::new(self.subject.dtype.clone(), &self.subject.shape) };
        let header = Header {
            version: WORKLOAD_VERSION,
            name: "train".into(),
            about: self.name(),
            ranks,
            seed: 1,
            recorded: None,
            files: vec![file],
            arrays: vec![ArrayDeclaration { spec, fill: self.subject.fill.clone() }],
        };
        Workload::new(header, Arc::new(source))
    }
}

/// The steps: one array, opened or made, transferred, closed.
#[derive(Debug)]
struct Source {
    writes: bool,
    durable: bool,
    ranks: usize,
    /// By rank, if there are several.
    transfers: Vec<Selection>,
}

impl StepSource for Source {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        let (how, name): (OpenMode, Arc<str>) =
            (if self.writes { OpenMode::Create } else { OpenMode::Read }, "array".into());
        let open = match self.writes {
            true => Step::Create { slot: 0, file: 0, array: 0, name },
            false => Step::Open { slot: 0, file: 0, array: 0, name },
        };
        let mine = if self.ranks > 1 { &self.transfers[rank..=rank] } else { &self.transfers };
        let transfers = mine.iter().map(|selection| {
            let (selection, memory, transfer) = (selection.clone(), Arc::default(), TransferMode::Independent);
            match self.writes {
                true => Step::Write { slot: 0, selection, memory, transfer },
                false => Step::Read { slot: 0, selection, memory, transfer },
            }
        });
        let flush = self.durable.then_some(Step::Flush { file: 0, how: Durability::Durable });
        let after = flush.into_iter().chain([Step::CloseArray { slot: 0 }, Step::CloseFile { file: 0 }]);
        Ok(Box::new([Step::OpenFile { file: 0, how }, open].into_iter().chain(transfers).chain(after).map(Ok)))
    }
}

/// Arrays that [`Measurement::opened`] is about.
pub const OPENED: u32 = 8;

/// The steps: some arrays, opened or made, closed.
#[derive(Debug)]
struct Opening {
    makes: bool,
}

impl StepSource for Opening {
    fn steps(&self, _: usize) -> Result<Steps<'_>> {
        let how = if self.makes { OpenMode::Create } else { OpenMode::Read };
        let arrays = (0..OPENED).flat_map(|number| {
            let name: Arc<str> = format!("array {number}").into();
            let open = match self.makes {
                true => Step::Create { slot: 0, file: 0, array: 0, name },
                false => Step::Open { slot: 0, file: 0, array: 0, name },
            };
            [open, Step::CloseArray { slot: 0 }]
        });
        let all = [Step::OpenFile { file: 0, how }].into_iter().chain(arrays).chain([Step::CloseFile { file: 0 }]);
        Ok(Box::new(all.map(Ok)))
    }
}
