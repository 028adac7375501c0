//! E3SM's I/O: hundreds of variables of a climate model, dealt out to ranks by irregular maps.

mod blob;
mod compact;
mod decomposition;
mod generate;
mod pio;
mod steps;

pub use compact::compact;
pub use decomposition::{Decomposition, Requests, Run};

use crate::direction::Direction;
use crate::named::{COLLECTIVE, Files, Growth, Kernel, Phase, SEED, Values, key};
use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, WORKLOAD_VERSION, Workload};
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, Fill, OptionSpec, Result, TransferMode, dims};
use std::sync::Arc;
use std::time::Duration;
use steps::RecordingSteps;

/// Which component of the model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum E3smCase {
    /// The atmosphere, with three maps.
    F,
    /// The ocean, with six.
    G,
    /// The land, with five.
    I,
}

/// Which of the history files of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The one with most variables.
    H0,
    /// The second one of the atmosphere and the land.
    H1,
}

/// How elements lie in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum E3smLayout {
    /// Each at its place in the variable.
    Canonical,
    /// Those of a rank one after the other, rank after rank; the maps are in the file.
    Blob,
}

/// Parameters of the kernel.
#[derive(Debug, Clone)]
pub struct E3sm {
    /// Number of ranks; each stands for neighbouring ranks of the maps.
    pub ranks: usize,
    /// Beginning of the file names, relative to the run's directory.
    pub file: String,
    /// Which component writes.
    pub case: E3smCase,
    /// Its maps, D1 first.
    pub maps: Arc<Vec<Decomposition>>,
    /// How elements lie in the file.
    pub layout: E3smLayout,
    /// Time steps.
    pub records: u64,
    /// Records between two flushes.
    pub flush_every: u64,
    /// Variables can grow along time; chunks are one record then.
    pub unlimited: bool,
    /// Compute time between records.
    pub compute: Duration,
    /// Whether ranks transfer together.
    pub transfer: TransferMode,
    /// Seed of the data.
    pub seed: u64,
}

impl E3smCase {
    /// The component whose maps are so many.
    pub fn of_maps(maps: usize) -> Option<Self> {
        match maps {
            3 => Some(Self::F),
            6 => Some(Self::G),
            5 => Some(Self::I),
            _ => None,
        }
    }

    /// Generated maps with the statistics of the real ones, for so many ranks.
    pub fn maps(self, ranks: u64) -> Result<Vec<Decomposition>> {
        match self {
            Self::F => generate::atmosphere(ranks, 72),
            Self::G => generate::ocean(ranks, 100),
            Self::I => generate::land(ranks),
        }
    }

    /// Its history files.
    pub fn histories(self) -> &'static [History] {
        match self {
            Self::F | Self::I => &[History::H0, History::H1],
            Self::G => &[History::H0],
        }
    }

    /// Variables of each map, and of none.
    fn variables(self, history: History) -> (&'static [usize], usize) {
        match (self, history) {
            (Self::F, History::H0) => (&[1, 323, 63], 27),
            (Self::F, History::H1) => (&[1, 22, 1], 27),
            (Self::G, _) => (&[6, 2, 25, 2, 2, 4], 11),
            (Self::I, History::H0) => (&[465, 75, 4, 1, 1], 14),
            (Self::I, History::H1) => (&[465, 69, 2, 1, 1], 14),
        }
    }

    fn dtype(self) -> Datatype {
        if self == Self::G { Datatype::F64 } else { Datatype::F32 }
    }
}

impl E3sm {
    /// Creates one of the history files with all its variables, writes them record after record, flushes and closes.
    pub fn write(&self, history: History) -> Result<Workload> {
        self.workload(history, Direction::Write)
    }

    /// Opens one of the history files, and reads by every rank what it wrote.
    pub fn read(&self, history: History) -> Result<Workload> {
        self.workload(history, Direction::Read)
    }

    fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::invalid("plan E3SM", message));
        if self.ranks == 0 || self.records == 0 || self.flush_every == 0 {
            return bad("ranks, records and records between flushes must be at least 1".into());
        }
        let expected = self.case.variables(History::H0).0.len();
        if self.maps.len() != expected {
            return bad(format!("{} maps; case {:?} has {expected}", self.maps.len(), self.case));
        }
        self.maps.iter().try_for_each(Decomposition::check)
    }

    /// Extents of a record of the variables of a map.
    fn record(&self, map: &Decomposition) -> Dims {
        match self.layout {
            E3smLayout::Canonical => map.dims.clone(),
            E3smLayout::Blob => [map.elements()].into_iter().collect(),
        }
    }

    fn declarations(&self, direction: Direction) -> Result<Vec<ArrayDeclaration>> {
        let records = if self.unlimited && direction == Direction::Write { 1 } else { self.records };
        let declare = |dtype: Datatype, record: &[u64], fill: Fill| {
            let shape: Dims = [records].into_iter().chain(record.iter().copied()).collect();
            let mut spec = ArraySpec::new(dtype, &shape);
            if self.unlimited {
                spec.max_shape = Some([None].into_iter().chain(record.iter().copied().map(Some)).collect());
                spec.chunk = Some([1].into_iter().chain(record.iter().map(|extent| (*extent).max(1))).collect());
            }
            ArrayDeclaration { spec, fill }
        };
        let of_maps = self.maps.iter().map(|map| declare(self.case.dtype(), &self.record(map), Fill::Random));
        let mut all: Vec<ArrayDeclaration> = of_maps.collect();
        all.push(declare(Datatype::F64, &[], Fill::Index));
        if self.layout == E3smLayout::Blob {
            all.extend(blob::declarations(&self.maps, self.ranks)?);
        }
        Ok(all)
    }

    fn workload(&self, history: History, direction: Direction) -> Result<Workload> {
        self.check()?;
        let (of_maps, others) = self.case.variables(history);
        let suffix = if history == History::H0 { "h0" } else { "h1" };
        let name = match self.case {
            E3smCase::G => format!("{}.h5", self.file),
            _ => format!("{}_{suffix}.h5", self.file),
        };
        let requests: usize = self.maps.iter().flat_map(|map| &map.requests).map(|requests| requests.data.len()).sum();
        let header = Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: format!("e3sm-{suffix}"),
            about: format!(
                "{} {} records of {} variables by maps of {} ranks with {requests} requests, {}",
                direction.verb(),
                self.records,
                of_maps.iter().sum::<usize>() + others,
                self.maps.first().map_or(0, |map| map.requests.len()),
                if self.layout == E3smLayout::Blob { "blobs" } else { "canonical" },
            ),
            ranks: self.ranks,
            seed: self.seed,
            files: vec![match direction {
                Direction::Write => FileDeclaration::created(name),
                Direction::Read => FileDeclaration::read(name),
            }],
            arrays: self.declarations(direction)?,
        };
        for array in &header.arrays {
            dims::byte_count(&[array.spec.shape.iter().product(), self.records], array.spec.dtype.size())?;
        }
        let tables = header.arrays[of_maps.len() + 1..].iter().map(|array| array.spec.shape.clone()).collect();
        let recording = RecordingSteps { kernel: self.clone(), of_maps, others, tables, direction };
        crate::batches::workload(header, recording)
    }
}

const KEYS: &[OptionSpec] = &[
    key("records", "N", "1", "time steps; published runs have 25 (F), 1 (G) and 240 (I)"),
    key(
        "layout",
        "canonical|log|blob",
        "canonical",
        "each element at its place; the layer loglayout; a piece per rank",
    ),
    key(
        "map",
        "FILE[,FILE...]",
        "",
        "maps: a converted file, or PIO's *.dat, one for each of D1, D2, ... [default: generated]",
    ),
    key("map_ranks", "N", "16", "ranks of generated maps; published runs have 21600 (F), 9600 (G) and 1344 (I)"),
    key("history", "h0|h1|both", "both", "which history files; the ocean has one"),
    key("operation", "write|read|both", "write", "what is run; read alone makes its files first"),
    key("flush", "N", "1", "records between two flushes"),
    key("unlimited", "yes|no", "yes", "variables can grow along time, in chunks of one record"),
    key("compute", "TIME", "0", "pause between records"),
    COLLECTIVE,
    SEED,
];

