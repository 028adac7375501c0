//! The keys of `macsio`: the program's options without their dashes.

use super::{SEED, stem, without_effect};
use crate::values::Keys;
use anyhow::{Result, bail};
use hyperslab_core::units::parse_size;
use hyperslab_kernels::{Macsio, ParallelFiles, Phase};
use serde_json::{Map, Value};
use std::time::Duration;

const KEYS: &[&str] = &[
    "parallel_file_mode",
    "avg_num_parts",
    "part_size",
    "part_dim",
    "part_type",
    "vars_per_part",
    "num_dumps",
    "compute_time",
    "part_mesh_dims",
    "mesh_decomp",
    "dataset_growth",
    "topology_change_probability",
    "meta_type",
    "meta_size",
    "max_dir_size",
    "compute_work_intensity",
    "units_prefix_system",
    "alignment",
    "time_randomize",
    "debug_level",
    "exercise_scr",
    "timings",
    "read_path",
    "num_loads",
    "read_mesh",
    "read_vars",
    "interface",
    "filebase",
    "fileext",
    "log_file_name",
    "timings_file_name",
    "plugin_args",
];
/// Options whose effect is on no data of the files, or is left out; a note says so.
const NO_EFFECT: &[&str] = &[
    "part_mesh_dims",
    "mesh_decomp",
    "dataset_growth",
    "topology_change_probability",
    "meta_type",
    "meta_size",
    "max_dir_size",
    "compute_work_intensity",
    "units_prefix_system",
    "alignment",
    "time_randomize",
    "debug_level",
    "exercise_scr",
    "timings",
    "interface",
    "filebase",
    "fileext",
    "log_file_name",
    "timings_file_name",
];

/// What `parallel_file_mode` asks for.
#[derive(Debug, Clone, Copy)]
enum Mode {
    Files(usize),
    FilePerRank,
    Shared,
}

/// A `macsio` benchmark.
#[derive(Debug, Clone)]
pub struct MacsioKeys {
    file: String,
    mode: Mode,
    average_parts: f64,
    part_bytes: u64,
    dimensions: usize,
    variables: usize,
    dumps: u64,
    compute: Duration,
}

impl MacsioKeys {
    pub fn parse(file: Option<String>, map: &Map<String, Value>, place: &str, notes: &mut Vec<String>) -> Result<Self> {
        let keys = Keys::new(map, place, KEYS)?;
        without_effect(&keys, "macsio", NO_EFFECT, notes)?;
        if let Some(key) = ["read_path", "num_loads", "read_mesh", "read_vars", "plugin_args"]
            .into_iter()
            .find(|key| map.contains_key(*key))
        {
            bail!("{place}: {key} is not possible here: only dumps are");
        }
        if let Some(other) = keys.text("part_type")?.filter(|kind| kind != "rectilinear") {
            bail!("{place}: part_type is {other:?}; only rectilinear is possible, as in the program");
        }
        let decimal = |key: &str, usual: f64| -> Result<f64> {
            match keys.text(key)? {
                None => Ok(usual),
                Some(text) => match text.parse::<f64>() {
                    Ok(number) if number.is_finite() && (0.0..1e9).contains(&number) => Ok(number),
                    _ => bail!("{place}: {key} is {text:?}; it should be a number"),
                },
            }
        };
        let part_bytes = match keys.text("part_size")? {
            None => 80_000,
            Some(text) => match parse_size(&text) {
                Ok(bytes) => bytes,
                Err(_) => bail!("{place}: part_size is {text:?}; it should be bytes, such as 80000 or 1M"),
            },
        };
        let small = |key: &str, usual: u64| Ok::<u64, anyhow::Error>(keys.positive(key)?.unwrap_or(usual).min(1 << 20));
        Ok(Self {
            file: stem(&keys.need("file", file)?),
            mode: mode(keys.text("parallel_file_mode")?.as_deref().unwrap_or("MIF 4"), place)?,
            average_parts: decimal("avg_num_parts", 1.0)?,
            part_bytes,
            dimensions: small("part_dim", 2)? as usize,
            variables: small("vars_per_part", 20)? as usize,
            dumps: small("num_dumps", 10)?,
            compute: Duration::from_secs_f64(decimal("compute_time", 0.0)?),
        })
    }

    pub fn phases(&self, ranks: usize, notes: &mut Vec<String>) -> Result<Vec<Phase>> {
        let mode = match self.mode {
            Mode::Shared => ParallelFiles::Shared,
            Mode::FilePerRank => ParallelFiles::Independent { files: ranks },
            Mode::Files(files) => {
                if files > ranks {
                    notes.push(format!("macsio: {files} files for {ranks} ranks: every rank has its own"));
                }
                ParallelFiles::Independent { files }
            }
        };
        let kernel = Macsio {
            ranks,
            file: self.file.clone(),
            mode,
            parts: Macsio::parts_of(self.average_parts, ranks),
            part_bytes: self.part_bytes,
            dimensions: self.dimensions,
            variables: self.variables,
            dumps: self.dumps,
            compute: self.compute,
            seed: SEED,
        };
        Ok(vec![Phase::new("macsio dumps", kernel.write()?)])
    }
}

fn mode(text: &str, place: &str) -> Result<Mode> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words[..] {
        ["MIF"] => Mode::Files(4),
        ["MIF", files] if files.parse::<usize>().is_ok_and(|files| files > 0) => Mode::Files(files.parse()?),
        ["MIFFPP"] => Mode::FilePerRank,
        ["SIF"] | ["SIF", "1"] => Mode::Shared,
        _ => bail!("{place}: parallel_file_mode is {text:?}; it should be MIF N, MIFFPP or SIF"),
    })
}
