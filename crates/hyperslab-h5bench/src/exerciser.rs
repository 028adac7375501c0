//! The `exerciser` benchmark and its keys.

use super::values::Keys;
use anyhow::{Context, Result, bail};
use hyperslab_core::{Dims, MAX_RANK, TransferMode, units};
use hyperslab_kernels::Sweep;
use serde_json::{Map, Value};

/// An `exerciser` benchmark: for each size a write and a read.
#[derive(Debug, Clone)]
pub struct Exerciser {
    /// The parameters of the smallest size, for one rank; see [`Exerciser::kernels`].
    pub sweep: Sweep,
    /// Elements of a rank along each dimension, by size.
    pub sizes: Vec<Dims>,
    /// Ranks along each dimension, if asked for.
    pub dim_ranks: Option<Dims>,
    /// Buffers of more bytes than this need not be checked; without it all are.
    pub max_check: Option<u64>,
    /// Whether the file stays after the last size.
    pub keep_file: bool,
    /// What differs from h5bench, in words.
    pub notes: Vec<String>,
}

/// Every key of the benchmark.
const KEYS: &[&str] = &[
    "numdims",
    "minels",
    "nsizes",
    "bufmult",
    "dimranks",
    "maxcheck",
    "memblock",
    "memstride",
    "fileblocks",
    "filestrides",
    "rshift",
    "keepfile",
    "usechunked",
    "indepio",
    "addattr",
    "derivedtype",
    "metacoll",
];

/// Seed of the data.
const SEED: u64 = 1;

impl Exerciser {
    /// How often h5bench runs each size.
    pub const REPETITIONS: usize = 10;

    /// Reads the configuration; `place` names it in messages. Keys may come in any order.
    pub fn parse(file: String, map: &Map<String, Value>, place: &str) -> Result<Self> {
        let keys = Keys::new(map, place, KEYS)?;
        let dimensions = keys.need("numdims", keys.positive("numdims")?)?;
        if dimensions > MAX_RANK as u64 {
            bail!("{place}: numdims is {dimensions}; at most {MAX_RANK} dimensions are possible");
        }
        let dimensions = dimensions as usize;
        let list = |key: &str, least: u64| per_dimension(&keys, map, key, dimensions, least, place);
        let all = |value: u64| Dims::from_elem(value, dimensions);
        let smallest = list("minels", 1)?.unwrap_or_else(|| all(8));
        let factors = list("bufmult", 1)?.unwrap_or_else(|| all(2));
        let count = keys.positive("nsizes")?.unwrap_or(1);
        let sizes = Sweep::sizes(&smallest, &factors, count).with_context(|| format!("{place}: nsizes"))?;
        let flag = |key: &str| Ok::<bool, anyhow::Error>(keys.flag(key)?.unwrap_or(false));
        let sweep = Sweep {
            ranks: 1,
            file,
            extent: smallest,
            grid: all(1),
            memory_block: keys.number("memblock")?.unwrap_or(0),
            memory_stride: keys.number("memstride")?.unwrap_or(1),
            file_blocks: list("fileblocks", 0)?.unwrap_or_else(|| all(0)),
            file_strides: list("filestrides", 0)?.unwrap_or_else(|| all(1)),
            chunked: flag("usechunked")?,
            shift: keys.number("rshift")?.unwrap_or(0),
            attributes: flag("addattr")?,
            derived: flag("derivedtype")?,
            transfer: if flag("indepio")? { TransferMode::Independent } else { TransferMode::Collective },
            seed: SEED,
        };
        let exerciser = Self {
            dim_ranks: list("dimranks", 1)?,
            max_check: keys.number("maxcheck")?,
            keep_file: flag("keepfile")?,
            notes: differences(&sweep, sizes.len(), flag("metacoll")?),
            sizes,
            sweep,
        };
        exerciser.kernels(1, &exerciser.sweep.file).with_context(|| place.to_owned())?;
        Ok(exerciser)
    }

