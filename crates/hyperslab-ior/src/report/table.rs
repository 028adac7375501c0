//! IOR's tables and lines, column by column.

use super::node::Node;
use super::summary::{Figures, phases};
use crate::measured::{Access, Measured};
use crate::plan::Plan;
use crate::test_run::{Row, TestResult};
use hyperslab_core::{Error, Result};
use std::fs::OpenOptions;
use std::io::Write;

const KIBIBYTE: f64 = 1024.0;
pub const MEBIBYTE: f64 = 1024.0 * 1024.0;
const MEGABYTE: f64 = 1e6;

/// Above the rows of a test.
pub const HEADER: &str = "\
access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
";

/// Above the lines of CSV.
pub const CSV_HEADER: &str =
    "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n";

/// A number as the table has it: 10 wide, with 6 digits below 1, 2 below 3600 and none above.
pub fn number(value: f64) -> String {
    match value {
        value if value < 0.0 => "   -      ".into(),
        value if value < 1.0 => format!("{value:<10.6}"),
        value if value < 3600.0 => format!("{value:<10.2}"),
        value => format!("{value:<10.0}"),
    }
}

/// Names and values, one a line.
pub fn pairs(pairs: &[(String, Node)]) -> String {
    pairs.iter().map(|(key, value)| format!("{key:<20}: {}\n", value.shown())).collect()
}

fn columns(plan: &Plan, measured: &Measured) -> [f64; 9] {
    let settings = &plan.settings;
    [
        measured.rate() / MEBIBYTE,
        measured.iops(settings.transfer_size),
        measured.latency,
        settings.block_size as f64 / KIBIBYTE,
        settings.transfer_size as f64 / KIBIBYTE,
        measured.open,
        measured.transfers,
        measured.close,
        measured.total,
    ]
}

/// The row of a phase.
pub fn row(plan: &Plan, row: &Row) -> String {
    let mut line = format!("{:<10}", row.access.word());
    for (at, value) in columns(plan, &row.measured).into_iter().enumerate() {
        line.push_str(&number(value));
        line.push_str(if at == 2 { "  " } else { " " });
    }
    format!("{line}{:<4}\n", row.repetition)
}

/// The same as CSV.
pub fn csv_row(plan: &Plan, row: &Row) -> String {
    let values: String = columns(plan, &row.measured).iter().map(|value| format!("{value:.4},")).collect();
    format!("{},{values}{},{}\n", row.access.word(), plan.ranks, row.repetition)
}

/// The row of a removal.
pub fn removal(repetition: u64, seconds: f64) -> String {
    let dashes = "remove    -          -          -           -          -          -          -          -          ";
    format!("{dashes}{} {repetition:<4}\n", number(seconds))
}

/// The best rates.
pub fn best(most: &[(Access, f64)]) -> String {
    let line = |(access, rate): &(Access, f64)| {
        let name = if *access == Access::Write { "Max Write: " } else { "Max Read:  " };
        format!("{name}{:.2} MiB/sec ({:.2} MB/sec)\n", rate / MEBIBYTE, rate / MEGABYTE)
    };
    most.iter().map(line).collect()
}

/// The long table of tests.
pub fn summary(tests: &[(&Plan, &TestResult)]) -> String {
    let mut text = format!(
        "{:<9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>13}",
        "Operation",
        "Max(MiB)",
        "Min(MiB)",
        "Mean(MiB)",
        "StdDev",
        "Max(OPs)",
        "Min(OPs)",
        "Mean(OPs)",
        "StdDev",
        "Mean(s)",
        "Stonewall(s)",
        "Stonewall(MiB)"
    );
    text.push_str(" Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt ");
    text.push_str(&format!("{:>8} {:>8} {:>9} {:>5} RefNum\n", " blksiz", "xsize", "aggs(MiB)", "API"));
    for (plan, result) in tests {
        for access in [Access::Write, Access::Read] {
            let phases = phases(result, access);
            if !phases.is_empty() {
                text.push_str(&summary_line(plan, access, &phases));
            }
        }
    }
    text
}

