//! Everything that one test can be told, by the names that IOR has for it.

use crate::directives::{self, Status};
use crate::size;
use hyperslab_core::{Error, Result};

/// Which data are written, and expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packets {
    /// Every element follows from its place, so that a misplaced transfer is seen. What is done unless IOR's own data are
    /// asked for.
    ByPlace,
    /// IOR's words: rank and signature plus index.
    Timestamp,
    /// The same with the offset in every 512th word.
    Offset,
    /// One random word, and the offset in every 512th.
    Incompressible,
    /// Random words.
    Random,
}

/// How the results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryFormat {
    /// IOR's tables.
    Table,
    /// One JSON document.
    Json,
    /// One line for each table row.
    Csv,
}

/// A pattern that sets the sizes of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// As segments, blocks and transfers say.
    AsGiven,
    /// Each rank's bytes in one piece.
    Disjoint,
    /// So many stripes for each rank in turn.
    Stripes(u64),
}

/// The settings of a test. Names and defaults are IOR's.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub struct Settings {
    pub api: String,
    pub ref_num: i64,
    pub block_size: u64,
    pub transfer_size: u64,
    pub segment_count: u64,
    pub collective: bool,
    pub reorder_tasks: bool,
    pub reorder_random: u64,
    pub reorder_seed: i64,
    pub task_per_node_offset: u64,
    pub inter_test_delay: u64,
    pub inter_io_delay: u64,
    pub deadline: u64,
    pub wear_out: bool,
    pub wear_out_iterations: u64,
    pub stonewall_status_file: Option<String>,
    pub min_time: u64,
    pub max_time: u64,
    pub outlier_threshold: u64,
    pub fsync: bool,
    pub fsync_per_write: bool,
    pub use_existing: bool,
    pub script: Option<String>,
    pub file_per_proc: bool,
    pub unique_dir: bool,
    pub multi_file: bool,
    pub barriers: bool,
    pub signature: Option<u32>,
    pub packets: Packets,
    /// They were chosen, and a signature does not change them.
    pub packets_given: bool,
    pub repetitions: u64,
    pub keep_file: bool,
    pub keep_file_with_error: bool,
    pub memory_per_task: u64,
    pub memory_per_node: Option<String>,
    pub tasks: Option<usize>,
    pub tasks_on_node: Option<usize>,
    pub test_file: String,
    pub read_file: bool,
    pub write_file: bool,
    pub check_read: bool,
    pub check_write: bool,
    pub verbose: u64,
    pub random_offset: u64,
    pub random_offset_seed: i64,
    pub random_prefill: u64,
    pub warnings_are_errors: bool,
    pub dry_run: bool,
    pub summary_every_test: bool,
    pub summary_file: Option<String>,
    pub summary_format: SummaryFormat,
    pub rank_csv: Option<String>,
    pub per_op_csv: Option<String>,
    pub platform: Option<String>,
    /// Options of APIs: IOR's name of the API, and name and value as its stack has them, in the order given.
    pub api_options: Vec<(&'static str, &'static str, String)>,
    pub hints_file: Option<String>,
    pub show_hints: bool,
    pub chunk_size: u64,
    pub unlimited: bool,
    pub grid: [u64; 2],
    pub grid_chunk: [u64; 2],
    pub bytes: bool,
    pub placement: Placement,
    pub stripe_size: u64,
    pub stripe_count: u64,
    pub per_client: u64,
    pub gather: u64,
    pub dataset_per_segment: bool,
    pub lustre: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            api: "POSIX".into(),
            ref_num: 0,
            block_size: 1 << 20,
            transfer_size: 256 << 10,
            segment_count: 1,
            collective: false,
            reorder_tasks: false,
            reorder_random: 0,
            reorder_seed: 0,
            task_per_node_offset: 1,
            inter_test_delay: 0,
            inter_io_delay: 0,
            deadline: 0,
            wear_out: false,
            wear_out_iterations: 0,
            stonewall_status_file: None,
            min_time: 0,
            max_time: 0,
            outlier_threshold: 0,
            fsync: false,
            fsync_per_write: false,
            use_existing: false,
            script: None,
            file_per_proc: false,
            unique_dir: false,
            multi_file: false,
            barriers: false,
            signature: None,
            packets: Packets::ByPlace,
            packets_given: false,
            repetitions: 1,
            keep_file: false,
            keep_file_with_error: false,
            memory_per_task: 0,
            memory_per_node: None,
            tasks: None,
            tasks_on_node: None,
            test_file: "testFile".into(),
            read_file: false,
            write_file: false,
            check_read: false,
            check_write: false,
            verbose: 0,
            random_offset: 0,
            random_offset_seed: -1,
            random_prefill: 0,
            warnings_are_errors: false,
            dry_run: false,
            summary_every_test: false,
            summary_file: None,
            summary_format: SummaryFormat::Table,
            rank_csv: None,
            per_op_csv: None,
            platform: None,
            api_options: Vec::new(),
            hints_file: None,
            show_hints: false,
            chunk_size: 0,
            unlimited: false,
            grid: [0, 0],
            grid_chunk: [0, 0],
            bytes: false,
            placement: Placement::AsGiven,
            stripe_size: 1 << 20,
            stripe_count: 1,
            per_client: 0,
            gather: 1,
            dataset_per_segment: false,
            lustre: Vec::new(),
        }
    }
}

