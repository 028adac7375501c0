//! The steps of the writer.

use super::patches::Patches;
use super::{AXES, Encoding, OpenPmd, SPECIES, mesh_path};
use crate::attributes::{extents, floats, set, texts, unsigned};
use crate::batches::StepBatches;
use hyperslab_core::workload::{SEED_ATTRIBUTE, Step};
use hyperslab_core::{Attribute, Durability, OpenMode, Result, Selection, TransferMode};
use std::sync::Arc;

#[derive(Debug)]
pub struct Writing {
    pub kernel: OpenPmd,
    pub patches: Patches,
}

/// Powers of length, mass, time, current, temperature, amount and luminous intensity.
type Units = [f64; 7];
const ELECTRIC: Units = [1.0, 1.0, -3.0, -1.0, 0.0, 0.0, 0.0];
const MAGNETIC: Units = [0.0, 1.0, -2.0, -1.0, 0.0, 0.0, 0.0];
const CHARGE_DENSITY: Units = [-3.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0];
const CHARGE: Units = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0];
const LENGTH: Units = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
const NONE: Units = [0.0; 7];

impl Writing {
    fn open(&self, file: u32) -> Vec<Step> {
        let kernel = &self.kernel;
        let (encoding, format) = match kernel.encoding {
            Encoding::Group => ("groupBased", "/data/%T/".to_owned()),
            Encoding::File => ("fileBased", format!("{}_%07T", kernel.file.rsplit('/').next().unwrap_or_default())),
        };
        let mut steps = vec![Step::Barrier, Step::OpenFile { file, how: OpenMode::Create }];
        steps.extend(set(
            file,
            "",
            [
                (SEED_ATTRIBUTE, Attribute::integer(kernel.seed as i64)),
                ("openPMD", Attribute::text("1.1.0")),
                ("openPMDextension", unsigned(0)),
                ("basePath", Attribute::text("/data/%T/")),
                ("meshesPath", Attribute::text("fields/")),
                ("particlesPath", Attribute::text("particles/")),
                ("iterationEncoding", Attribute::text(encoding)),
                ("iterationFormat", Attribute::text(&format)),
                ("software", Attribute::text("hyperslab")),
                ("softwareVersion", Attribute::text(env!("CARGO_PKG_VERSION"))),
            ],
        ));
        steps
    }

    fn close(file: u32) -> Vec<Step> {
        vec![Step::Barrier, Step::Flush { file, how: Durability::Visible }, Step::CloseFile { file }, Step::Barrier]
    }

    /// What readers need to know of a mesh record.
    fn mesh_attributes(&self, record: &str) -> Vec<(&'static str, Attribute)> {
        let dimensions = self.kernel.block.len();
        let units = match record {
            "E" => ELECTRIC,
            "B" => MAGNETIC,
            _ => CHARGE_DENSITY,
        };
        vec![
            ("geometry", Attribute::text("cartesian")),
            ("dataOrder", Attribute::text("C")),
            ("axisLabels", texts(&AXES[..dimensions])),
            ("gridSpacing", floats(&vec![1.0; dimensions])),
            ("gridGlobalOffset", floats(&vec![0.0; dimensions])),
            ("gridUnitSI", Attribute::float(1.0)),
            ("unitDimension", floats(&units)),
            ("timeOffset", Attribute::float(0.0)),
        ]
    }

    fn component_attributes(&self) -> Vec<(&'static str, Attribute)> {
        let centre = vec![0.5; self.kernel.block.len()];
        vec![("position", floats(&centre)), ("unitSI", Attribute::float(1.0))]
    }

    /// The groups and attributes of an iteration that belong to no array.
    fn frame(&self, step: u64) -> Vec<Step> {
        let (file, group) = self.kernel.place(step);
        let named = |name: String| Step::Group { file, name: name.into() };
        let mut steps = vec![named(group.clone())];
        let times = [("time", step as f64), ("dt", 1.0), ("timeUnitSI", 1.0)];
        steps.extend(set(file, &group, times.map(|(name, value)| (name, Attribute::float(value)))));
        steps.push(named(format!("{group}/fields")));
        for record in ["E", "B"] {
            let path = format!("{group}/fields/{record}");
            steps.push(named(path.clone()));
            steps.extend(set(file, &path, self.mesh_attributes(record)));
        }
        let species = format!("{group}/particles/ion");
        steps.extend([named(species.clone()), named(format!("{species}/position"))]);
        let of_species = [("particleSmoothing", "none")].map(|(name, text)| (name, Attribute::text(text)));
        steps.extend(set(file, &species, of_species));
        steps.extend(set(file, &species, [("openPMD_STEP", Attribute::integer(step as i64))]));
        steps.extend(set(file, &species, [("p2mRatio", Attribute::float(self.kernel.ratio))]));
        steps.extend(set(file, &format!("{species}/position"), record_attributes(LENGTH)));
        // Particles have no offset: a component that is the same for all is a group.
        let offset = format!("{species}/positionOffset");
        steps.extend([named(offset.clone()), named(format!("{offset}/x"))]);
        steps.extend(set(file, &offset, record_attributes(LENGTH)));
        let constant = [
            ("value", Attribute::float(0.0)),
            ("shape", extents(&[self.kernel.particles()])),
            ("unitSI", Attribute::float(1.0)),
        ];
        steps.extend(set(file, &format!("{offset}/x"), constant));
        steps
    }

