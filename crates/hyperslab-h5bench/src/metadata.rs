//! The `metadata` benchmark, which is the HDF Group's iotest, and its keys.

use super::values::Keys;
use anyhow::{Context, Result, bail};
use hyperslab_core::TransferMode;
use hyperslab_kernels::{DatasetRank, Scaling, SlowestDim, Tiles};
use serde_json::{Map, Value};

/// A `metadata` benchmark: a write and a read of the same tiles.
#[derive(Debug, Clone)]
pub struct Metadata {
    /// The parameters, for as many ranks as the process grid has; see [`Metadata::kernel`].
    pub tiles: Tiles,
    /// Name of the file for iotest's row of results, if asked for.
    pub csv_file: Option<String>,
    /// What differs from h5bench, in words.
    pub notes: Vec<String>,
}

/// Every key of the benchmark.
const KEYS: &[&str] = &[
    "version",
    "steps",
    "arrays",
    "rows",
    "columns",
    "process-rows",
    "process-columns",
    "scaling",
    "dataset-rank",
    "slowest-dimension",
    "layout",
    "mpi-io",
    "csv-file",
];

/// The words of `scaling`.
pub const SCALINGS: [(&str, Scaling); 2] = [("weak", Scaling::Weak), ("strong", Scaling::Strong)];
/// The words of `dataset-rank`.
pub const DATASET_RANKS: [(&str, DatasetRank); 3] =
    [("2", DatasetRank::Two), ("3", DatasetRank::Three), ("4", DatasetRank::Four)];
/// The words of `slowest-dimension`.
pub const SLOWEST: [(&str, SlowestDim); 2] = [("step", SlowestDim::Step), ("array", SlowestDim::Array)];
/// The words of `layout`: whether there are chunks.
pub const LAYOUTS: [(&str, bool); 2] = [("contiguous", false), ("chunked", true)];
/// The words of `mpi-io`.
pub const TRANSFERS: [(&str, TransferMode); 2] =
    [("independent", TransferMode::Independent), ("collective", TransferMode::Collective)];

/// Seed of the data.
const SEED: u64 = 1;

impl Metadata {
    /// Reads the configuration; `place` names it in messages. Keys that are missing have the values of iotest's sample.
    pub fn parse(file: String, map: &Map<String, Value>, place: &str) -> Result<Self> {
        let keys = Keys::new(map, place, KEYS)?;
        if let Some(version @ 1..) = keys.number("version")? {
            bail!("{place}: version is {version}; only version 0 of iotest's configuration is known");
        }
        let process_rows = keys.positive("process-rows")?.unwrap_or(1);
        let process_columns = keys.positive("process-columns")?.unwrap_or(1);
        let Some(ranks) = process_rows.checked_mul(process_columns).and_then(|n| usize::try_from(n).ok()) else {
            bail!("{place}: process-rows times process-columns exceeds 2^64");
        };
        let tiles = Tiles {
            ranks,
            process_rows,
            process_columns,
            file,
            steps: keys.positive("steps")?.unwrap_or(20),
            arrays: keys.positive("arrays")?.unwrap_or(500),
            rows: keys.positive("rows")?.unwrap_or(100),
            columns: keys.positive("columns")?.unwrap_or(200),
            scaling: keys.word("scaling", &SCALINGS)?.unwrap_or(Scaling::Weak),
            dataset_rank: keys.word("dataset-rank", &DATASET_RANKS)?.unwrap_or(DatasetRank::Four),
            slowest: keys.word("slowest-dimension", &SLOWEST)?.unwrap_or(SlowestDim::Step),
            chunked: keys.word("layout", &LAYOUTS)?.unwrap_or(false),
            transfer: keys.word("mpi-io", &TRANSFERS)?.unwrap_or(TransferMode::Independent),
            seed: SEED,
        };
        tiles.check().with_context(|| place.to_owned())?;
        let csv_file = keys.text("csv-file")?;
        if let Some(name) = csv_file.as_deref().filter(|name| !is_plain(name)) {
            bail!("{place}: csv-file is {name:?}; it should be a file name without directories");
        }
        let notes = vec![
            "metadata: the rates in iotest's CSV file are those of one rank; all others here are of all ranks".into(),
            "metadata: iotest writes the same numbers everywhere and compares none; here all differ and --verify compares them"
                .into(),
        ];
        Ok(Self { tiles, csv_file, notes })
    }

    /// The kernel for a run with `ranks` ranks on `file`, checked.
    pub fn kernel(&self, ranks: usize, file: &str) -> Result<Tiles> {
        let tiles = Tiles { ranks, file: file.to_owned(), ..self.tiles.clone() };
        tiles.check()?;
        Ok(tiles)
    }
}

/// The word that stands for a value.
pub fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, meaning)| meaning == value).map_or("", |(word, _)| word)
}

fn is_plain(name: &str) -> bool {
    !name.contains(['/', '\0']) && name != "." && name != ".."
}

