//! Application kernels of workflows: openPMD, AMReX, E3SM and MACSio, with h5bench's keys.

mod amrex;
mod e3sm;
mod macsio;
mod openpmd;

use super::values::Keys;
use amrex::AmrexKeys;
use anyhow::{Result, bail};
use e3sm::E3smKeys;
use hyperslab_kernels::{Files, Phase};
use macsio::MacsioKeys;
use openpmd::{OpenPmdKeys, WriterKeys};
use serde_json::{Map, Value};

/// Names of the kinds.
pub const KINDS: [&str; 4] = ["amrex", "openpmd", "e3sm", "macsio"];

/// An application kernel as a workflow asks for it.
#[derive(Debug, Clone)]
pub struct Application {
    keys: KindKeys,
    /// The layer that its mode asks for.
    pub layer: Option<&'static str>,
    /// The key that asks for the layer.
    pub layer_reason: &'static str,
    /// What the program asks of HDF5: options of the format and their values.
    pub options: Vec<(&'static str, String)>,
    /// What differs from h5bench, in words.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone)]
enum KindKeys {
    Amrex(AmrexKeys),
    OpenPmd(OpenPmdKeys),
    E3sm(E3smKeys),
    Macsio(MacsioKeys),
}

impl Application {
    /// Reads the configuration of a benchmark of one of `KINDS`; `place` names it in messages.
    pub fn parse(kind: &str, file: Option<String>, map: &Map<String, Value>, place: &str) -> Result<Self> {
        let mut notes = Vec::new();
        let mut layer = None;
        let mut options = Vec::new();
        let keys = match kind {
            "amrex" => {
                let keys = AmrexKeys::parse(map, place, &mut notes)?;
                layer = keys.layer;
                options = vec![("align", "16MiB".to_owned()), ("collective_metadata", "yes".to_owned())];
                KindKeys::Amrex(keys)
            }
            "openpmd" => KindKeys::OpenPmd(OpenPmdKeys::parse(map, place, &mut notes)?),
            "e3sm" => KindKeys::E3sm(E3smKeys::parse(file, map, place, &mut notes)?),
            "macsio" => KindKeys::Macsio(MacsioKeys::parse(file, map, place, &mut notes)?),
            other => bail!("{place}: {other:?} is no application kernel"),
        };
        Ok(Self { keys, layer, layer_reason: "mode", options, notes })
    }

    /// Tells a reader what an earlier benchmark of the workflow writes; `writer` is the last one.
    pub fn follow(&mut self, writer: &mut Option<WriterKeys>, notes: &mut Vec<String>) {
        if let KindKeys::OpenPmd(keys) = &mut self.keys {
            keys.follow(writer, notes);
        }
    }

    /// Its phases for a run with `ranks` ranks whose data lie in `directory`, and what the user should know about them.
    pub fn phases(
        &self,
        ranks: usize,
        directory: &std::path::Path,
        files: &dyn Files,
    ) -> Result<(Vec<Phase>, Vec<String>)> {
        let mut notes = Vec::new();
        let phases = match &self.keys {
            KindKeys::Amrex(keys) => keys.phases(ranks)?,
            KindKeys::OpenPmd(keys) => keys.phases(ranks)?,
            KindKeys::E3sm(keys) => keys.phases(ranks, directory, files, &mut notes)?,
            KindKeys::Macsio(keys) => keys.phases(ranks, &mut notes)?,
        };
        Ok((phases, notes))
    }
}

/// Seed of the data.
const SEED: u64 = 1;

/// A note for each of `keys` that is given and has no effect here.
fn without_effect(values: &Keys<'_>, kind: &str, keys: &[&str], notes: &mut Vec<String>) -> Result<()> {
    for key in keys {
        if values.text(key)?.is_some() {
            notes.push(format!("{kind}: {key} has no effect here"));
        }
    }
    Ok(())
}

/// The name without the extension of HDF5 files.
fn stem(file: &str) -> String {
    file.strip_suffix(".h5").unwrap_or(file).to_owned()
}
