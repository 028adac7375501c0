//! The keys of `amrex`.

use super::{SEED, without_effect};
use crate::values::Keys;
use anyhow::{Result, bail};
use hyperslab_core::{Filter, TransferMode};
use hyperslab_kernels::{Amrex, Phase};
use serde_json::{Map, Value};

const KEYS: &[&str] = &[
    "ncells",
    "max_grid_size",
    "nlevs",
    "ncomp",
    "nppc",
    "nplotfile",
    "nparticlefile",
    "sleeptime",
    "restart_check",
    "grids_from_file",
    "ref_ratio_file",
    "hdf5compression",
    "directory",
    "mode",
];

/// An `amrex` benchmark.
#[derive(Debug, Clone)]
pub struct AmrexKeys {
    kernel: Amrex,
    restart_check: bool,
    /// The layer that `mode` asks for.
    pub layer: Option<&'static str>,
}

impl AmrexKeys {
    pub fn parse(map: &Map<String, Value>, place: &str, notes: &mut Vec<String>) -> Result<Self> {
        let keys = Keys::new(map, place, KEYS)?;
        let needed = |key: &str| keys.need(key, keys.positive(key)?);
        let levels = needed("nlevs")?;
        let from_file = keys.number("grids_from_file")?.unwrap_or(0) > 0;
        if levels > 1 && !from_file {
            bail!("{place}: nlevs is {levels}; without grids_from_file only 1 is possible");
        }
        if from_file {
            notes.push("amrex: grids are generated, not read from grids/Level_<n>: each level covers the middle half of the one before".into());
        }
        without_effect(&keys, "amrex", &["directory"], notes)?;
        let kernel = Amrex {
            ranks: 1,
            directory: String::new(),
            cells: needed("ncells")?,
            largest_box: needed("max_grid_size")?,
            components: needed("ncomp")?,
            ratios: ratios(&keys, levels)?,
            particles_per_cell: keys.need("nppc", keys.number("nppc")?)?,
            plot_files: keys.number("nplotfile")?.unwrap_or(1),
            particle_files: keys.number("nparticlefile")?.unwrap_or(1),
            compute: keys.time("sleeptime")?.unwrap_or_default(),
            filters: filters(&keys, place)?,
            transfer: TransferMode::Collective,
            seed: SEED,
        };
        let layer = keys.word("mode", &[("SYNC", None), ("ASYNC", Some("async")), ("LOG", Some("loglayout"))])?;
        let restart_check = keys.number("restart_check")?.unwrap_or(0) > 0;
        Ok(Self { kernel, restart_check, layer: layer.flatten() })
    }

    pub fn phases(&self, ranks: usize) -> Result<Vec<Phase>> {
        let kernel = Amrex { ranks, ..self.kernel.clone() };
        Ok(kernel.phases(self.restart_check)?)
    }
}

fn ratios(keys: &Keys<'_>, levels: u64) -> Result<Vec<u64>> {
    let count = (levels - 1).min(64) as usize;
    match keys.text("ref_ratio_file")? {
        None => Ok(vec![2; count]),
        Some(text) => {
            let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>();
            match numbers {
                Ok(numbers) if numbers.len() == count => Ok(numbers),
                _ => bail!("ref_ratio_file is {text:?}; it should be {count} numbers"),
            }
        }
    }
}

/// `ZLIB@6` or `ZLIB#6`; HDF5's other codecs of AMReX need libraries that are not here.
fn filters(keys: &Keys<'_>, place: &str) -> Result<Vec<Filter>> {
    let Some(text) = keys.text("hdf5compression")? else { return Ok(Vec::new()) };
    let (name, parameter) = text.split_once(['@', '#']).unwrap_or((&text, ""));
    let (name, parameter) = (name.to_ascii_uppercase(), parameter.trim());
    Ok(match name.trim() {
        "NONE" => Vec::new(),
        "ZLIB" => {
            let level = if parameter.is_empty() { Some(6) } else { parameter.parse().ok().filter(|level| *level <= 9) };
            match level {
                Some(level) => vec![Filter::Deflate(level)],
                None => bail!("{place}: hdf5compression is {text:?}; ZLIB takes a level from 0 to 9"),
            }
        }
        _ => bail!("{place}: hdf5compression is {text:?}; only None and ZLIB@LEVEL are possible here (not SZ or ZFP)"),
    })
}