    /// The kernels for a run with `ranks` ranks on `file`, one for each size, checked; and what the user should know
    /// about them.
    pub fn kernels(&self, ranks: usize, file: &str) -> Result<(Vec<Sweep>, Vec<String>)> {
        let mut notes = Vec::new();
        let dimensions = self.sweep.extent.len();
        let (grid, as_asked) = Sweep::process_grid(self.dim_ranks.as_deref().unwrap_or(&[]), dimensions, ranks);
        if let Some(asked) = self.dim_ranks.as_ref().filter(|_| !as_asked) {
            notes.push(format!(
                "exerciser: dimranks {} is not for {ranks} ranks; they divide the first dimension only",
                written(asked)
            ));
        }
        let kernel = |extent: &Dims| Sweep {
            ranks,
            file: file.to_owned(),
            grid: grid.clone(),
            extent: extent.clone(),
            ..self.sweep.clone()
        };
        let sweeps: Vec<Sweep> = self.sizes.iter().map(kernel).collect();
        for sweep in &sweeps {
            sweep.check().with_context(|| format!("size {}", written(&sweep.extent)))?;
        }
        if let Some(odd) = sweeps.iter().find(|sweep| !sweep.blocks_fit()) {
            notes.push(format!(
                "exerciser: memblock or fileblocks do not divide size {}; there they have no effect",
                written(&odd.extent)
            ));
        }
        Ok((sweeps, notes))
    }

    /// Whether the exerciser would check the data of this size.
    pub fn checks(&self, sweep: &Sweep) -> Result<bool> {
        let bytes = sweep.rank_bytes()?;
        Ok(self.max_check.is_none_or(|most| bytes <= most))
    }
}

fn differences(sweep: &Sweep, sizes: usize, collective_metadata: bool) -> Vec<String> {
    let mut notes = vec![format!(
        "exerciser: h5bench runs each size {} times in one go; here --repeat says how often",
        Exerciser::REPETITIONS
    )];
    let mut note = |said: bool, text: &str| {
        if said {
            notes.push(format!("exerciser: {text}"));
        }
    };
    note(
        collective_metadata,
        "h5bench stops at metacoll, which it passes on wrongly; here it is taken, without effect",
    );
    note(sweep.extent.len() > 4, "h5bench has at most 4 dimensions; here there are as many as numdims says");
    note(
        sweep.derived,
        "the derived type is eight doubles, eight times a double, as h5bench says of its own; that one has 40 bytes",
    );
    note(sweep.derived, "the derived type is written with the doubles and counted in the write rate");
    note(
        sizes > 1 && sweep.memory_block > 0,
        "each size uses memblock if it can; h5bench gives it up for all sizes after the first that cannot",
    );
    notes
}

/// A list with a number for each dimension: text of numbers between spaces, a JSON list, or one JSON number.
fn per_dimension(
    keys: &Keys<'_>,
    map: &Map<String, Value>,
    key: &str,
    dimensions: usize,
    least: u64,
    place: &str,
) -> Result<Option<Dims>> {
    let words: Vec<String> = match map.get(key) {
        Some(Value::Array(list)) => {
            let text = |value: &Value| match value {
                Value::Number(number) => number.to_string(),
                Value::String(text) => text.trim().to_owned(),
                other => other.to_string(),
            };
            // One more than can be right is enough to say that it is wrong.
            list.iter().take(dimensions + 1).map(text).collect()
        }
        _ => match keys.text(key)? {
            Some(text) => text.split_whitespace().take(dimensions + 1).map(str::to_owned).collect(),
            None => return Ok(None),
        },
    };
    if words.len() != dimensions {
        let have = if words.len() > dimensions { "more".to_owned() } else { words.len().to_string() };
        bail!("{place}: {key} should have {dimensions} numbers, as many as numdims says; it has {have}");
    }
    let number = |word: &String| match units::parse_size(word) {
        Ok(number) if number >= least => Ok(number),
        _ => bail!("{place}: {key} has {word:?}; it should have whole numbers of at least {least}"),
    };
    words.iter().map(number).collect::<Result<_>>().map(Some)
}