/// The atmosphere by name.
pub const F: Kernel = Kernel {
    name: "e3sm-f",
    about: "history files of a climate model's atmosphere: hundreds of variables in tiny pieces",
    stands_for: "E3SM-IO, case F: the atmosphere of the climate model E3SM writes 414 variables (h0) and 51 (h1) of float32. 387 and 24 \
        of them are dealt out by maps: D1 in a few runs of columns, D2 in four combs of single columns one after the other, D3 \
        the same on 72 levels, so that a rank's part of a variable is thousands of pieces of 4 bytes. 16.2 MiB a record with \
        the map of 16 ranks. Ranks of the map are shared out to the ranks of the run.",
    keys: KEYS,
    ranks: 2,
    growth: Growth::Total("map_ranks"),
    plan: |values, ranks, files| plan(E3smCase::F, "e3sm-f", values, ranks, files),
};

/// The ocean by name.
pub const G: Kernel = Kernel {
    name: "e3sm-g",
    about: "history file of a climate model's ocean: rows of levels of an unstructured mesh",
    stands_for: "E3SM-IO, case G: the ocean of the climate model E3SM writes 52 variables of float64, 41 of them dealt out by six maps: \
        short runs of cells (D1) and edges (D2, falling), and whole rows of 100 levels of cells, edges and vertices and 101 of \
        interfaces (D3 to D6), in no order and unevenly.",
    keys: KEYS,
    ranks: 2,
    growth: Growth::Total("map_ranks"),
    plan: |values, ranks, files| plan(E3smCase::G, "e3sm-g", values, ranks, files),
};

/// The land by name.
pub const I: Kernel = Kernel {
    name: "e3sm-i",
    about: "history files of a climate model's land: a grid of which 41 % are written",
    stands_for: "E3SM-IO, case I: the land of the climate model E3SM writes 560 variables (h0) and 552 (h1) of float32. Maps D1 to D5 \
        deal out the land cells of a grid of 96 x 144, 41 % of it, in runs of 1 to 144 cells, and the same on the levels of the \
        ground, of lakes, of kinds of land and of plants. What is not land is never written.",
    keys: KEYS,
    ranks: 2,
    growth: Growth::Total("map_ranks"),
    plan: |values, ranks, files| plan(E3smCase::I, "e3sm-i", values, ranks, files),
};

fn plan(case: E3smCase, name: &str, values: &Values, ranks: usize, files: &dyn Files) -> Result<Vec<Phase>> {
    let maps = match values.text("map") {
        "" => case.maps(values.positive("map_ranks")?)?,
        paths => files.e3sm_maps(&paths.split(',').collect::<Vec<_>>())?,
    };
    if values.is_given("map") && E3smCase::of_maps(maps.len()) != Some(case) {
        return Err(values.bad("map", &format!("maps of case {case:?}; there are {}", maps.len())));
    }
    let (layout, layer) = values.word(
        "layout",
        &[
            ("canonical", (E3smLayout::Canonical, None)),
            ("log", (E3smLayout::Canonical, Some("loglayout"))),
            ("blob", (E3smLayout::Blob, None)),
        ],
    )?;
    let kernel = E3sm {
        ranks,
        file: name.into(),
        case,
        maps: Arc::new(maps),
        layout,
        records: values.positive("records")?,
        flush_every: values.positive("flush")?,
        unlimited: values.flag("unlimited")?,
        compute: values.time("compute")?,
        transfer: values.transfer()?,
        seed: values.number("seed")?,
    };
    let histories = values.word(
        "history",
        &[("h0", 0..1), ("h1", 1..2), ("both", 0..2)].map(|(word, range)| (word, (range.start, range.end))),
    )?;
    let (write, read) =
        values.word("operation", &[("both", (true, true)), ("write", (true, false)), ("read", (false, true))])?;
    let all = case.histories();
    let mut phases = Vec::new();
    for history in &all[histories.0.min(all.len() - 1)..histories.1.min(all.len())] {
        let suffix = match (case, history) {
            (E3smCase::G, _) => "",
            (_, History::H0) => " h0",
            (_, History::H1) => " h1",
        };
        if write {
            phases.push(Phase { layer, ..Phase::new(format!("{name}{suffix} write"), kernel.write(*history)?) });
        }
        if read {
            phases.push(Phase { layer, ..Phase::new(format!("{name}{suffix} read"), kernel.read(*history)?) });
        }
    }
    Ok(phases)
}
