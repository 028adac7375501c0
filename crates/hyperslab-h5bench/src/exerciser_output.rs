//! The table that the exerciser prints: for each size, what the repetitions took.

use super::metadata_output::seconds_in;
use anyhow::Result;
use hyperslab_kernels::Sweep;
use hyperslab_report::table::{Align, Table};
use hyperslab_run::{CaseResult, Operation as O, RankMeasurement, Repetition, Spread};

const MEBIBYTE: f64 = 1048576.0;

/// The columns after `Metric` and `Bufsize`: seconds of the slowest rank, and rates in MiB/s of all ranks.
const COLUMNS: [&str; 11] = [
    "H5DWrite",
    "RawWrBDWTH",
    "H5Dread",
    "RawRdBDWTH",
    "Dataset",
    "Group",
    "Attribute",
    "H5Fopen",
    "H5Fclose",
    "H5Fflush",
    "OtherClose",
];

/// The rows of a size.
const ROWS: [&str; 5] = ["Min", "Med", "Max", "Avg", "Std"];

/// One size: its kernel, its write and its read.
pub type Size<'a> = (&'a Sweep, &'a CaseResult, &'a CaseResult);

/// Five rows for each size: smallest, median, largest, mean and standard deviation over the repetitions that both the
/// write and the read completed. As in the exerciser, the times of write and read are added up rank by rank.
pub fn table(sizes: &[Size<'_>]) -> Result<String> {
    let heads = ["Metric", "Bufsize"].into_iter().chain(COLUMNS);
    let columns: Vec<_> = heads.map(|head| (head, if head == "Metric" { Align::Left } else { Align::Right })).collect();
    let mut table = Table::new(&columns);
    for (sweep, write, read) in sizes {
        let pairs = write.repetitions.iter().zip(&read.repetitions);
        let figures: Vec<_> = pairs.map(|(write, read)| figures(sweep, write, read)).collect();
        let columns: Vec<_> = (0..COLUMNS.len()).map(|column| moments(figures.iter().map(|row| row[column]))).collect();
        // A size without results has no rows: zeros would look measured.
        let rows = if figures.is_empty() { &[] } else { &ROWS[..] };
        for (row, name) in rows.iter().enumerate() {
            let mut cells = vec![(*name).to_owned(), sweep.rank_bytes()?.to_string()];
            cells.extend(columns.iter().map(|column| format!("{:.6}", column[row])));
            table.row(cells);
        }
    }
    Ok(table.render())
}

/// One repetition, in the order of [`COLUMNS`].
fn figures(sweep: &Sweep, write: &Repetition, read: &Repetition) -> [f64; COLUMNS.len()] {
    let rate = |repetition: &Repetition, seconds: f64| {
        if seconds > 0.0 { repetition.bytes() as f64 / MEBIBYTE / seconds } else { 0.0 }
    };
    let slowest = |time: &dyn Fn(&RankMeasurement) -> f64| {
        let ranks = write.ranks.iter().zip(&read.ranks);
        ranks.map(|(write, read)| time(write) + time(read)).fold(0.0, f64::max)
    };
    let within = |operations: &[O]| {
        slowest(&|rank| operations.iter().map(|operation| seconds_in(rank, *operation)).sum::<f64>())
    };
    let (writing, reading) = (write.slowest(|rank| rank.raw), read.slowest(|rank| rank.raw));
    [
        writing,
        rate(write, writing),
        reading,
        rate(read, reading),
        within(&[O::Create, O::Open]),
        within(&[O::Group]),
        // The container's own attribute, which says the seed, is none of the exerciser's.
        if sweep.attributes { within(&[O::Attribute]) } else { 0.0 },
        within(&[O::OpenFile]),
        within(&[O::CloseFile]),
        within(&[O::Flush]),
        within(&[O::CloseArray]),
    ]
}

/// In the order of [`ROWS`].
fn moments(values: impl Iterator<Item = f64> + Clone) -> [f64; ROWS.len()] {
    let spread = Spread::of(values.clone());
    let count = spread.count.max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    [spread.min, spread.median, spread.max, mean, variance.sqrt()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exerciser::Exerciser;
    use crate::metadata_output::tests::{case, measured, really_run};

    const BYTES: u64 = 1 << 20;

    fn sweeps(more: &str) -> Vec<Sweep> {
        let text = format!(r#"{{"numdims": 1, "minels": "128K", "nsizes": 2{more}}}"#);
        let exerciser = Exerciser::parse("e.h5".into(), &serde_json::from_str(&text).unwrap(), "here").unwrap();
        exerciser.kernels(2, "e.h5").unwrap().0
    }

    /// Two ranks; the second is slower to write, the first to open.
    fn write(seconds: f64) -> Vec<RankMeasurement> {
        let rank = |write: f64, open: f64| {
            let operations = [
                (O::OpenFile, open),
                (O::Group, 0.125),
                (O::Attribute, 0.25),
                (O::Create, 0.5),
                (O::Write, write),
                (O::CloseArray, 0.75),
                (O::Flush, 0.375),
                (O::CloseFile, 0.625),
            ];
            measured(&operations, BYTES, 0)
        };
        vec![rank(seconds / 2.0, 3.0), rank(seconds, 1.0)]
    }

    fn read(seconds: f64) -> Vec<RankMeasurement> {
        let rank = |open: f64| {
            let operations = [(O::OpenFile, open), (O::Open, 0.5), (O::Read, seconds), (O::CloseFile, 1.0)];
            measured(&operations, 0, BYTES)
        };
        vec![rank(1.0), rank(2.5)]
    }

    fn rows(text: &str) -> Vec<Vec<&str>> {
        text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect()
    }

    #[test]
    fn the_table_has_the_rows_and_columns_of_the_exerciser() {
        let sweeps = sweeps(r#", "addattr": "true""#);
        let writes = case([2.0, 4.0, 6.0].map(write).to_vec());
        let reads = case([1.0, 1.0, 1.0].map(read).to_vec());
        let text = table(&[(&sweeps[0], &writes, &reads), (&sweeps[1], &writes, &reads)]).unwrap();
        let heads: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(heads.len(), 13);
        let rows = rows(&text);
        let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
        assert_eq!(names, ["Min", "Med", "Max", "Avg", "Std", "Min", "Med", "Max", "Avg", "Std"]);
        assert_eq!((rows[0][1], rows[5][1]), ("1048576", "2097152"));
        let column = |head: &str| {
            let at = heads.iter().position(|h| *h == head).unwrap();
            rows[..5].iter().map(|row| row[at].parse::<f64>().unwrap()).collect::<Vec<_>>()
        };
        let near = |found: Vec<f64>, expected: [f64; 5]| {
            assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-5), "{found:?} {expected:?}");
        };
        near(column("H5DWrite"), [2.0, 4.0, 6.0, 4.0, (8.0f64 / 3.0).sqrt()]);
        near(column("H5Dread"), [1.0, 1.0, 1.0, 1.0, 0.0]);
        near(column("RawRdBDWTH"), [2.0, 2.0, 2.0, 2.0, 0.0]);
        assert_eq!(column("RawWrBDWTH")[..3], [0.333333, 0.5, 1.0]);
        for (head, seconds) in [
            ("Dataset", 1.0),
            ("Group", 0.125),
            ("Attribute", 0.25),
            ("H5Fopen", 4.0),
            ("H5Fclose", 1.625),
            ("H5Fflush", 0.375),
            ("OtherClose", 0.75),
        ] {
            near(column(head), [seconds, seconds, seconds, seconds, 0.0]);
        }
    }

    #[test]
    fn what_was_not_asked_for_or_not_measured_is_not_shown() {
        let sweeps = sweeps("");
        let (one, none) = (case(vec![write(1.0)]), case(Vec::new()));
        let text = table(&[(&sweeps[0], &one, &case(vec![read(1.0)]))]).unwrap();
        assert_eq!(rows(&text)[0][8], "0.000000", "{text}");
        let text = table(&[(&sweeps[0], &one, &none)]).unwrap();
        assert!(rows(&text).is_empty(), "{text}");
    }

    #[test]
    fn a_real_run_fills_the_columns() {
        let sweep = &sweeps(r#", "addattr": "true", "derivedtype": "true""#)[0];
        let directory = tempfile::tempdir().unwrap();
        let write = really_run(&sweep.write().unwrap(), directory.path());
        let read = really_run(&sweep.read().unwrap(), directory.path());
        let text = table(&[(sweep, &write, &read)]).unwrap();
        let rows = rows(&text);
        for row in &rows[..4] {
            // Flushing and closing raw files may take so little that it rounds to 0.
            assert!(row[1..10].iter().all(|cell| cell.parse::<f64>().unwrap() > 0.0), "{text}");
        }
    }
}