/// `8 4`, as in configurations.
fn written(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Exerciser> {
        let map: Map<String, Value> = serde_json::from_str(text).unwrap();
        Exerciser::parse("e.h5".into(), &map, "here")
    }

    /// Two dimensions and these keys.
    fn with(more: &str) -> Exerciser {
        parse(&format!(r#"{{{more}{}"numdims": "2"}}"#, if more.is_empty() { "" } else { ", " })).unwrap()
    }

    fn dims(numbers: &[u64]) -> Dims {
        Dims::from_slice(numbers)
    }

    #[test]
    fn without_other_keys_it_has_the_defaults_of_the_exerciser() {
        let exerciser = with("");
        assert_eq!(exerciser.sizes, [dims(&[8, 8])]);
        let sweep = exerciser.sweep;
        assert_eq!((sweep.memory_block, sweep.memory_stride, sweep.shift), (0, 1, 0));
        assert_eq!((sweep.file_blocks, sweep.file_strides), (dims(&[0, 0]), dims(&[1, 1])));
        assert!(!sweep.chunked && !sweep.attributes && !sweep.derived && !exerciser.keep_file);
        assert_eq!((sweep.transfer, sweep.file.as_str()), (TransferMode::Collective, "e.h5"));
        assert_eq!((exerciser.max_check, exerciser.dim_ranks), (None, None));
    }

    #[test]
    fn every_key_has_its_effect() {
        let base = with("").sweep;
        let cases = [
            (r#""minels": "4 6""#, Sweep { extent: dims(&[4, 6]), ..base.clone() }),
            (r#""memblock": 4"#, Sweep { memory_block: 4, ..base.clone() }),
            (r#""memstride": "6""#, Sweep { memory_stride: 6, ..base.clone() }),
            (r#""fileblocks": [2, "4"]"#, Sweep { file_blocks: dims(&[2, 4]), ..base.clone() }),
            (r#""filestrides": " 3  5 ""#, Sweep { file_strides: dims(&[3, 5]), ..base.clone() }),
            (r#""fileblocks": "0 0", "filestrides": "1 1""#, base.clone()),
            (r#""rshift": "1""#, Sweep { shift: 1, ..base.clone() }),
            (r#""usechunked": "true""#, Sweep { chunked: true, ..base.clone() }),
            (r#""indepio": true"#, Sweep { transfer: TransferMode::Independent, ..base.clone() }),
            (r#""addattr": "True""#, Sweep { attributes: true, ..base.clone() }),
            (r#""derivedtype": "TRUE""#, Sweep { derived: true, ..base.clone() }),
            (r#""addattr": "false""#, base.clone()),
            (r#""metacoll": "true""#, base.clone()),
        ];
        for (text, expected) in cases {
            assert_eq!(with(text).sweep, expected, "{text}");
        }
        let sizes = with(r#""minels": [4, 6], "nsizes": "3", "bufmult": "1 3""#).sizes;
        assert_eq!(sizes, [dims(&[4, 6]), dims(&[4, 18]), dims(&[4, 54])]);
        assert_eq!(with(r#""nsizes": 2"#).sizes, [dims(&[8, 8]), dims(&[16, 16])]);
        assert!(with(r#""keepfile": "true""#).keep_file);
        assert_eq!(with(r#""dimranks": "2 3""#).dim_ranks, Some(dims(&[2, 3])));
        let checked = with(r#""maxcheck": "512", "nsizes": 2"#);
        let sweeps = checked.kernels(2, "e.h5").unwrap().0;
        assert_eq!(sweeps.iter().map(|s| checked.checks(s).unwrap()).collect::<Vec<_>>(), [true, false]);
        assert_eq!(parse(r#"{"numdims": 1, "minels": 5}"#).unwrap().sizes, [dims(&[5])]);
    }

    #[test]
    fn ranks_divide_as_asked_or_along_the_first_dimension() {
        let exerciser = with(r#""minels": "8 8", "nsizes": 3, "dimranks": "8 4""#);
        let (sweeps, notes) = exerciser.kernels(2, "x.zarr").unwrap();
        assert!(sweeps.iter().all(|s| s.grid == dims(&[2, 1]) && s.ranks == 2 && s.file == "x.zarr"));
        assert_eq!(sweeps.iter().map(|s| s.extent[0]).collect::<Vec<_>>(), [8, 16, 32]);
        assert_eq!(notes, ["exerciser: dimranks 8 4 is not for 2 ranks; they divide the first dimension only"]);
        let (sweeps, notes) = exerciser.kernels(32, "x").unwrap();
        assert!(sweeps[0].grid == dims(&[8, 4]) && notes.is_empty());
        assert!(with("").kernels(3, "x").unwrap().1.is_empty(), "nothing was asked for");
        let odd = with(r#""memblock": 3, "minels": "4 4", "bufmult": "3 3", "nsizes": 2"#).kernels(1, "x").unwrap();
        assert!(odd.1[0].contains("do not divide size 4 4"), "{:?}", odd.1);
    }

    #[test]
    fn notes_say_what_differs() {
        let said = |more: &str, what: &str| with(more).notes.iter().any(|note| note.contains(what));
        assert!(said("", "10 times"));
        assert!(said(r#""metacoll": "true""#, "metacoll") && !said(r#""metacoll": "false""#, "metacoll"));
        assert!(said(r#""derivedtype": "true""#, "eight doubles") && !said("", "eight doubles"));
        assert!(parse(r#"{"numdims": 5}"#).unwrap().notes.iter().any(|note| note.contains("at most 4 dimensions")));
    }

    #[test]
    fn bad_values_are_refused_with_the_place_and_the_reason() {
        let long = format!(r#"{{"numdims": 2, "minels": "{}"}}"#, "1 ".repeat(100_000));
        let cases = [
            (r#"{}"#, "numdims is missing"),
            (r#"{"numdim": 2}"#, "did you mean \"numdims\"?"),
            (r#"{"numdims": 0}"#, "at least 1"),
            (r#"{"numdims": 33}"#, "at most 32"),
            (r#"{"numdims": 2, "minels": "8"}"#, "minels should have 2 numbers, as many as numdims says; it has 1"),
            (r#"{"numdims": 1, "minels": "8 8"}"#, "it has more"),
            (r#"{"numdims": 1, "minels": []}"#, "it has 0"),
            (&long, "it has more"),
            (r#"{"numdims": 1, "minels": 0}"#, "minels has \"0\""),
            (r#"{"numdims": 1, "minels": {}}"#, "text or a number"),
            (r#"{"numdims": 1, "minels": [[8]]}"#, "minels has \"[8]\""),
            (r#"{"numdims": 1, "bufmult": -2}"#, "bufmult has \"-2\""),
            (r#"{"numdims": 1, "dimranks": "x"}"#, "dimranks has \"x\""),
            (r#"{"numdims": 1, "nsizes": 0}"#, "nsizes is 0"),
            (r#"{"numdims": 1, "nsizes": 1000000000000}"#, "1 to 1000 are possible"),
            (r#"{"numdims": 1, "nsizes": 200}"#, "beyond 2^64"),
            (r#"{"numdims": 1, "minels": 1152921504606846976}"#, "2^63"),
            (r#"{"numdims": 1, "fileblocks": 1, "filestrides": 9223372036854775807}"#, "2^6"),
            (r#"{"numdims": 1, "memblock": 1, "memstride": 18446744073709551615}"#, "2^64"),
            (r#"{"numdims": 1, "usechunked": "maybe"}"#, "YES or NO"),
            (r#"{"numdims": 1, "rshift": "-1"}"#, "rshift is"),
        ];
        for (text, reason) in cases {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.starts_with("here") && error.contains(reason), "{text:.80}: {error}");
        }
        let big = parse(r#"{"numdims": 1, "minels": 72057594037927936}"#).unwrap();
        assert!(big.kernels(4096, "x").is_err(), "no overflow with many ranks");
    }

    #[test]
    fn no_value_of_any_key_is_too_strange() {
        for key in KEYS {
            for value in crate::metadata::tests::hostile_values() {
                let mut map: Map<String, Value> =
                    serde_json::from_str(r#"{"numdims": 2, "fileblocks": "1 1", "memblock": 1}"#).unwrap();
                map.insert((*key).to_owned(), value);
                if let Ok(exerciser) = Exerciser::parse("e.h5".into(), &map, "here") {
                    for ranks in [0, 1, 7, usize::MAX] {
                        let Ok((sweeps, _)) = exerciser.kernels(ranks, "e.h5") else { continue };
                        sweeps.iter().for_each(|sweep| {
                            let _ = (sweep.write(), sweep.read(), exerciser.checks(sweep));
                        });
                    }
                }
            }
        }
    }
}
