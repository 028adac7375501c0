//! The keys of `e3sm`: the options of E3SM-IO without their dash.

use super::{SEED, stem, without_effect};
use crate::values::Keys;
use anyhow::{Result, bail};
use hyperslab_core::TransferMode;
use hyperslab_kernels::{E3sm, E3smCase, E3smLayout, Files, History, Phase};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const KEYS: &[&str] =
    &["map", "i", "o", "v", "k", "j", "m", "q", "u", "f", "r", "y", "s", "g", "t", "e", "p", "a", "x", "c", "l", "z"];
/// Options that change what is printed, or how the program prepares its buffers, but nothing of the files.
const NO_EFFECT: &[&str] = &["o", "v", "k", "j", "m", "q", "u", "s", "g", "e", "p", "a", "x", "c", "l", "z"];
/// Ranks of a map whose name says none.
const USUAL_RANKS: u64 = 16;

/// An `e3sm` benchmark.
#[derive(Debug, Clone)]
pub struct E3smKeys {
    file: String,
    map: String,
    histories: Vec<History>,
    records: u64,
    flush_every: u64,
    compute: Duration,
}

impl E3smKeys {
    pub fn parse(file: Option<String>, map: &Map<String, Value>, place: &str, notes: &mut Vec<String>) -> Result<Self> {
        let keys = Keys::new(map, place, KEYS)?;
        let path = keys.text("map")?.map_or_else(|| keys.text("i"), |path| Ok(Some(path)))?;
        without_effect(&keys, "e3sm", NO_EFFECT, notes)?;
        notes.push(
            "e3sm: the layout is blob, as h5bench always has it; kernels e3sm-f, -g and -i have the others".into(),
        );
        let histories = match keys.text("f")?.as_deref() {
            None | Some("-1") => vec![History::H0, History::H1],
            Some("0") => vec![History::H0],
            Some("1") => vec![History::H1],
            Some(other) => bail!("{place}: f is {other:?}; it should be -1, 0 or 1"),
        };
        Ok(Self {
            file: stem(&keys.need("file", file)?),
            map: keys.need("map", path)?,
            histories,
            records: keys.positive("r")?.unwrap_or(1),
            flush_every: keys.positive("y")?.unwrap_or(1),
            compute: Duration::from_secs(keys.number("t")?.unwrap_or(0).min(86_400)),
        })
    }

    pub fn phases(
        &self,
        ranks: usize,
        directory: &Path,
        files: &dyn Files,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Phase>> {
        let path = directory.join(&self.map);
        let maps = if path.exists() {
            files.e3sm_maps(&[&path.to_string_lossy()])?
        } else {
            let (case, map_ranks) = named(&self.map);
            notes.push(format!(
                "e3sm: there is no map {}: one of case {case:?} for {map_ranks} ranks is generated",
                path.display()
            ));
            case.maps(map_ranks)?
        };
        let Some(case) = E3smCase::of_maps(maps.len()) else {
            bail!("{}: {} maps; case F has 3, I 5 and G 6", path.display(), maps.len());
        };
        let kernel = E3sm {
            ranks,
            file: self.file.clone(),
            case,
            maps: Arc::new(maps),
            layout: E3smLayout::Blob,
            records: self.records,
            flush_every: self.flush_every,
            unlimited: false,
            compute: self.compute,
            transfer: TransferMode::Collective,
            seed: SEED,
        };
        let mut phases = Vec::new();
        for history in case.histories().iter().filter(|history| self.histories.contains(history)) {
            let name = if *history == History::H0 { "h0" } else { "h1" };
            phases.push(Phase::new(format!("e3sm {name}"), kernel.write(*history)?));
        }
        if phases.is_empty() {
            bail!("case {case:?} has no history file h1");
        }
        Ok(phases)
    }
}

/// The case and the number of ranks that the name of a map tells, such as `map_f_case_16p.h5`.
fn named(path: &str) -> (E3smCase, u64) {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let words: Vec<&str> = name.split(['_', '.', '-']).collect();
    let case = match () {
        () if words.contains(&"g") => E3smCase::G,
        () if words.contains(&"i") => E3smCase::I,
        () => E3smCase::F,
    };
    let ranks = words.iter().find_map(|word| word.strip_suffix('p')?.parse().ok());
    (case, ranks.filter(|ranks| *ranks > 0).unwrap_or(USUAL_RANKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_maps_tell_their_case() {
        assert_eq!(named("../../e3sm/datasets/map_f_case_16p.h5"), (E3smCase::F, 16));
        assert_eq!(named("map_g_case_9600p.nc"), (E3smCase::G, 9600));
        assert_eq!(named("map_i_case_1344p.h5"), (E3smCase::I, 1344));
        assert_eq!(named("other"), (E3smCase::F, 16));
    }
}
