//! From settings to a pattern, a stack and files; what contradicts itself is refused before anything is opened.

use crate::api;
use crate::settings::{Packets, Placement, Settings};
use crate::warnings::Warnings;
use hyperslab_core::{Error, Result, Stack, TransferMode};
use hyperslab_kernels::ior::{Ior, Layout, Order, Readers};
use std::path::{Path, PathBuf};

/// A test that can be run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What was asked for, with what follows from it.
    pub settings: Settings,
    /// The number of the test.
    pub id: usize,
    /// On what.
    pub stack: Stack,
    /// Ranks.
    pub ranks: usize,
    /// Ranks of a machine.
    pub per_node: usize,
    /// The pattern, with a seed that each repetition changes.
    pub ior: Ior,
    /// The signature of IOR's data; seed of our own.
    pub signature: u32,
}

impl Plan {
    /// Checks `settings` for `ranks` ranks, `per_node` of them on each machine.
    pub fn new(
        mut settings: Settings,
        id: usize,
        ranks: usize,
        per_node: usize,
        now: u32,
        warnings: &mut Warnings,
    ) -> Result<Self> {
        if !(settings.write_file || settings.read_file || settings.check_write || settings.check_read) {
            (settings.write_file, settings.read_file) = (true, true);
        }
        place(&mut settings)?;
        check(&mut settings, warnings)?;
        let mut notes = Vec::new();
        let stack = api::stack(&settings, &mut notes)?;
        notes.into_iter().for_each(|note| warnings.note(note));
        // Every rank has to draw the same numbers.
        let seed = if settings.random_offset_seed == -1 { now } else { settings.random_offset_seed as u32 };
        let per_node = settings.tasks_on_node.unwrap_or(per_node).clamp(1, ranks);
        let ior = Ior {
            file_per_rank: settings.file_per_proc,
            block: settings.block_size,
            transfer: settings.transfer_size,
            segments: settings.segment_count,
            order: match settings.random_offset {
                0 => Order::Sequential,
                1 => Order::Shuffled { seed },
                _ => Order::RandomBlocks { seed },
            },
            layout: layout(&settings)?,
            gather: settings.gather,
            mode: if settings.collective { TransferMode::Collective } else { TransferMode::Independent },
            sync_each_write: settings.fsync_per_write,
            sync_at_end: settings.fsync,
            barriers: settings.barriers,
            compute: settings.inter_io_delay.saturating_mul(1000),
            ..Ior::new(ranks, base_name(&settings.test_file)?)
        };
        ior.check()?;
        let signature = settings.signature.unwrap_or(now);
        Ok(Self { settings, id, stack, ranks, per_node, ior, signature })
    }

    /// The container of `owner` in a repetition.
    pub fn path(&self, owner: usize, repetition: u64) -> PathBuf {
        let names: Vec<&str> = self.settings.test_file.split('@').filter(|name| !name.is_empty()).collect();
        let mut path = if self.settings.file_per_proc {
            let root = Path::new(names[owner % names.len()]);
            let root = match (self.settings.unique_dir, root.file_name()) {
                (true, Some(name)) => root.with_file_name(owner.to_string()).join(name),
                _ => root.to_owned(),
            };
            format!("{}.{owner:08}", root.display())
        } else {
            names[0].to_owned()
        };
        if self.settings.multi_file {
            path.push_str(&format!(".{repetition}"));
        }
        path.into()
    }

    /// Whose data each rank takes in a read of a repetition.
    pub fn readers(&self, repetition: u64) -> Readers {
        let settings = &self.settings;
        let seed = match settings.reorder_seed {
            seed if seed < 0 => (-seed as u32).wrapping_add(repetition as u32),
            seed => seed as u32,
        };
        match settings.reorder_random {
            0 if settings.reorder_tasks => Readers::Shifted(self.shift(settings.task_per_node_offset)),
            0 => Readers::own(),
            1 => {
                let nodes = self.ranks.div_ceil(self.per_node) as u64;
                let distance = settings.task_per_node_offset.min(nodes - 1) as usize * self.per_node;
                Readers::random(self.ranks, seed, distance)
            }
            _ => Readers::shuffled(self.ranks, seed),
        }
    }

    /// Whose data each rank takes in the check of a write.
    pub fn checkers(&self) -> Readers {
        if self.settings.reorder_tasks {
            Readers::Shifted(self.shift(self.settings.task_per_node_offset.saturating_add(1)))
        } else {
            Readers::own()
        }
    }

    /// So many machines away; on one machine, so many ranks, or the reader would be the writer.
    fn shift(&self, offset: u64) -> usize {
        let step = if self.per_node < self.ranks { self.per_node as u64 } else { 1 };
        (offset.wrapping_mul(step) % self.ranks as u64) as usize
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.ior.total_bytes().unwrap_or(u64::MAX)
    }
}

/// The last part of the first name, which the workload goes by.
fn base_name(test_file: &str) -> Result<String> {
    let first = test_file.split('@').find(|name| !name.is_empty()).unwrap_or_default();
    let name = Path::new(first).file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| Error::invalid("plan test", format!("-o {test_file} names no file")))
}

