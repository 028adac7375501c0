//! What stands above the figures, by name and value, for text and for JSON.

use super::node::Node;
use crate::plan::Plan;
use crate::size;
use crate::timestamp;
use std::path::Path;

type Pairs = Vec<(String, Node)>;

fn pair(key: &str, node: Node) -> (String, Node) {
    (key.to_owned(), node)
}

/// The run.
pub fn head(command_line: &str) -> Pairs {
    let names = rustix::system::uname();
    let machine = format!("{} {}", names.sysname().to_string_lossy(), names.nodename().to_string_lossy());
    vec![
        pair("Began", Node::text(timestamp::now())),
        pair("Command line", Node::text(command_line)),
        pair("Machine", Node::text(machine)),
    ]
}

/// The end of the run.
pub fn finished() -> (String, Node) {
    pair("Finished", Node::text(timestamp::now()))
}

/// The test, and the file system it is on.
pub fn place(plan: &Plan) -> Pairs {
    let path = plan.path(0, 0);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut pairs = vec![
        pair("TestID", Node::count(plan.id as u64)),
        pair("StartTime", Node::text(timestamp::now())),
        pair("Path", Node::text(path.display().to_string())),
    ];
    if let Ok(stat) = rustix::fs::statvfs(directory) {
        let bytes = stat.f_blocks.saturating_mul(stat.f_frsize) as f64;
        let used = |free: u64, all: u64| format!("{:.1}%", (1.0 - free as f64 / (all.max(1)) as f64) * 100.0);
        let gibibytes = bytes / f64::from(1 << 30);
        let capacity = match gibibytes > 1024.0 {
            true => format!("{:.1} TiB", gibibytes / 1024.0),
            false => format!("{gibibytes:.1} GiB"),
        };
        pairs.extend([
            pair("Capacity", Node::text(capacity)),
            pair("Used Capacity", Node::text(used(stat.f_bfree, stat.f_blocks))),
            pair("Inodes", Node::text(format!("{:.1} Mi", stat.f_files as f64 / f64::from(1 << 20)))),
            pair("Used Inodes", Node::text(used(stat.f_ffree, stat.f_files))),
        ]);
    }
    pairs
}

/// What people want to see of the settings.
pub fn options(plan: &Plan) -> Pairs {
    let settings = &plan.settings;
    let mut pairs = vec![
        pair("api", Node::text(&settings.api)),
        pair("apiVersion", Node::text("")),
        pair("stack", Node::text(plan.stack.to_string())),
        pair("test filename", Node::text(&settings.test_file)),
        pair("access", Node::text(if settings.file_per_proc { "file-per-process" } else { "single-shared-file" })),
        pair("type", Node::text(if settings.collective { "collective" } else { "independent" })),
        pair("segments", Node::count(settings.segment_count)),
        pair("ordering in a file", Node::text(if settings.random_offset > 0 { "random" } else { "sequential" })),
    ];
    if settings.reorder_tasks || settings.reorder_random > 0 {
        let kind = if settings.reorder_tasks { "constant task offset" } else { "random task offset" };
        pairs.push(pair("ordering inter file", Node::text(kind)));
        pairs.push(pair("task offset", Node::count(settings.task_per_node_offset)));
        if settings.reorder_random > 0 {
            pairs.push(pair("reorder random seed", Node::Count(settings.reorder_seed)));
        }
    } else {
        pairs.push(pair("ordering inter file", Node::text("no tasks offsets")));
    }
    pairs.extend([
        pair("nodes", Node::count(plan.ranks.div_ceil(plan.per_node) as u64)),
        pair("tasks", Node::count(plan.ranks as u64)),
        pair("clients per node", Node::count(plan.per_node as u64)),
        pair("repetitions", Node::count(settings.repetitions)),
        pair("xfersize", Node::text(size::display(settings.transfer_size))),
        pair("blocksize", Node::text(size::display(settings.block_size))),
        pair("aggregate filesize", Node::text(size::display(plan.bytes()))),
    ]);
    if settings.memory_per_task > 0 {
        pairs.push(pair("memoryPerTask", Node::text(size::display(settings.memory_per_task))));
    }
    if let Some(memory) = &settings.memory_per_node {
        pairs.push(pair("memoryPerNode", Node::text(memory)));
    }
    if settings.gather > 1 {
        pairs.push(pair("gathered blocks", Node::count(settings.gather)));
    }
    if settings.dry_run {
        pairs.push(pair("dryRun", Node::flag(true)));
    }
    if settings.verbose > 0 {
        pairs.push(pair("verbose", Node::count(settings.verbose)));
    }
    if settings.deadline > 0 {
        pairs.push(pair("stonewallingTime", Node::count(settings.deadline)));
        pairs.push(pair("stoneWallingWearOut", Node::flag(settings.wear_out)));
    }
    pairs
}

