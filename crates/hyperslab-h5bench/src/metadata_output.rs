//! The row of results that iotest writes as CSV.

use super::metadata::{DATASET_RANKS, LAYOUTS, SCALINGS, SLOWEST, TRANSFERS, word_of};
use anyhow::{Result, bail};
use hyperslab_kernels::Tiles;
use hyperslab_run::{CaseResult, Operation, RankMeasurement, Repetition, Spread};

/// The names of the columns.
pub const HEADER: &str = "steps,arrays,rows,cols,scaling,proc-rows,proc-cols,slowdim,rank,layout,mpi-io,wall [s],\
    fsize [B],write-phase-min [s],write-phase-max [s],creat-min [s],creat-max [s],write-min [s],write-max [s],\
    write-rate-min [MiB/s],write-rate-max [MiB/s],read-phase-min [s],read-phase-max [s],read-min [s],read-max [s],\
    read-rate-min [MiB/s],read-rate-max [MiB/s]";

const MEBIBYTE: f64 = 1048576.0;

/// The row under [`HEADER`]: smallest and largest time of a rank, the median of these over the repetitions. `wall` is
/// the sum of both phases. A rate is of the bytes of one rank; it is 0 where no time was measured. Refuses cases without
/// a completed repetition.
pub fn row(tiles: &Tiles, write: &CaseResult, read: &CaseResult, file_bytes: u64) -> Result<String> {
    if write.repetitions.is_empty() || read.repetitions.is_empty() {
        bail!("a row of results needs a completed repetition of both the write and the read");
    }
    let bytes = tiles.rank_bytes()? as f64;
    let write_phase = Range::of(write, |rank| rank.observed);
    let create = Range::of(write, |rank| {
        rank.open_file + seconds_in(rank, Operation::Create) + seconds_in(rank, Operation::Open)
    });
    let writing = Range::of(write, |rank| seconds_in(rank, Operation::Write));
    let read_phase = Range::of(read, |rank| rank.observed);
    let reading = Range::of(read, |rank| seconds_in(rank, Operation::Read));
    let mut cells = vec![
        tiles.steps.to_string(),
        tiles.arrays.to_string(),
        tiles.rows.to_string(),
        tiles.columns.to_string(),
        word_of(&SCALINGS, &tiles.scaling).into(),
        tiles.process_rows.to_string(),
        tiles.process_columns.to_string(),
        word_of(&SLOWEST, &tiles.slowest).into(),
        word_of(&DATASET_RANKS, &tiles.dataset_rank).into(),
        word_of(&LAYOUTS, &tiles.chunked).into(),
        word_of(&TRANSFERS, &tiles.transfer).into(),
        format!("{:.6}", write_phase.max + read_phase.max),
        file_bytes.to_string(),
    ];
    for range in [write_phase, create, writing, writing.rate(bytes), read_phase, reading, reading.rate(bytes)] {
        cells.extend([range.min, range.max].map(|value| format!("{value:.6}")));
    }
    Ok(cells.join(","))
}

/// The time a rank spent in calls of one kind.
pub fn seconds_in(rank: &RankMeasurement, operation: Operation) -> f64 {
    rank.operations.get(operation.name()).map_or(0.0, |latency| latency.total)
}

/// Smallest and largest of the ranks.
#[derive(Debug, Clone, Copy)]
struct Range {
    min: f64,
    max: f64,
}

impl Range {
    fn of(case: &CaseResult, time: impl Fn(&RankMeasurement) -> f64) -> Self {
        let median = |of: &dyn Fn(&Repetition) -> f64| Spread::of(case.repetitions.iter().map(of)).median;
        let fastest = |r: &Repetition| r.ranks.iter().map(&time).reduce(f64::min).unwrap_or(0.0);
        Self { min: median(&fastest), max: median(&|r| r.slowest(&time)) }
    }