#[cfg(test)]
pub mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Metadata> {
        let map: Map<String, Value> = serde_json::from_str(text).unwrap();
        Metadata::parse("m.h5".into(), &map, "here")
    }

    fn sample() -> Tiles {
        parse("{}").unwrap().tiles
    }

    #[test]
    fn without_keys_it_is_the_sample_of_iotest() {
        let tiles = sample();
        assert_eq!((tiles.steps, tiles.arrays, tiles.rows, tiles.columns), (20, 500, 100, 200));
        assert_eq!((tiles.process_rows, tiles.process_columns, tiles.ranks), (1, 1, 1));
        assert_eq!((tiles.scaling, tiles.slowest), (Scaling::Weak, SlowestDim::Step));
        assert_eq!((tiles.dataset_rank, tiles.chunked), (DatasetRank::Four, false));
        assert_eq!((tiles.transfer, tiles.file.as_str()), (TransferMode::Independent, "m.h5"));
        let metadata = parse("{}").unwrap();
        assert_eq!(metadata.csv_file, None);
        assert!(metadata.notes.iter().any(|note| note.contains("of one rank")), "{:?}", metadata.notes);
    }

    #[test]
    fn every_key_has_its_effect() {
        let cases = [
            (r#"{"version": "0"}"#, sample()),
            (r#"{"steps": "3"}"#, Tiles { steps: 3, ..sample() }),
            (r#"{"arrays": 7}"#, Tiles { arrays: 7, ..sample() }),
            (r#"{"rows": "2"}"#, Tiles { rows: 2, ..sample() }),
            (r#"{"columns": 3}"#, Tiles { columns: 3, ..sample() }),
            (r#"{"process-rows": "4"}"#, Tiles { process_rows: 4, ranks: 4, ..sample() }),
            (r#"{"process-columns": "5"}"#, Tiles { process_columns: 5, ranks: 5, ..sample() }),
            (r#"{"scaling": "STRONG"}"#, Tiles { scaling: Scaling::Strong, ..sample() }),
            (r#"{"dataset-rank": 3}"#, Tiles { dataset_rank: DatasetRank::Three, ..sample() }),
            (r#"{"dataset-rank": "2"}"#, Tiles { dataset_rank: DatasetRank::Two, ..sample() }),
            (r#"{"slowest-dimension": "array"}"#, Tiles { slowest: SlowestDim::Array, ..sample() }),
            (r#"{"layout": "chunked"}"#, Tiles { chunked: true, ..sample() }),
            (r#"{"mpi-io": "collective"}"#, Tiles { transfer: TransferMode::Collective, ..sample() }),
            (r#"{"csv-file": "x.csv"}"#, sample()),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap().tiles, expected, "{text}");
        }
        assert_eq!(parse(r#"{"csv-file": "x.csv"}"#).unwrap().csv_file.as_deref(), Some("x.csv"));
    }

    #[test]
    fn the_number_of_ranks_must_be_that_of_the_grid() {
        let metadata = parse(r#"{"process-rows": "2", "process-columns": "2"}"#).unwrap();
        let tiles = metadata.kernel(4, "other.zarr").unwrap();
        assert_eq!((tiles.ranks, tiles.file.as_str()), (4, "other.zarr"));
        let error = metadata.kernel(3, "m.h5").unwrap_err().to_string();
        assert!(error.contains("2 rows and 2 columns is not for 3 ranks"), "{error}");
    }

    #[test]
    fn bad_values_are_refused_with_the_place_and_the_reason() {
        let cases = [
            (r#"{"step": "3"}"#, "unknown key \"step\"; did you mean \"steps\"?"),
            (r#"{"hdf5-file": "x"}"#, "unknown key"),
            (r#"{"version": 1}"#, "only version 0"),
            (r#"{"steps": 0}"#, "steps is 0; it should be at least 1"),
            (r#"{"arrays": "many"}"#, "arrays is \"many\""),
            (r#"{"rows": "1"}"#, "at least 2 rows"),
            (r#"{"columns": -5}"#, "columns is -5"),
            (r#"{"columns": [1]}"#, "text or a number"),
            (r#"{"process-rows": 1.5}"#, "process-rows is 1.5"),
            (r#"{"scaling": "weka"}"#, "did you mean \"weak\"?"),
            (r#"{"dataset-rank": 5}"#, "use one of: 2, 3, 4"),
            (r#"{"layout": "chunk"}"#, "did you mean \"chunked\"?"),
            (r#"{"mpi-io": "collectiv"}"#, "did you mean \"collective\"?"),
            (r#"{"scaling": "strong", "process-rows": 3}"#, "cannot be divided evenly"),
            (r#"{"steps": 18446744073709551615}"#, "2^6"),
            (r#"{"process-rows": 18446744073709551615, "process-columns": 2}"#, "exceeds 2^64"),
            (r#"{"rows": "99999999 T"}"#, "rows is"),
            (r#"{"csv-file": "../x.csv"}"#, "without directories"),
        ];
        for (text, reason) in cases {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.starts_with("here") && error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn no_value_of_any_key_is_too_strange() {
        for key in KEYS {
            for value in hostile_values() {
                let map = Map::from_iter([((*key).to_owned(), value)]);
                if let Ok(metadata) = Metadata::parse("m.h5".into(), &map, "here") {
                    for ranks in [0, 1, 7, usize::MAX] {
                        let _ = metadata.kernel(ranks, "m.h5").map(|tiles| tiles.write());
                    }
                }
            }
        }
    }

    /// Values that no key expects.
    pub fn hostile_values() -> Vec<Value> {
        let mut values: Vec<Value> = serde_json::from_str(
            r#"[null, true, -1, 0, 1e300, 18446744073709551615, "", " ", "\u0000", [], {}, [[1]],
                [1, -1], [null], "18446744073709551616", "9223372036854775807", "4294967296 4294967296", "1 T", "é"]"#,
        )
        .unwrap();
        values.push("1 ".repeat(1 << 16).into());
        values.push(vec![Value::from(1); 1 << 16].into());
        values
    }
}