fn summary_line(plan: &Plan, access: Access, phases: &[&Measured]) -> String {
    let settings = &plan.settings;
    let bytes = Figures::of(&phases.iter().map(|phase| phase.rate() / MEBIBYTE).collect::<Vec<_>>());
    // Operations of the whole time, unlike those of the rows.
    let rate = |phase: &&Measured| phase.bytes as f64 / settings.transfer_size as f64 / phase.total;
    let operations = Figures::of(&phases.iter().map(rate).collect::<Vec<_>>());
    let seconds = phases.iter().map(|phase| phase.total).sum::<f64>() / phases.len() as f64;
    let mut line = format!("{:<9} ", access.word());
    for Figures { max, min, mean, deviation } in [bytes, operations] {
        line.push_str(&format!("{max:>10.2} {min:>10.2} {mean:>10.2} {deviation:>10.2} "));
    }
    line.push_str(&format!("{seconds:>10.5} "));
    let stopped: Vec<_> = phases.iter().filter_map(|phase| phase.stonewall).collect();
    if settings.wear_out && !stopped.is_empty() {
        let time = stopped.iter().map(|stonewall| stonewall.seconds).sum::<f64>();
        let mean = stopped.iter().map(|stonewall| stonewall.bytes / plan.ranks as u64).sum::<u64>();
        let rate = mean as f64 / time / MEBIBYTE;
        line.push_str(&format!("{:>10.2} {rate:>13.2} ", time / stopped.len() as f64));
    } else {
        line.push_str(&format!("{:>10} {:>13} ", "NA", "NA"));
    }
    line.push_str(&format!(
        "{:>5} {:>6} {:>3} {:>4} {:>3} {:>5} {:>8} {:>9} {:>4} {:>6} {:>8} {:>8} {:>9.1} {:>3} {:>6}\n",
        plan.id,
        plan.ranks,
        plan.per_node,
        settings.repetitions,
        u8::from(settings.file_per_proc),
        u8::from(settings.reorder_tasks),
        settings.task_per_node_offset,
        settings.reorder_random,
        settings.reorder_seed,
        settings.segment_count,
        settings.block_size,
        settings.transfer_size,
        phases[0].bytes as f64 / MEBIBYTE,
        settings.api,
        settings.ref_num,
    ));
    line
}

/// The first line of a file of ranks' times.
pub const RANKS_HEADER: &str = "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n";

/// Appends the times of all ranks in a phase.
pub fn append_ranks(file: &str, row: &Row) -> Result<()> {
    let failed = |e| Error::io("write times of ranks", e).target(file);
    let mut out = OpenOptions::new().append(true).create(true).open(file).map_err(failed)?;
    let each = row.measured.bytes as f64 / row.measured.ranks.len() as f64;
    let exponent = |value: f64| c_exponent(value);
    for (rank, times) in row.measured.ranks.iter().enumerate() {
        let values = [times.total, times.transfers, each / times.total, each / times.transfers].map(exponent).join(",");
        writeln!(out, "{},{rank},{values}", row.access.word()).map_err(failed)?;
    }
    Ok(())
}

/// A number with ten digits and an exponent of at least two, as C prints it.
fn c_exponent(value: f64) -> String {
    let text = format!("{value:.10e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_in_ior() {
        for (value, text) in [
            (0.005734, "0.005734  "),
            (0.0, "0.000000  "),
            (1.0, "1.00      "),
            (348.33, "348.33    "),
            (3599.994, "3599.99   "),
            (3600.0, "3600      "),
            (13125.4, "13125     "),
            (4096.0, "4096      "),
            (-1.0, "   -      "),
            (12_345_678_901.0, "12345678901"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!((c_exponent(0.0123).as_str(), c_exponent(5e9).as_str()), ("1.2300000000e-02", "5.0000000000e+09"));
    }
}