    /// The rates in MiB/s of ranks that move `bytes` bytes each in times of this range.
    fn rate(self, bytes: f64) -> Self {
        let rate = |seconds: f64| if seconds > 0.0 { bytes / MEBIBYTE / seconds } else { 0.0 };
        Self { min: rate(self.max), max: rate(self.min) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::metadata::Metadata;
    use hyperslab_core::CacheState;
    use hyperslab_run::{Latency, Status, Verified};
    use serde_json::Map;

    /// A measurement with totals of operations; it observed their sum.
    pub fn measured(operations: &[(Operation, f64)], bytes_written: u64, bytes_read: u64) -> RankMeasurement {
        let total = |wanted: &[Operation]| operations.iter().filter(|(o, _)| wanted.contains(o)).map(|(_, t)| t).sum();
        let latency = |total: f64| Latency { count: 1, total, ..Latency::default() };
        RankMeasurement {
            observed: operations.iter().map(|(_, t)| t).sum(),
            raw: total(&[Operation::Write, Operation::Read]),
            open_file: total(&[Operation::OpenFile]),
            close_file: total(&[Operation::CloseFile]),
            flush: total(&[Operation::Flush]),
            bytes_written,
            bytes_read,
            operations: operations.iter().map(|(o, t)| (o.name().to_owned(), latency(*t))).collect(),
            ..RankMeasurement::default()
        }
    }

    /// A case with these repetitions of ranks.
    pub fn case(repetitions: Vec<Vec<RankMeasurement>>) -> CaseResult {
        let mut case = CaseResult {
            axes: Default::default(),
            number: 1,
            benchmark: "metadata".into(),
            file: "m.h5".into(),
            workload: String::new(),
            stack: hyperslab_core::parse_stacks("posix").unwrap().remove(0),
            launcher: "threads".into(),
            ranks: 2,
            cache: CacheState::Warm,
            status: Status::Ok,
            error: None,
            verified: Verified::NotAsked,
            warnings: Vec::new(),
            bytes: 0,
            observed: Spread::default(),
            observed_rate: Spread::default(),
            raw_rate: Spread::default(),
            stored: None,
            predicted: None,
            load: None,
            operations: Default::default(),
            fastest_rank: None,
            slowest_rank: None,
            repetitions: Vec::new(),
        };
        case.set_repetitions(
            repetitions.into_iter().map(|ranks| Repetition { resident_before: None, ranks }).collect(),
        );
        case
    }

    #[test]
    fn the_row_has_iotest_columns() {
        use Operation as O;
        let map: Map<_, _> = serde_json::from_str(
            r#"{"steps": 4, "arrays": 2, "rows": 128, "columns": 128, "process-columns": 2, "layout": "chunked"}"#,
        )
        .unwrap();
        let tiles = Metadata::parse("m.h5".into(), &map, "here").unwrap().kernel(2, "m.h5").unwrap();
        assert_eq!(tiles.rank_bytes().unwrap(), 1 << 20);
        let writer = |create: f64, write: f64| {
            measured(&[(O::OpenFile, 1.0), (O::Create, create), (O::Write, write), (O::CloseFile, 2.0)], 1 << 20, 0)
        };
        let reader = |read: f64| measured(&[(O::OpenFile, 0.5), (O::Read, read)], 0, 1 << 20);
        let write = case(vec![vec![writer(0.25, 2.0), writer(0.5, 4.0)]]);
        // Of three repetitions the middle one counts.
        let read = case([8.0, 0.5, 2.0].map(|slow| vec![reader(slow), reader(slow / 2.0)]).to_vec());
        let row = row(&tiles, &write, &read, 12345).unwrap();
        let cells: Vec<&str> = row.split(',').collect();
        let heads: Vec<&str> = HEADER.split(',').collect();
        assert_eq!((cells.len(), heads.len()), (27, 27));
        let cell = |head: &str| cells[heads.iter().position(|h| *h == head).unwrap()];
        assert_eq!(&cells[..11], ["4", "2", "128", "128", "weak", "1", "2", "step", "4", "chunked", "independent"]);
        for (head, value) in [
            ("wall [s]", "10.000000"),
            ("fsize [B]", "12345"),
            ("write-phase-min [s]", "5.250000"),
            ("write-phase-max [s]", "7.500000"),
            ("creat-min [s]", "1.250000"),
            ("creat-max [s]", "1.500000"),
            ("write-min [s]", "2.000000"),
            ("write-max [s]", "4.000000"),
            ("write-rate-min [MiB/s]", "0.250000"),
            ("write-rate-max [MiB/s]", "0.500000"),
            ("read-phase-min [s]", "1.500000"),
            ("read-phase-max [s]", "2.500000"),
            ("read-min [s]", "1.000000"),
            ("read-max [s]", "2.000000"),
            ("read-rate-min [MiB/s]", "0.500000"),
            ("read-rate-max [MiB/s]", "1.000000"),
        ] {
            assert_eq!(cell(head), value, "{head}");
        }
    }

    /// What running the workload for real measures.
    pub fn really_run(workload: &hyperslab_core::workload::Workload, directory: &std::path::Path) -> CaseResult {
        let progress = hyperslab_run::Progress::default();
        let outcome = hyperslab_run::run_case(&hyperslab_run::Case {
            repeat: 2,
            verify: true,
            ..hyperslab_run::Case::new(
                workload,
                hyperslab_run::open_stack(&hyperslab_core::parse_stacks("posix").unwrap()[0]).unwrap(),
                directory,
                &progress,
            )
        });
        assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
        case(outcome.repetitions.into_iter().map(|repetition| repetition.ranks).collect())
    }

    #[test]
    fn a_real_run_fills_every_column() {
        let map = serde_json::from_str(r#"{"steps": 2, "arrays": 3, "process-rows": 2, "dataset-rank": 2}"#).unwrap();
        let tiles = Metadata::parse("m".into(), &map, "here").unwrap().kernel(2, "m.posix").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let write = really_run(&tiles.write().unwrap(), directory.path());
        let read = really_run(&tiles.read().unwrap(), directory.path());
        let row = row(&tiles, &write, &read, 1).unwrap();
        let times: Vec<f64> = row.split(',').skip(11).map(|cell| cell.parse().unwrap()).collect();
        assert!(times.iter().all(|time| *time > 0.0), "{row}");
        assert!(times[2..].chunks(2).all(|range| range[0] <= range[1]), "{row}");
    }

    #[test]
    fn nothing_measured_is_no_row() {
        let tiles = Metadata::parse("m.h5".into(), &Map::new(), "here").unwrap().tiles;
        let error = row(&tiles, &case(Vec::new()), &case(vec![Vec::new()]), 0).unwrap_err().to_string();
        assert!(error.contains("completed repetition"), "{error}");
        let row = row(&tiles, &case(vec![Vec::new()]), &case(vec![Vec::new()]), 0).unwrap();
        assert!(!row.contains("inf") && !row.contains("NaN"), "{row}");
    }
}
