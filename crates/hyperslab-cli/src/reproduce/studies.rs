//! The studies: what is run, and which published claims it is held against.

use super::published::Key;

/// A published figure or table, scaled down.
pub struct Study {
    /// What it is called by.
    pub name: &'static str,
    /// What it is about, in a line.
    pub about: &'static str,
    /// What is run.
    pub trials: &'static [Trial],
    /// What was published about it.
    pub claims: &'static [ClaimSpec],
}

/// One run of `bench`.
pub struct Trial {
    pub name: &'static str,
    pub work: StudyWork,
    /// Stacks; LOG stands for a folder for logs.
    pub stacks: &'static str,
    pub ranks: u32,
}

/// What a trial does.
pub enum StudyWork {
    /// An application kernel with its keys, and with those of a test.
    Kernel { usual: &'static str, tiny: &'static str },
    /// A workflow of h5bench, in which SIZE stands for a size.
    Workflow { text: &'static str, usual: &'static str, tiny: &'static str },
}

/// A published claim and what it is here.
pub struct ClaimSpec {
    pub published: Key,
    pub figure: Figure,
    /// The ratio is that of the second over the first.
    pub before: Side,
    pub after: Side,
    /// It holds if the ratio is above this.
    pub above: f64,
    pub holds_because: &'static str,
    pub fails_because: &'static str,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Observed bytes per second.
    Rate,
    /// Observed seconds.
    Time,
    /// Seconds of opening files, over those of closing.
    CloseAgainstOpen,
}

/// One side of a comparison: the first case that fits.
pub struct Side {
    pub trial: &'static str,
    pub stack: &'static str,
    /// Whether it is that stack, or one that begins so.
    pub exactly: bool,
    pub benchmark: &'static str,
    pub workload: &'static str,
    /// What it is called.
    pub words: &'static str,
}

const fn side(trial: &'static str, stack: &'static str, words: &'static str) -> Side {
    Side { trial, stack, exactly: true, benchmark: "", workload: "", words }
}

const fn reading(trial: &'static str, stack: &'static str, words: &'static str) -> Side {
    Side { benchmark: "read", ..side(trial, stack, words) }
}

const SLOW: &str = "slow(rate=400MB/s,latency=1ms)/hdf5";
const SLOW_ASYNC: &str = "async/slow(rate=400MB/s,latency=1ms)/hdf5";
const SLOW_PAIR: &str = "slow(rate=400MB/s,latency=1ms)/hdf5,async/slow(rate=400MB/s,latency=1ms)/hdf5";
const HIDES: &str = "I/O goes on behind the computation of the next time step; storage is emulated (slow).";
const NOTHING_TO_HIDE: &str =
    "Copies cost as much here as what they hide: the emulated storage is too fast for this computation.";
const ONE_NODE: &str = "One node, no network and no stripes: what makes the difference there does not exist here.";

const PARTIAL: &str = r#"{"directory": "d", "benchmarks": [
 {"benchmark": "write", "file": "p.h5", "configuration": {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": 2, "NUM_DIMS": 1, "DIM_1": "SIZE K"}},
 {"benchmark": "read", "file": "p.h5", "configuration": {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": 2, "NUM_DIMS": 1, "DIM_1": "SIZE K", "READ_OPTION": "FULL"}},
 {"benchmark": "read", "file": "p.h5", "configuration": {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": 2, "NUM_DIMS": 1, "DIM_1": "SIZE K", "READ_OPTION": "PARTIAL", "TO_READ_NUM_PARTICLES": "SIZE00"}}]}"#;
const PLANE: &str = r#"{"directory": "d", "benchmarks": [
 {"benchmark": "write", "file": "c.h5", "configuration": {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": 1, "NUM_DIMS": 2, "DIM_1": SIZE, "DIM_2": 256}},
 {"benchmark": "read", "file": "c.h5", "configuration": {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": 1, "NUM_DIMS": 2, "DIM_1": SIZE, "DIM_2": 256, "READ_OPTION": "FULL"}}]}"#;
const PLANE_COMPUTE: &str = r#"{"directory": "d", "benchmarks": [
 {"benchmark": "write", "file": "c.h5", "configuration": {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": 4, "NUM_DIMS": 2, "DIM_1": SIZE, "DIM_2": 256, "EMULATED_COMPUTE_TIME_PER_TIMESTEP": "60 ms"}}]}"#;
const GROWING: &str = r#"{"directory": "d", "benchmarks": [
 {"benchmark": "write-unlimited", "file": "u.h5", "configuration": {"MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "TIMESTEPS": 1, "NUM_DIMS": 1, "DIM_1": SIZE}}]}"#;

/// All of them.
pub const STUDIES: &[Study] = &[
    Study {
        name: "async-write",
        about: "writes behind computation",
        trials: &[Trial {
            name: "write",
            work: StudyWork::Kernel {
                usual: "vpic particles=32K steps=5 compute=60ms",
                tiny: "vpic particles=512 steps=2 compute=1ms",
            },
            stacks: SLOW_PAIR,
            ranks: 2,
        }],
        claims: &[ClaimSpec {
            published: Key("h5bench", "Sec 4.5", "1D write interleaved-mem", "VOL-ASYNC", "1024"),
            figure: Figure::Rate,
            before: side("write", SLOW, "waiting"),
            after: side("write", SLOW_ASYNC, "behind computation"),
            above: 1.0,
            holds_because: HIDES,
            fails_because: NOTHING_TO_HIDE,
        }],
    },
    Study {
        name: "async-read",
        about: "reads ahead of computation",
        trials: &[Trial {
            name: "read",
            work: StudyWork::Kernel {
                usual: "bdcats particles=32K steps=5 compute=60ms",
                tiny: "bdcats particles=512 steps=2 compute=1ms",
            },
            stacks: SLOW_PAIR,
            ranks: 2,
        }],
        claims: &[ClaimSpec {
            published: Key("h5bench", "Sec 4.6", "1D read", "speedup Async VOL", "64 ranks"),
            figure: Figure::Rate,
            before: reading("read", SLOW, "waiting"),
            after: reading("read", SLOW_ASYNC, "ahead of computation"),
            above: 1.0,
            holds_because: HIDES,
            fails_because: NOTHING_TO_HIDE,
        }],
    },
    Study {
        name: "overlap",
        about: "background writes with nothing to hide behind",
        trials: &[Trial {
            name: "no-compute",
            work: StudyWork::Kernel { usual: "vpic particles=128K steps=4", tiny: "vpic particles=512 steps=2" },
            stacks: "async/hdf5,hdf5",
            ranks: 2,
        }],
        claims: &[ClaimSpec {
            published: Key("h5bench", "Sec 4.6", "1D write contig-contig", "slowdown", "worst"),
            figure: Figure::Rate,
            before: side("no-compute", "async/hdf5", "async"),
            after: side("no-compute", "hdf5", "waiting"),
            above: 1.0,
            holds_because: "Without computation the copy is a cost and hides nothing.",
            fails_because: "Ranks are threads that take turns in libhdf5; writes in the background save them the waiting.",
        }],
    },
    Study {
        name: "partial-read",
        about: "a tenth of the data takes more than a tenth of the time",
        trials: &[Trial {
            name: "read",
            work: StudyWork::Workflow { text: PARTIAL, usual: "256", tiny: "4" },
            stacks: "hdf5",
            ranks: 2,
        }],
        claims: &[ClaimSpec {
            published: Key("h5bench", "Sec 4.1.4 / Fig 6a", "partial read", "time ratio", "10%"),
            figure: Figure::Time,
            before: Side { benchmark: "read", ..side("read", "hdf5", "whole") },
            after: Side { benchmark: "read", workload: "the first", ..side("read", "hdf5", "a tenth") },
            above: 0.12,
            holds_because: "Opening files and datasets costs the same for both.",
            fails_because: "Metadata are in memory here and cost next to nothing.",
        }],
    },
    Study {
        name: "locality",
        about: "layouts in memory and in the file: CC, IC",
        trials: &[
            Trial {
                name: "CC",
                work: StudyWork::Kernel { usual: "vpic particles=256K steps=2", tiny: "vpic particles=512 steps=1" },
                stacks: "hdf5",
                ranks: 2,
            },
            Trial {
                name: "IC",
                work: StudyWork::Kernel {
                    usual: "vpic particles=256K steps=2 memory=interleaved",
                    tiny: "vpic particles=512 steps=1 memory=interleaved",
                },
                stacks: "hdf5",
                ranks: 2,
            },
            Trial {
                name: "II",
                work: StudyWork::Kernel {
                    usual: "vpic particles=256K steps=2 memory=interleaved file=interleaved",
                    tiny: "vpic particles=512 steps=1 memory=interleaved file=interleaved",
                },
                stacks: "hdf5",
                ranks: 2,
            },
        ],
        claims: &[
            ClaimSpec {
                published: Key("h5bench", "Sec 4.1.7 / Fig 9", "locality CC or II", "rate", "2048"),
                figure: Figure::Rate,
                before: side("IC", "hdf5", "IC"),
                after: side("CC", "hdf5", "CC"),
                above: 1.0,
                holds_because: "Gathering single fields from structures costs time.",
                fails_because: "Gathering fields is cheap beside everything else.",
            },
            ClaimSpec {
                published: Key("h5bench", "Sec 4.1.7 / Fig 9", "locality IC", "rate", "2048"),
                figure: Figure::Rate,
                before: side("IC", "hdf5", "IC"),
                after: side("II", "hdf5", "II"),
                above: 1.0,
                holds_because: "The same layout on both sides needs no rearranging.",
                fails_because: "Rearranging is cheap beside everything else.",
            },
        ],
    },
    Study {
        name: "dimensions",
        about: "two-dimensional writes behind computation",
        trials: &[Trial {
            name: "write",
            work: StudyWork::Workflow { text: PLANE_COMPUTE, usual: "128", tiny: "4" },
            stacks: SLOW_PAIR,
            ranks: 2,
        }],
        claims: &[ClaimSpec {
            published: Key("h5bench", "Sec 4.5", "2D write interleaved-mem", "VOL-ASYNC", "1024"),
            figure: Figure::Rate,
            before: side("write", SLOW, "waiting"),
            after: side("write", SLOW_ASYNC, "behind computation"),
            above: 1.0,
            holds_because: HIDES,
            fails_because: NOTHING_TO_HIDE,
        }],
    },
    Study {
        name: "metadata-time",
        about: "creating a file takes longer than closing it",
        trials: &[Trial {
            name: "write",
            work: StudyWork::Kernel { usual: "vpic particles=4K steps=1", tiny: "vpic particles=64 steps=1" },
            stacks: "hdf5",
            ranks: 2,
        }],
        claims: &[ClaimSpec {
            published: Key("h5bench", "Sec 4.7 / Fig 22", "file creation", "H5Fcreate", "max"),
            figure: Figure::CloseAgainstOpen,
            before: side("write", "hdf5", "closing"),
            after: side("write", "hdf5", "creating"),
            above: 1.0,
            holds_because: "A new file is made by the file system.",
            fails_because: "There is no metadata server here, and closing writes what was held in memory.",
        }],
    },
    Study {
        name: "subfiling",
        about: "one file over several (needs a build with MPI, and its ranks)",
        trials: &[Trial {
            name: "write",
            work: StudyWork::Kernel { usual: "vpic particles=64K steps=1", tiny: "vpic particles=512 steps=1" },
            stacks: "hdf5,hdf5(driver=subfiling)",
            ranks: 2,
        }],
        claims: &[ClaimSpec {
            published: Key("h5bench", "Table 4", "subfiling", "file size", "1344"),
            figure: Figure::Rate,
            before: side("write", "hdf5", "one file"),
            after: side("write", "hdf5(driver=subfiling)", "several"),
            above: 1.0,
            holds_because: "",
            fails_because: ONE_NODE,
        }],
    },
    Study {
        name: "log-layout",
        about: "requests one after the other in the file: particles, and E3SM's tiny pieces",
        trials: &[
            Trial {
                name: "particles",
                work: StudyWork::Kernel {
                    usual: "vpic particles=64K steps=2 memory=interleaved",
                    tiny: "vpic particles=512 steps=1 memory=interleaved",
                },
                stacks: "hdf5,loglayout/hdf5",
                ranks: 2,
            },
            Trial {
                name: "e3sm",
                work: StudyWork::Kernel { usual: "e3sm-g", tiny: "e3sm-g records=1" },
                stacks: "hdf5,loglayout/hdf5",
                ranks: 2,
            },
        ],
        claims: &[
            ClaimSpec {
                published: Key("h5bench", "Sec 4.5", "1D write interleaved-mem", "VOL-LOG", "1024"),
                figure: Figure::Rate,
                before: side("particles", "hdf5", "canonical"),
                after: side("particles", "loglayout/hdf5", "log layout"),
                above: 1.0,
                holds_because: "A request is written where the file ends, whatever it covers.",
                fails_because: "Few large requests gain nothing from being appended; the page cache takes any order.",
            },
            ClaimSpec {
                published: Key("h5bench", "Sec 3.1.4", "E3SM G", "regions", ""),
                figure: Figure::Rate,
                before: side("e3sm", "hdf5", "canonical"),
                after: side("e3sm", "loglayout/hdf5", "log layout"),
                above: 1.0,
                holds_because: "Thousands of pieces become one append.",
                fails_because: "The page cache takes small pieces in any order.",
            },
        ],
    },
    Study {
        name: "array-chunks",
        about: "larger chunks read faster, in HDF5 and in Zarr",
        trials: &[Trial {
            name: "read",
            work: StudyWork::Workflow { text: PLANE, usual: "512", tiny: "32" },
            stacks: "hdf5(chunk=16x16),hdf5(chunk=64x256),zarr(chunk=16x16),zarr(chunk=64x256)",
            ranks: 1,
        }],
        claims: &[
            ClaimSpec {
                published: Key("arraymodel", "Sec V-B1 / Fig 4a", "read all HDF5", "read time", "x64"),
                figure: Figure::Rate,
                before: reading("read", "hdf5(chunk=16x16)", "small chunks"),
                after: reading("read", "hdf5(chunk=64x256)", "64 times larger"),
                above: 1.0,
                holds_because: "Each chunk costs a look-up and a request (published: 52 s with chunks 64 times smaller).",
                fails_because: "Chunks are in memory here.",
            },
            ClaimSpec {
                published: Key("arraymodel", "Sec V-B1 / Fig 4a", "read all Zarr", "read time", "x64"),
                figure: Figure::Rate,
                before: reading("read", "zarr(chunk=16x16)", "small chunks"),
                after: reading("read", "zarr(chunk=64x256)", "64 times larger"),
                above: 1.0,
                holds_because: "Each chunk is a file (published: 930 s with chunks 64 times smaller).",
                fails_because: "Files are in memory here.",
            },
        ],
    },
    Study {
        name: "burst-buffer",
        about: "a log of many small writes, its flush included",
        trials: &[Trial {
            name: "btio",
            work: StudyWork::Kernel {
                usual: "btio grid=32x32x32 dumps=1 operation=write collective=no",
                tiny: "btio grid=8x8x8 dumps=1 operation=write collective=no",
            },
            stacks: "slow(rate=400MB/s,latency=1ms)/posix,log(dir=LOG)/slow(rate=400MB/s,latency=1ms)/posix",
            ranks: 1,
        }],
        claims: &[ClaimSpec {
            published: Key("burstlog", "Sec V-B", "BTIO strong", "BB driver", "max"),
            figure: Figure::Rate,
            before: side("btio", "slow(rate=400MB/s,latency=1ms)/posix", "direct"),
            after: Side { exactly: false, ..side("btio", "log(", "log and flush") },
            above: 1.0,
            holds_because: "Many requests to slow storage become few; storage is emulated (slow).",
            fails_because: "The flush costs more than the small writes do.",
        }],
    },
    Study {
        name: "alignment",
        about: "objects aligned to the stripe size",
        trials: &[Trial {
            name: "write",
            work: StudyWork::Kernel { usual: "vpic particles=256K steps=2", tiny: "vpic particles=512 steps=1" },
            stacks: "hdf5,hdf5(align=1MiB)",
            ranks: 2,
        }],
        claims: &[ClaimSpec {
            published: Key("hdf5-lustre", "Sec 3 (DL10)", "1-OST", "speedup", ""),
            figure: Figure::Rate,
            before: side("write", "hdf5", "as it comes"),
            after: side("write", "hdf5(align=1MiB)", "aligned"),
            above: 1.05,
            holds_because: "",
            fails_because: ONE_NODE,
        }],
    },
    Study {
        name: "prefill",
        about: "fill values before the data",
        trials: &[Trial {
            name: "write",
            work: StudyWork::Kernel { usual: "vpic particles=512K steps=1", tiny: "vpic particles=512 steps=1" },
            stacks: "hdf5(fill_time=alloc,alloc_time=early),hdf5(fill_time=never)",
            ranks: 1,
        }],
        claims: &[ClaimSpec {
            published: Key("hdf5-lustre", "Sec 4.3", "prefill", "slowdown", ""),
            figure: Figure::Rate,
            before: side("write", "hdf5(fill_time=alloc,alloc_time=early)", "filled first"),
            after: side("write", "hdf5(fill_time=never)", "not filled"),
            above: 1.0,
            holds_because: "Everything is written twice.",
            fails_because: "Fill values go to the page cache, and cost less than the rest.",
        }],
    },
    Study {
        name: "unlimited-dimension",
        about: "chunks of length 1 in a dimension that grows",
        trials: &[Trial {
            name: "write",
            work: StudyWork::Workflow { text: GROWING, usual: "2048", tiny: "64" },
            stacks: "hdf5(chunk=1),hdf5",
            ranks: 1,
        }],
        claims: &[ClaimSpec {
            published: Key("hdf5-lustre", "Sec 5.2", "default chunk fix", "speedup", ""),
            figure: Figure::Rate,
            before: side("write", "hdf5(chunk=1)", "length 1"),
            after: side("write", "hdf5", "default"),
            above: 10.0,
            holds_because: "Held to be so above tenfold: the published factor is that of gigabytes.",
            fails_because: "The data are too small here for the cost of single chunks to show.",
        }],
    },
];