/// All settings, by the names that IOR gives them.
pub fn parameters(plan: &Plan) -> Pairs {
    let s = &plan.settings;
    vec![
        pair("testID", Node::count(plan.id as u64)),
        pair("refnum", Node::Count(s.ref_num)),
        pair("api", Node::text(&s.api)),
        pair("platform", Node::text(s.platform.clone().unwrap_or_default())),
        pair("testFileName", Node::text(&s.test_file)),
        pair("deadlineForStonewall", Node::count(s.deadline)),
        pair("stoneWallingWearOut", Node::flag(s.wear_out)),
        pair("maxTimeDuration", Node::count(s.max_time)),
        pair("outlierThreshold", Node::count(s.outlier_threshold)),
        pair("dryRun", Node::flag(s.dry_run)),
        pair("nodes", Node::count(plan.ranks.div_ceil(plan.per_node) as u64)),
        pair("memoryPerTask", Node::count(s.memory_per_task)),
        pair("memoryPerNode", Node::text(s.memory_per_node.clone().unwrap_or_else(|| "0".into()))),
        pair("tasksPerNode", Node::count(plan.per_node as u64)),
        pair("repetitions", Node::count(s.repetitions)),
        pair("multiFile", Node::flag(s.multi_file)),
        pair("interTestDelay", Node::count(s.inter_test_delay)),
        pair("fsync", Node::flag(s.fsync)),
        pair("fsyncperwrite", Node::flag(s.fsync_per_write)),
        pair("useExistingTestFile", Node::flag(s.use_existing)),
        pair("uniqueDir", Node::flag(s.unique_dir)),
        pair("readFile", Node::flag(s.read_file)),
        pair("writeFile", Node::flag(s.write_file)),
        pair("filePerProc", Node::flag(s.file_per_proc)),
        pair("reorderTasks", Node::flag(s.reorder_tasks)),
        pair("reorderTasksRandom", Node::count(s.reorder_random)),
        pair("reorderTasksRandomSeed", Node::Count(s.reorder_seed)),
        pair("randomOffset", Node::count(s.random_offset)),
        pair("checkWrite", Node::flag(s.check_write)),
        pair("checkRead", Node::flag(s.check_read)),
        pair("data packet type", Node::text(format!("{:?}", s.packets).to_lowercase())),
        pair("setTimeStampSignature/incompressibleSeed", Node::count(u64::from(s.signature.unwrap_or(0)))),
        pair("keepFile", Node::flag(s.keep_file)),
        pair("keepFileWithError", Node::flag(s.keep_file_with_error)),
        pair("warningAsErrors", Node::flag(s.warnings_are_errors)),
        pair("verbose", Node::count(s.verbose)),
        pair("collective", Node::flag(s.collective)),
        pair("segmentCount", Node::count(s.segment_count)),
        pair("transferSize", Node::count(s.transfer_size)),
        pair("blockSize", Node::count(s.block_size)),
    ]
}
