//! The dimensions and variables of a file that exists, whoever wrote it.

use super::definitions::{Definitions, Home, Variable};
use super::names::{self, join, of_dataset, split};
use crate::hdf5::Hdf5Container;
use crate::hdf5::dimension_scales::{Reference, Surveyed};
use hyperslab_core::Result;
use std::collections::BTreeMap;

const DOING: &str = "read dimensions";

/// Reads everything. Not collective.
pub(super) fn read(file: &Hdf5Container) -> Result<Definitions> {
    let found = file.inspect(DOING, |file| file.survey())?;
    let mut definitions = Definitions::default();
    let mut by_address: BTreeMap<Reference, usize> = BTreeMap::new();
    // Scales with numbers first: numbers made here must not take theirs.
    for numbered in [true, false] {
        for dataset in found.iter().filter(|dataset| dataset.number.is_some() == numbered) {
            let (Some(label), Some((shape, max))) = (&dataset.scale, &dataset.extents) else { continue };
            let Some(&extent) = shape.first() else { continue };
            let len = max.first().copied().flatten().map(|_| extent);
            let home = if names::is_without_variable(label) { Home::Alone } else { Home::Variable };
            let index = definitions.found(dataset.path.clone(), dataset.number, len, home);
            by_address.insert(dataset.address, index);
        }
    }
    let mut phony = Phony::default();
    for dataset in &found {
        let scale = by_address.get(&dataset.address).copied();
        if scale.is_some_and(|index| definitions.dimensions[index].home == Home::Alone) {
            continue;
        }
        let dimensions = dimensions_of(&mut definitions, &by_address, &mut phony, dataset, scale);
        let variable =
            Variable { dataset: dataset.path.clone(), dimensions, is_coordinate: scale.is_some(), planned: false };
        definitions.variables.insert(of_dataset(&dataset.path), variable);
    }
    Ok(definitions)
}

/// The dimensions of a variable: by their numbers, by its links, or made up.
fn dimensions_of(
    definitions: &mut Definitions,
    by_address: &BTreeMap<Reference, usize>,
    phony: &mut Phony,
    dataset: &Surveyed,
    scale: Option<usize>,
) -> Vec<usize> {
    let Some((shape, max)) = &dataset.extents else { return Vec::new() };
    let numbers = dataset.coordinates.as_ref().filter(|numbers| numbers.len() == shape.len());
    if let Some(known) = numbers
        .and_then(|numbers| numbers.iter().map(|&number| definitions.numbered(number)).collect::<Option<Vec<_>>>())
    {
        return known;
    }
    let linked = |d: usize| match scale {
        Some(own) if d == 0 => Some(own),
        _ => dataset.scales.as_ref()?.get(d)?.as_ref().and_then(|address| by_address.get(address).copied()),
    };
    let mut used = Vec::with_capacity(shape.len());
    for (d, &extent) in shape.iter().enumerate() {
        let index = linked(d)
            .unwrap_or_else(|| phony.dimension(definitions, split(&dataset.path).0, (extent, max[d].is_none()), &used));
        used.push(index);
    }
    used
}

/// Dimensions without names.
#[derive(Debug, Default)]
struct Phony {
    /// Group, extent and whether it grows, of each.
    known: Vec<(String, (u64, bool), usize)>,
}

impl Phony {
    /// One that is not used in this variable yet, as netcdf-c makes them.
    fn dimension(&mut self, definitions: &mut Definitions, group: &str, kind: (u64, bool), used: &[usize]) -> usize {
        let fits = |(home, known, index): &&(String, (u64, bool), usize)| {
            home == group && *known == kind && !used.contains(index)
        };
        if let Some((_, _, index)) = self.known.iter().find(fits) {
            return *index;
        }
        let number = definitions.dimensions.len();
        let path = join(group, &format!("phony_dim_{number}"));
        let index = definitions.found(path, None, (!kind.1).then_some(kind.0), Home::Phony);
        self.known.push((group.into(), kind, index));
        index
    }
}