    /// The transfers of an array: `all` of the rank at once, or each of `parts` by itself.
    fn write(
        &self,
        steps: &mut Vec<Step>,
        file: u32,
        array: u32,
        name: &str,
        parts: &[Selection],
        about: Vec<(&str, Attribute)>,
    ) {
        steps.push(Step::Create { slot: 0, file, array, name: name.into() });
        steps.extend(set(file, name, about));
        let transfer = self.kernel.transfer;
        let write = |selection: &Selection| Step::Write {
            slot: 0,
            selection: selection.clone(),
            memory: Arc::default(),
            transfer,
        };
        steps.extend(parts.iter().filter(|part| transfer == TransferMode::Collective || !part.is_empty()).map(write));
        steps.push(Step::CloseArray { slot: 0 });
    }

    /// The cells that `rank` writes in an iteration, and its particles, a selection for each call.
    fn parts(&self, rank: u64, step: u64) -> Result<(Vec<Selection>, Vec<Selection>)> {
        let kernel = &self.kernel;
        let patches = self.patches.of(rank, step);
        let blocks = self.patches.blocks_per_patch();
        let particles = kernel.particles_in(kernel.block.iter().product());
        if kernel.rank_blocks {
            let first = patches.first().copied().unwrap_or(0) * blocks * particles;
            let count = patches.len() as u64 * blocks * particles;
            return Ok((vec![self.patches.cells(&patches)?], vec![Selection::dense(&[first], &[count])?]));
        }
        let mut cells = Vec::new();
        let mut ids = Vec::new();
        for patch in &patches {
            for (number, block) in (0..).zip(self.patches.blocks(*patch)) {
                cells.push(block?);
                ids.push(Selection::dense(&[(patch * blocks + number) * particles], &[particles])?);
            }
        }
        // Every rank makes as many collective calls.
        let calls =
            if kernel.transfer == TransferMode::Collective { most_blocks(kernel, &self.patches, step) } else { 0 };
        cells.resize(cells.len().max(calls), Selection::empty(kernel.block.len()));
        ids.resize(ids.len().max(calls), Selection::empty(1));
        Ok((cells, ids))
    }
}

/// Mini-blocks of the rank that has the most in an iteration.
fn most_blocks(kernel: &OpenPmd, patches: &Patches, step: u64) -> usize {
    let most = (0..kernel.ranks as u64).map(|rank| patches.of(rank, step).len()).max().unwrap_or(0);
    most * patches.blocks_per_patch() as usize
}

fn record_attributes(units: Units) -> Vec<(&'static str, Attribute)> {
    vec![
        ("unitDimension", floats(&units)),
        ("timeOffset", Attribute::float(0.0)),
        ("macroWeighted", unsigned(0)),
        ("weightingPower", Attribute::float(0.0)),
    ]
}

impl StepBatches for Writing {
    type Rank = u64;

    fn rank(&self, rank: usize) -> Result<u64> {
        Ok(rank as u64)
    }

    fn batches(&self) -> u64 {
        self.kernel.steps
    }

    fn batch(&self, rank: &u64, number: u64) -> Result<Vec<Step>> {
        let kernel = &self.kernel;
        let step = number + 1;
        let (file, group) = kernel.place(step);
        let mut steps = Vec::new();
        if kernel.encoding == Encoding::File || number == 0 {
            steps.extend(self.open(file));
        }
        steps.push(Step::Epoch { number: step });
        steps.extend(self.frame(step));
        let (cells, particles) = self.parts(*rank, step)?;
        for mesh in kernel.meshes() {
            let mut about = self.component_attributes();
            if mesh.1.is_none() {
                about.extend(self.mesh_attributes(mesh.0));
            }
            self.write(&mut steps, file, 0, &mesh_path(&group, mesh), &cells, about);
        }
        for (name, array) in SPECIES {
            let mut about = vec![("unitSI", Attribute::float(1.0))];
            if !name.contains('/') {
                about.extend(record_attributes(if name == "charge" { CHARGE } else { NONE }));
            }
            self.write(&mut steps, file, array, &format!("{group}/particles/ion/{name}"), &particles, about);
        }
        if kernel.encoding == Encoding::File || step == kernel.steps {
            steps.extend(Self::close(file));
        }
        Ok(steps)
    }
}