/// The value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given<'a> {
    /// `-C`: one time more.
    Once,
    /// `-C=1`, `reorderTasks=1`, `-b 4m`.
    Value(&'a str),
}

impl Settings {
    /// Does what a directive says. Notes are for people; an error names what is wrong with it.
    pub fn apply(&mut self, name: &str, given: Given<'_>, notes: &mut Vec<String>) -> Result<()> {
        let known = directives::find(name).ok_or_else(|| directives::unknown(name))?;
        let refused = |reason: &str| Err(Error::unsupported("set option", reason).target(name));
        match known.status {
            // What is refused may be switched off.
            Status::Refused(_) if given == Given::Value("0") => return Ok(()),
            Status::Refused(reason) => return refused(reason),
            Status::Note(note) => notes.push(format!("{name}: {note}")),
            Status::Taken => {}
        }
        self.set(known.name, given).map_err(|error| error.target(name))
    }

    fn set(&mut self, name: &str, given: Given<'_>) -> Result<()> {
        match name {
            "api" => self.api = text(given)?,
            "refNum" => self.ref_num = integer(given)?,
            "blockSize" => self.block_size = size(given)?,
            "transferSize" => self.transfer_size = size(given)?,
            "segmentCount" => self.segment_count = size(given)?,
            "collective" => self.collective = on(given)?,
            "reorderTasks" => self.reorder_tasks = on(given)?,
            "reorderTasksRandom" => self.reorder_random = times(given, self.reorder_random)?,
            "reorderTasksRandomSeed" => self.reorder_seed = integer(given)?,
            "taskPerNodeOffset" => self.task_per_node_offset = natural(given)?,
            "interTestDelay" => self.inter_test_delay = natural(given)?,
            "interIODelay" => self.inter_io_delay = natural(given)?,
            "deadlineForStonewalling" => self.deadline = natural(given)?,
            "stoneWallingWearOut" => self.wear_out = on(given)?,
            "stoneWallingWearOutIterations" => self.wear_out_iterations = natural(given)?,
            "stoneWallingStatusFile" => self.stonewall_status_file = Some(text(given)?),
            "minTimeDuration" => self.min_time = natural(given)?,
            "maxTimeDuration" => self.max_time = natural(given)?,
            "outlierThreshold" => self.outlier_threshold = natural(given)?,
            "fsync" => self.fsync = on(given)?,
            "fsyncPerWrite" => self.fsync_per_write = on(given)?,
            "useExistingTestFile" => self.use_existing = on(given)?,
            "scriptFile" => self.script = Some(text(given)?),
            "filePerProc" => self.file_per_proc = on(given)?,
            "uniqueDir" => self.unique_dir = on(given)?,
            "multiFile" => self.multi_file = on(given)?,
            "intraTestBarriers" => self.barriers = on(given)?,
            // IOR keeps 32 bits.
            "setTimeStampSignature" => {
                self.signature = Some(integer(given)? as u32);
                if !self.packets_given {
                    self.packets = Packets::Timestamp;
                }
            }
            "dataPacketType" => (self.packets, self.packets_given) = (packets(&text(given)?)?, true),
            "repetitions" => self.repetitions = natural(given)?,
            "keepFile" => self.keep_file = on(given)?,
            "keepFileWithError" => self.keep_file_with_error = on(given)?,
            "memoryPerTask" => self.memory_per_task = size(given)?,
            "memoryPerNode" => self.memory_per_node = Some(text(given)?),
            "numTasks" => self.tasks = Some(count(given)?),
            "numTasksOnNode0" => self.tasks_on_node = Some(count(given)?),
            "numNodes" => {
                count(given)?;
            }
            "testFile" => self.test_file = text(given)?,
            "readFile" => self.read_file = on(given)?,
            "writeFile" => self.write_file = on(given)?,
            "checkRead" => self.check_read = on(given)?,
            "checkWrite" => self.check_write = on(given)?,
            "verbose" => self.verbose = times(given, self.verbose)?,
            "randomOffset" => self.random_offset = times(given, self.random_offset)?,
            "random-offset-seed" => self.random_offset_seed = integer(given)?,
            "randomPrefill" => self.random_prefill = size(given)?,
            "warningAsErrors" => self.warnings_are_errors = on(given)?,
            "dryRun" => self.dry_run = on(given)?,
            "summaryAlways" => self.summary_every_test = on(given)?,
            "summaryFile" => self.summary_file = Some(text(given)?),
            "summaryFormat" => self.summary_format = summary_format(&text(given)?)?,
            "saveRankPerformanceDetailsCSV" => self.rank_csv = Some(text(given)?),
            "savePerOpDataCSV" => self.per_op_csv = Some(text(given)?),
            "platform" => self.platform = Some(text(given)?),
            "singleXferAttempt" | "debug" | "useFileView" | "mpiio.useFileView" => {}
            _ => return self.set_for_api(name, given),
        }
        Ok(())
    }

