//! The table of all options: what each is called, what it takes, and whether it is taken, taken with a note, or refused.

use hyperslab_core::Error;

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is done.
    Taken,
    /// It is done, and people should know something about it.
    Note(&'static str),
    /// It is not done, for this reason.
    Refused(&'static str),
}

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing; given twice it counts two.
    Nothing,
    /// A value of this kind.
    A(&'static str),
}

/// An option of the command line, of `-O` and of scripts.
#[derive(Debug, Clone, Copy)]
pub struct Directive {
    /// The letter, if it has one.
    pub letter: Option<char>,
    /// The name after `--`, if it has one.
    pub long: Option<&'static str>,
    /// Its name in scripts; upper and lower case are the same.
    pub name: &'static str,
    /// What follows it.
    pub takes: Takes,
    /// What becomes of it.
    pub status: Status,
    /// One line for people.
    pub about: &'static str,
}

use Status::{Note, Refused, Taken};
use Takes::{A, Nothing};

const fn flag(
    letter: Option<char>,
    long: Option<&'static str>,
    name: &'static str,
    takes: Takes,
    status: Status,
    about: &'static str,
) -> Directive {
    Directive { letter, long, name, takes, status, about }
}

/// A directive without a letter or long form of its own.
const fn word(name: &'static str, takes: Takes, status: Status, about: &'static str) -> Directive {
    flag(None, None, name, takes, status, about)
}

const fn long(name: &'static str, takes: Takes, status: Status, about: &'static str) -> Directive {
    flag(None, Some(name), name, takes, status, about)
}

const NO_GPU: &str = "there is no memory of graphics processors here";
const POSIX_LOCKS: &str = "ranks take no range locks: each writes bytes of its own";
const NO_GPFS: &str = "hints of that file system are not given";
const OLD: &str = "an option of old versions";
const SECONDS: Takes = A("SECONDS");
const SIZE: Takes = A("SIZE");
const NUMBER: Takes = A("N");
const FILE: Takes = A("FILE");

/// Every option, those of IOR first.
#[rustfmt::skip]
pub const TABLE: &[Directive] = &[
    flag(Some('a'), None, "api", A("API"), Taken, "POSIX, MPIIO, HDF5, NCMPI, NC4, ZARR, DUMMY, or any stack such as 'async/hdf5(align=1MiB)'"),
    flag(Some('A'), None, "refNum", NUMBER, Taken, "a number for the summary"),
    flag(Some('b'), None, "blockSize", SIZE, Taken, "contiguous bytes of each rank in a segment (1m)"),
    flag(Some('c'), Some("collective"), "collective", Nothing, Taken, "ranks transfer together"),
    flag(Some('C'), None, "reorderTasks", Nothing, Taken, "each rank reads what the rank -Q nodes before it wrote; on one machine, -Q ranks"),
    flag(Some('d'), None, "interTestDelay", SECONDS, Taken, "pause before each phase"),
    flag(Some('D'), None, "deadlineForStonewalling", SECONDS, Taken, "stop a phase after so long"),
    flag(Some('e'), None, "fsync", Nothing, Taken, "a durable flush after all writes"),
    flag(Some('E'), None, "useExistingTestFile", Nothing, Taken, "write into a file that is there instead of removing it"),
    flag(Some('f'), None, "scriptFile", FILE, Taken, "tests from a script"),
    flag(Some('F'), None, "filePerProc", Nothing, Taken, "a file for each rank, with .%08d after its name"),
    flag(Some('g'), None, "intraTestBarriers", Nothing, Taken, "ranks wait for each other between open, transfers and close"),
    flag(Some('G'), None, "setTimeStampSignature", NUMBER, Taken, "signature of IOR's data; switches from Hyperslab's own data to IOR's"),
    flag(Some('i'), None, "repetitions", NUMBER, Taken, "how often (1)"),
    flag(Some('j'), None, "outlierThreshold", SECONDS, Taken, "warn of ranks so far from the mean"),
    flag(Some('k'), None, "keepFile", Nothing, Taken, "do not remove the file afterwards"),
    flag(Some('K'), None, "keepFileWithError", Nothing, Taken, "do not remove a file with wrong data"),
    flag(Some('l'), Some("dataPacketType"), "dataPacketType", A("KIND"), Taken, "IOR's data: timestamp, offset, incompressible, random; or place, Hyperslab's own"),
    flag(Some('m'), None, "multiFile", Nothing, Taken, "a file for each repetition, with .N after its name"),
    flag(Some('M'), None, "memoryPerNode", A("SIZE|%"), Taken, "memory to occupy on each machine"),
    flag(Some('N'), None, "numTasks", NUMBER, Taken, "ranks: threads, or as many as the MPI job has"),
    flag(Some('o'), None, "testFile", FILE, Taken, "the file; a@b takes turns between ranks with -F (testFile)"),
    flag(Some('Q'), None, "taskPerNodeOffset", NUMBER, Taken, "distance of readers with -C and -Z (1)"),
    flag(Some('r'), None, "readFile", Nothing, Taken, "read"),
    flag(Some('R'), None, "checkRead", Nothing, Taken, "read, and compare every byte"),
    flag(Some('s'), None, "segmentCount", NUMBER, Taken, "segments (1)"),
    flag(Some('t'), None, "transferSize", SIZE, Taken, "bytes of a transfer (256k)"),
    flag(Some('T'), None, "maxTimeDuration", A("MINUTES"), Taken, "no new repetition after so long"),
    flag(Some('u'), None, "uniqueDir", Nothing, Taken, "with -F, a directory for each rank"),
    flag(Some('v'), None, "verbose", Nothing, Taken, "say more; again for more still"),
    flag(Some('w'), None, "writeFile", Nothing, Taken, "write"),
    flag(Some('W'), None, "checkWrite", Nothing, Taken, "read what is there after the write, and compare every byte"),
    flag(Some('x'), None, "singleXferAttempt", Nothing, Note("a transfer is whole or an error in any case"), "no second attempt"),
    flag(Some('X'), None, "reorderTasksRandomSeed", NUMBER, Taken, "seed of -Z; below 0, another one in each repetition"),
    flag(Some('y'), None, "dualMount", Nothing, Refused("two mount points of a file system are not chosen by socket; name both with -o a@b -F"), "two mount points"),
    flag(Some('Y'), None, "fsyncPerWrite", Nothing, Taken, "a durable flush after every write; ranks make it together"),
    flag(Some('z'), None, "randomOffset", Nothing, Taken, "shuffled transfers; twice, blocks at random places; with every API"),
    long("randomPrefill", SIZE, Taken, "with -z, fill the file in pieces of this size before writing"),
    long("random-offset-seed", A("N"), Taken, "seed of -z"),
    flag(Some('Z'), None, "reorderTasksRandom", Nothing, Taken, "each rank reads what a rank chosen at random wrote; twice, a permutation"),
    long("warningAsErrors", Nothing, Taken, "a warning ends the test"),
    long("dryRun", Nothing, Taken, "say what would be done"),
    word("interIODelay", A("MICROSECONDS"), Taken, "pause after each transfer"),
    word("stoneWallingWearOut", Nothing, Taken, "after -D, all ranks make as many transfers as the fastest"),
    word("stoneWallingWearOutIterations", NUMBER, Taken, "stop after so many transfers"),
    word("stoneWallingStatusFile", FILE, Taken, "keeps the number of transfers of a write for a later read"),
    word("minTimeDuration", SECONDS, Refused("a phase plays a workload once; use more segments with -D for a phase of fixed length"), "begin again until so long has passed"),
    word("memoryPerTask", SIZE, Taken, "memory to occupy by each rank"),
    word("numNodes", NUMBER, Note("machines are counted"), "machines"),
    word("numTasksOnNode0", NUMBER, Taken, "ranks of a machine, where -C, -Q and -Z count in machines"),
    word("reorderTasksConstant", Nothing, Taken, "as -C"),
    word("summaryAlways", Nothing, Taken, "the summary after each test"),
    word("summaryFile", FILE, Taken, "results go there"),
    word("summaryFormat", A("default|JSON|CSV"), Taken, "form of the results"),
    word("saveRankPerformanceDetailsCSV", FILE, Taken, "times of each rank"),
    word("savePerOpDataCSV", A("PREFIX"), Taken, "times of each transfer, in PREFIX-REPETITION-RANK.csv"),
    word("platform", A("NAME"), Taken, "a name for the results"),
    word("debug", A("TEXT"), Note("it changes nothing"), "a remark"),
    word("allocateBufferOnGPU", NUMBER, Refused(NO_GPU), "memory of graphics processors"),
    word("GPUid", NUMBER, Refused(NO_GPU), "which one"),
    flag(None, Some("gpuDirect"), "GPUDirect", Nothing, Refused(NO_GPU), "transfers to it"),
    long("posix.odirect", Nothing, Taken, "around the page cache: posix(direct=yes)"),
    long("posix.rangelocks", Nothing, Refused(POSIX_LOCKS), "locks"),
    long("posix.lustre.stripecount", NUMBER, Taken, "by lfs setstripe"),
    long("posix.lustre.stripesize", SIZE, Taken, "by lfs setstripe"),
    long("posix.lustre.startost", NUMBER, Taken, "by lfs setstripe"),
    long("posix.lustre.pool", A("NAME"), Taken, "by lfs setstripe"),
    long("posix.lustre.ignorelocks", Nothing, Refused("locks of the client cannot be switched off here"), "no locks"),
    long("posix.gpfs.hintaccess", Nothing, Refused(NO_GPFS), "hints"),
    long("posix.gpfs.releasetoken", Nothing, Refused(NO_GPFS), "hints"),
    long("posix.gpfs.finegrainwritesharing", Nothing, Refused(NO_GPFS), "hints"),
    long("posix.gpfs.finegrainreadsharing", Nothing, Refused(NO_GPFS), "hints"),
    long("posix.gpfs.createsharing", Nothing, Refused(NO_GPFS), "hints"),
    long("posix.beegfs.NumTargets", NUMBER, Refused(NO_GPFS), "striping"),
    long("posix.beegfs.ChunkSize", SIZE, Refused(NO_GPFS), "striping"),
    long("mpiio.hintsFileName", FILE, Taken, "hints for MPI-IO, one NAME=VALUE a line"),
    long("mpiio.showHints", Nothing, Taken, "print the hints"),
    long("mpiio.preallocate", Nothing, Taken, "the file gets its size before the first write"),
    long("mpiio.useStridedDatatype", Nothing, Refused("use --gather N: one call covers N blocks, on every API"), "one call for several blocks"),
    long("mpiio.useFileView", Nothing, Note("the format chooses between views and offsets by itself"), "file views"),
    long("hdf5.hintsFileName", FILE, Taken, "hints for MPI-IO below HDF5"),
    long("hdf5.showHints", Nothing, Taken, "print the hints"),
    long("hdf5.collectiveMetadata", Nothing, Taken, "hdf5(collective_metadata=yes)"),
    long("hdf5.individualDataSets", Nothing, Refused("a dataset for each rank does not work in IOR either; use -F"), "a dataset for each rank"),
    long("hdf5.setAlignment", SIZE, Taken, "hdf5(align=SIZE,align_threshold=SIZE)"),
    long("hdf5.noFill", Nothing, Taken, "hdf5(fill_time=never)"),
    long("hdf5.chunkSize", NUMBER, Taken, "chunks of so many elements of 8 bytes; 0 is contiguous"),
    long("ncmpi.hintsFileName", FILE, Taken, "hints for MPI-IO below the format"),
    long("ncmpi.showHints", Nothing, Taken, "print the hints"),
    long("ncmpi.preallocate", Nothing, Refused("the format has no such option"), "the file gets its size first"),
    long("ncmpi.useStridedDatatype", Nothing, Refused("use --gather N: one call covers N blocks, on every API"), "one call for several blocks"),
    long("ncmpi.useFileView", Nothing, Refused("the format has no such option"), "file views"),
    // Options of old versions, by their letters.
    flag(Some('J'), None, "setAlignment", SIZE, Note(OLD), "as --hdf5.setAlignment"),
    flag(Some('n'), None, "noFill", Nothing, Note(OLD), "as --hdf5.noFill"),
    flag(Some('H'), None, "showHints", Nothing, Note(OLD), "as --mpiio.showHints"),
    flag(Some('p'), None, "preallocate", Nothing, Note(OLD), "as --mpiio.preallocate"),
    flag(Some('U'), None, "hintsFileName", FILE, Note(OLD), "as --mpiio.hintsFileName"),
    flag(Some('V'), None, "useFileView", Nothing, Note("an option of old versions; the format chooses by itself"), "file views"),
    flag(Some('B'), None, "useO_DIRECT", Nothing, Note(OLD), "as --posix.odirect"),
    flag(Some('S'), None, "useStridedDatatype", Nothing, Refused("use --gather N: one call covers N blocks, on every API"), "one call for several blocks"),
    flag(Some('I'), None, "individualDataSets", Nothing, Refused("a dataset for each rank does not work in IOR either; use -F"), "a dataset for each rank"),
    // What the tables of a study of HDF5 on Lustre have.
    long("chunkSize", SIZE, Taken, "elements are bytes, in chunks of so many"),
    long("unlimited", Nothing, Taken, "elements are bytes; made with one, and grown before each call beyond the end"),
    long("dimx", NUMBER, Taken, "elements are bytes in so many rows"),
    long("dimy", SIZE, Taken, "of so many columns; a multiple of -t"),
    long("chunkx", NUMBER, Taken, "in chunks of so many rows"),
    long("chunky", SIZE, Taken, "and columns"),
    // Hyperslab's own.
    long("pattern", A("disjoint|ost:X"), Taken, "each rank's bytes in one piece, or X stripes of each rank in turn"),
    long("stripe-size", SIZE, Taken, "bytes of a stripe, for --pattern ost:X and for counting targets (1m)"),
    long("stripe-count", NUMBER, Taken, "targets that stripes go to in turn (1)"),
    long("per-client", SIZE, Taken, "bytes of each rank, with --pattern"),
    long("gather", NUMBER, Taken, "one call covers N blocks of a rank (1)"),
    long("dataset-per-segment", Nothing, Taken, "a dataset for each segment, named as IOR names them"),
];

/// The names that mean another one.
const SAME: &[(&str, &str)] = &[
    ("setAlignment", "hdf5.setAlignment"),
    ("noFill", "hdf5.noFill"),
    ("showHints", "mpiio.showHints"),
    ("preallocate", "mpiio.preallocate"),
    ("hintsFileName", "mpiio.hintsFileName"),
    ("useO_DIRECT", "posix.odirect"),
    ("reorderTasksConstant", "reorderTasks"),
];

/// The directive of this name, with or without dashes before it. Its note or refusal is that of the name asked for.
pub fn find(name: &str) -> Option<Directive> {
    let bare = name.trim().trim_start_matches("--");
    let is = |directive: &&Directive| directive.name.eq_ignore_ascii_case(bare);
    let mut found = *TABLE.iter().find(is)?;
    if let Some((_, meant)) = SAME.iter().find(|(old, _)| *old == found.name) {
        found.name = meant;
    }
    Some(found)
}

/// The error for a name that nobody knows.
pub fn unknown(name: &str) -> Error {
    let bare = name.trim_start_matches('-');
    let near = TABLE.iter().map(|directive| directive.name).filter(|known| {
        let (known, bare) = (known.to_ascii_lowercase(), bare.to_ascii_lowercase());
        !bare.is_empty() && (known.contains(&bare) || bare.contains(&known))
    });
    let near: Vec<&str> = near.take(3).collect();
    let error = Error::invalid("read options", format!("there is no option {name:?}"));
    match near.is_empty() {
        true => error.hint("hyperslab ior --help lists all"),
        false => error.hint(format!("did you mean {}?", near.join(", "))),
    }
}

/// All options, for people.
pub fn help() -> String {
    let mut text = String::from(
        "Usage: hyperslab ior [IOR FLAGS]\n\nIOR's tests over every format, with verified data. Without -w, -r, -W and -R, -w and -r are done.\n\
         Flags can be joined (-wrk), values attached (-b4m, -b=4m).\n\n",
    );
    for directive in TABLE {
        let value = match directive.takes {
            Nothing => String::new(),
            A(kind) => format!(" {kind}"),
        };
        let name = match (directive.letter, directive.long) {
            (Some(letter), Some(long)) => format!("-{letter}, --{long}{value}"),
            (Some(letter), None) => format!("-{letter}{value}"),
            (None, Some(long)) => format!("--{long}{value}"),
            (None, None) => format!(
                "-O {}={}",
                directive.name,
                value.trim().replacen("", if value.is_empty() { "1" } else { "" }, 1)
            ),
        };
        let about = match directive.status {
            Taken => directive.about.to_owned(),
            Note(note) => format!("{} ({note})", directive.about),
            Refused(reason) => format!("refused: {reason}"),
        };
        text.push_str(&format!("  {name:<38} {about}\n"));
    }
    text.push_str(
        "\nAny name also works in scripts (-f FILE) and in -O NAME=VALUE[,NAME=VALUE].\n\
         Exit codes: 0 done, 1 wrong data or a failed test, 2 bad options and nothing started.\n",
    );
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::settings::{Given, Settings};

    #[test]
    fn letters_and_names_are_unique() {
        for (at, one) in TABLE.iter().enumerate() {
            for other in &TABLE[at + 1..] {
                assert!(!one.name.eq_ignore_ascii_case(other.name), "{}", one.name);
                assert!(one.letter.is_none() || one.letter != other.letter, "-{:?}", one.letter);
            }
        }
        let letters: String = TABLE.iter().filter_map(|directive| directive.letter).collect();
        for letter in "aAbcCdDeEfFgGijkKlmMNoQrRsStTuvwWxXyYzZBHIJnpUV".chars() {
            assert!(letters.contains(letter), "-{letter}");
        }
    }

    /// Every option is done or refused with a reason that names it; none is passed over.
    #[test]
    fn every_option_is_taken_or_refused_by_name() {
        for directive in TABLE {
            let values = ["1", "POSIX", "default", "timestamp", "disjoint"];
            let results = values.map(|value| {
                let mut notes = Vec::new();
                let done = Settings::default().apply(directive.name, Given::Value(value), &mut notes);
                (done, notes)
            });
            match directive.status {
                Refused(reason) => {
                    for (done, _) in results {
                        let error = done.unwrap_err().to_string();
                        assert!(error.contains(reason) && error.contains(directive.name), "{error}");
                    }
                }
                status => {
                    let (_, notes) = results.into_iter().find(|(done, _)| done.is_ok()).expect(directive.name);
                    assert_eq!(notes.is_empty(), status == Taken, "{}", directive.name);
                }
            }
        }
        let error = Settings::default().apply("blocksizes", Given::Once, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("blockSize"), "{error}");
    }

    #[test]
    fn the_document_names_every_option() {
        let document = include_str!("../../../docs/ior.md");
        for directive in TABLE {
            assert!(document.contains(&format!("`{}`", directive.name)), "{}", directive.name);
            if let Some(letter) = directive.letter {
                assert!(document.contains(&format!("| `-{letter}`")), "-{letter}");
            }
        }
    }

    #[test]
    fn the_help_names_every_option() {
        let help = help();
        assert!(TABLE.iter().all(|directive| match (directive.letter, directive.long) {
            (Some(letter), _) => help.contains(&format!("  -{letter}")),
            (None, Some(long)) => help.contains(&format!("--{long}")),
            (None, None) => help.contains(&format!("-O {}=", directive.name)),
        }));
    }
}