/// Sizes that follow from a pattern.
fn place(settings: &mut Settings) -> Result<()> {
    let bad = |message: String| Err(Error::invalid("plan test", message));
    match settings.placement {
        Placement::AsGiven => {}
        Placement::Disjoint => {
            let total = match settings.per_client {
                0 => settings.block_size.checked_mul(settings.segment_count),
                bytes => Some(bytes),
            };
            let Some(total) = total else { return bad("--per-client is more than a file can have".into()) };
            (settings.block_size, settings.segment_count) = (total, 1);
        }
        Placement::Stripes(stripes) => {
            let Some(bytes) = settings.stripe_size.checked_mul(stripes) else {
                return bad(format!("{stripes} stripes are more than a file can have"));
            };
            let total = match settings.per_client {
                0 => settings.block_size.saturating_mul(settings.segment_count),
                bytes => bytes,
            };
            if bytes == 0 || !total.is_multiple_of(bytes) {
                return bad(format!("{total} bytes of each rank are not a multiple of {bytes} bytes of stripes"));
            }
            (settings.block_size, settings.transfer_size, settings.segment_count) = (bytes, bytes, total / bytes);
        }
    }
    // One call covers whole blocks.
    if settings.gather > 1 {
        settings.transfer_size = settings.block_size;
    }
    Ok(())
}

fn layout(settings: &Settings) -> Result<Layout> {
    let [rows, columns] = settings.grid;
    let chunk = match settings.grid_chunk {
        [0, 0] => None,
        [rows, columns] => Some([rows.max(1), columns.max(1)]),
    };
    if columns > 0 {
        return Ok(Layout::Grid { columns, rows: (rows > 0).then_some(rows), chunk, grows: settings.unlimited });
    }
    if rows > 0 || chunk.is_some() {
        return Err(Error::invalid("plan test", "rows and chunks of rows need --dimy"));
    }
    let chunk = (settings.chunk_size > 0).then_some(settings.chunk_size);
    Ok(match (settings.bytes, chunk) {
        (true, chunk) if settings.unlimited => Layout::GrowingBytes { chunk: chunk.unwrap_or(settings.transfer_size) },
        (true, chunk) => Layout::Bytes { chunk },
        (false, _) if settings.dataset_per_segment => Layout::WordsPerSegment,
        (false, Some(chunk)) => Layout::ChunkedWords(chunk),
        (false, None) => Layout::Words,
    })
}

/// What IOR refuses, and what would not do what it says.
fn check(settings: &mut Settings, warnings: &mut Warnings) -> Result<()> {
    let bad = |message: &str| Err(Error::invalid("plan test", message));
    if settings.repetitions == 0 {
        warnings.warn("too few test repetitions, using 1")?;
        settings.repetitions = 1;
    }
    if settings.repetitions > 1 << 20 {
        return bad("too many repetitions");
    }
    if settings.stripe_size == 0 || !(1..=65536).contains(&settings.stripe_count) {
        return bad("stripes have at least one byte, and go to 1 to 65536 targets");
    }
    if settings.reorder_tasks && settings.reorder_random > 0 {
        return bad("both -C and -Z are given; choose one");
    }
    if settings.random_offset > 0 && (settings.reorder_tasks || settings.reorder_random > 0) && !settings.file_per_proc
    {
        return bad("-z with -C or -Z needs a file per process (-F)");
    }
    if settings.random_prefill > 0 {
        if settings.random_offset == 0 {
            return bad("--randomPrefill is for random access; add -z");
        }
        if !settings.block_size.is_multiple_of(settings.random_prefill) || !settings.random_prefill.is_multiple_of(8) {
            return bad("--randomPrefill must divide the block, and be a multiple of 8");
        }
    }
    let several = settings.test_file.split('@').filter(|name| !name.is_empty()).count();
    if several == 0 {
        return bad("-o names no file");
    }
    if several > 1 && settings.unique_dir {
        return bad("several files (-o a@b) cannot have directories of their own (-u)");
    }
    if several > 1 && !settings.file_per_proc {
        warnings.warn("a shared file is one file: of -o a@b only the first is used")?;
    }
    if settings.unique_dir && !settings.file_per_proc {
        warnings.warn("-u is for a file per process (-F), and does nothing")?;
    }
    if settings.deadline == 0 && settings.wear_out {
        return bad("stoneWallingWearOut needs a deadline: add -D");
    }
    if settings.stonewall_status_file.is_some() && !settings.keep_file {
        return bad("stoneWallingStatusFile is for a later read: add -k");
    }
    if settings.stonewall_status_file.is_some() && settings.write_file && !settings.wear_out {
        return bad(
            "stoneWallingStatusFile needs stoneWallingWearOut=1, or ranks would have written different amounts",
        );
    }
    let own = settings.packets == Packets::ByPlace;
    if !own && settings.signature.is_none() && settings.check_read && !settings.write_file {
        return bad("reading and comparing IOR's data needs their signature: add -G");
    }
    if settings.check_write && !settings.write_file && !own && settings.signature.is_none() {
        return bad("-W without -w compares what is there with IOR's data, which needs their signature: add -G");
    }
    if settings.dataset_per_segment && (settings.chunk_size > 0 || settings.bytes || settings.grid[1] > 0) {
        return bad("--dataset-per-segment is IOR's own layout; leave out chunkSize, unlimited and dimy");
    }
    if settings.use_existing && settings.unlimited {
        return bad("a file that grows is made anew: leave out -E or unlimited");
    }
    if settings.use_existing && settings.multi_file && settings.repetitions > 1 {
        warnings.note("-E with -m: each repetition uses its own file".into());
    }
    Ok(())
}