    /// Options of formats, and those that IOR does not have.
    fn set_for_api(&mut self, name: &str, given: Given<'_>) -> Result<()> {
        match name {
            "posix.odirect" => self.api_option("POSIX", "direct", on(given)?.then(|| "yes".into())),
            "hdf5.setAlignment" => {
                let bytes = size(given)?;
                let value = (bytes > 1).then(|| bytes.to_string());
                self.api_option("HDF5", "align", value.clone());
                self.api_option("HDF5", "align_threshold", value);
            }
            "hdf5.noFill" => self.api_option("HDF5", "fill_time", on(given)?.then(|| "never".into())),
            "hdf5.collectiveMetadata" => {
                self.api_option("HDF5", "collective_metadata", on(given)?.then(|| "yes".into()));
            }
            "hdf5.chunkSize" => self.chunk_size = size(given)?,
            "mpiio.hintsFileName" | "hdf5.hintsFileName" | "ncmpi.hintsFileName" => {
                self.hints_file = Some(text(given)?);
            }
            "mpiio.showHints" | "hdf5.showHints" | "ncmpi.showHints" => self.show_hints = on(given)?,
            "mpiio.preallocate" | "ncmpi.preallocate" => {
                self.api_option("MPIIO", "preallocate", on(given)?.then(|| "yes".into()));
            }
            "posix.lustre.stripecount" | "posix.lustre.stripesize" | "posix.lustre.startost" | "posix.lustre.pool" => {
                let key = name.trim_start_matches("posix.lustre.").to_owned();
                let value = match key.as_str() {
                    "stripesize" => size(given)?.to_string(),
                    "pool" => text(given)?,
                    _ => integer(given)?.to_string(),
                };
                self.lustre.retain(|(known, _)| *known != key);
                self.lustre.push((key, value));
            }
            "chunkSize" => (self.chunk_size, self.bytes) = (size(given)?, true),
            "unlimited" => (self.unlimited, self.bytes) = (on(given)?, true),
            "dimx" => self.grid[0] = size(given)?,
            "dimy" => self.grid[1] = size(given)?,
            "chunkx" => self.grid_chunk[0] = size(given)?,
            "chunky" => self.grid_chunk[1] = size(given)?,
            "pattern" => self.placement = placement(&text(given)?)?,
            "stripe-size" => self.stripe_size = size(given)?,
            "stripe-count" => self.stripe_count = size(given)?,
            "per-client" => self.per_client = size(given)?,
            "gather" => self.gather = natural(given)?,
            "dataset-per-segment" => self.dataset_per_segment = on(given)?,
            _ => return Err(Error::invalid("set option", "nothing is done for it").target(name)),
        }
        Ok(())
    }

    /// Sets or takes back an option of the format.
    fn api_option(&mut self, api: &'static str, key: &'static str, value: Option<String>) {
        self.api_options.retain(|known| (known.0, known.1) != (api, key));
        self.api_options.extend(value.map(|value| (api, key, value)));
    }
}

fn text(given: Given<'_>) -> Result<String> {
    match given {
        Given::Value(value) if !value.trim().is_empty() => Ok(value.trim().to_owned()),
        _ => Err(Error::invalid("set option", "it needs a value")),
    }
}

fn integer(given: Given<'_>) -> Result<i64> {
    size::parse_integer(&text(given)?)
}

fn size(given: Given<'_>) -> Result<u64> {
    size::parse(&text(given)?)
}

fn natural(given: Given<'_>) -> Result<u64> {
    let value = integer(given)?;
    u64::try_from(value).map_err(|_| Error::invalid("set option", format!("{value} is below 0")))
}

/// The most ranks that a test can ask for.
const MOST_RANKS: u64 = 1 << 20;

fn count(given: Given<'_>) -> Result<usize> {
    let value = natural(given)?;
    if !(1..=MOST_RANKS).contains(&value) {
        return Err(Error::invalid("set option", format!("{value} ranks; 1 to {MOST_RANKS} are possible")));
    }
    Ok(value as usize)
}

fn on(given: Given<'_>) -> Result<bool> {
    match given {
        Given::Once => Ok(true),
        Given::Value(value) => match value.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(true),
            "false" | "no" | "off" => Ok(false),
            number => Ok(size::parse_integer(number)? > 0),
        },
    }
}

/// How often a flag was given.
fn times(given: Given<'_>, before: u64) -> Result<u64> {
    match given {
        Given::Once => Ok(before.saturating_add(1)),
        Given::Value(_) => natural(given),
    }
}

fn packets(text: &str) -> Result<Packets> {
    match text.to_ascii_lowercase().as_str() {
        "t" | "timestamp" => Ok(Packets::Timestamp),
        "o" | "offset" => Ok(Packets::Offset),
        "i" | "incompressible" => Ok(Packets::Incompressible),
        "r" | "random" => Ok(Packets::Random),
        "place" => Ok(Packets::ByPlace),
        _ => Err(Error::invalid("set option", format!("{text:?} is no kind of data"))
            .hint("use timestamp, offset, incompressible or random; place are Hyperslab's own data")),
    }
}

fn summary_format(text: &str) -> Result<SummaryFormat> {
    match text.to_ascii_lowercase().as_str() {
        "default" => Ok(SummaryFormat::Table),
        "json" => Ok(SummaryFormat::Json),
        "csv" => Ok(SummaryFormat::Csv),
        _ => Err(Error::invalid("set option", format!("{text:?} is no format")).hint("use default, JSON or CSV")),
    }
}

fn placement(text: &str) -> Result<Placement> {
    let bad = || {
        Error::invalid("set option", format!("{text:?} is no pattern"))
            .hint("use disjoint, or ost:2 for two stripes of each rank in turn")
    };
    match text.to_ascii_lowercase().split_once(':') {
        None if text.eq_ignore_ascii_case("disjoint") => Ok(Placement::Disjoint),
        Some(("ost", stripes)) => {
            stripes.parse().ok().filter(|&stripes| stripes > 0).map(Placement::Stripes).ok_or_else(bad)
        }
        _ => Err(bad()),
    }
}
