//! Writing definitions: what has to be done follows from the list alone, so that every rank does the same.

use super::definitions::{Definitions, Dimension, Home};
use super::names::{COORDINATES, NUMBER, label, split};
use crate::hdf5::dimension_scales::{File, Reference};
use hyperslab_core::Result;
use std::collections::BTreeMap;

/// One change of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Makes a dimension without variable.
    Dimension { path: String, number: i32, len: Option<u64> },
    /// Makes a coordinate variable the scale of its dimension.
    Scale { path: String, number: i32 },
    /// Gives a scale of another program its number.
    Number { path: String, number: i32 },
    /// Links a variable to its dimensions.
    Links { dataset: String, numbers: Vec<i32>, scales: Vec<String> },
    /// Lists the datasets that use a dimension, and which dimension of each.
    Users { path: String, users: Vec<(String, u32)> },
}

impl Definitions {
    /// What has to be done to have everything in the file, in this order.
    pub(super) fn plan(&self) -> Vec<Action> {
        let coordinates: BTreeMap<usize, ()> = self
            .variables
            .values()
            .filter(|variable| variable.is_coordinate)
            .filter_map(|variable| variable.dimensions.first().map(|&index| (index, ())))
            .collect();
        let mut actions = Vec::new();
        for (index, Dimension { path, number, len, home, unnumbered, .. }) in self.dimensions.iter().enumerate() {
            let (path, number) = (path.clone(), *number);
            match home {
                Home::Planned if coordinates.contains_key(&index) => actions.push(Action::Scale { path, number }),
                Home::Planned => actions.push(Action::Dimension { path, number, len: *len }),
                Home::Alone | Home::Variable if *unnumbered => actions.push(Action::Number { path, number }),
                _ => {}
            }
        }
        let mut users: BTreeMap<usize, Vec<(String, u32)>> = BTreeMap::new();
        for variable in self.variables.values() {
            if variable.planned && !variable.dimensions.is_empty() {
                let dimensions = variable.dimensions.iter().map(|&index| &self.dimensions[index]);
                let scales = dimensions.clone().map(|dimension| dimension.path.clone());
                actions.push(Action::Links {
                    dataset: variable.dataset.clone(),
                    numbers: dimensions.clone().map(|dimension| dimension.number).collect(),
                    scales: if variable.is_coordinate { Vec::new() } else { scales.collect() },
                });
            }
            if variable.is_coordinate {
                continue;
            }
            for (d, &index) in variable.dimensions.iter().enumerate() {
                if self.dimensions[index].references_changed {
                    users.entry(index).or_default().push((variable.dataset.clone(), d as u32));
                }
            }
        }
        let listed = |(index, users): (usize, _)| Action::Users { path: self.dimensions[index].path.clone(), users };
        actions.extend(users.into_iter().map(listed));
        actions
    }

    /// Everything is in the file.
    pub(super) fn note_written(&mut self) {
        let coordinates: Vec<usize> = self
            .variables
            .values()
            .filter(|variable| variable.is_coordinate)
            .filter_map(|variable| variable.dimensions.first().copied())
            .collect();
        for dimension in &mut self.dimensions {
            if dimension.home == Home::Planned {
                dimension.home = Home::Alone;
            }
            dimension.references_changed = false;
            dimension.unnumbered = dimension.unnumbered && dimension.home == Home::Phony;
        }
        coordinates.into_iter().for_each(|index| self.dimensions[index].home = Home::Variable);
        self.variables.values_mut().for_each(|variable| variable.planned = false);
    }
}

/// Does what was planned. `shared` says that processes share the file. Every rank that does so does the same.
pub(super) fn execute(file: &File<'_>, actions: &[Action], shared: bool) -> Result<()> {
    let mut addresses: BTreeMap<&str, Reference> = BTreeMap::new();
    for action in actions {
        match action {
            Action::Dimension { path, number, len } => {
                let object = file.create_dimension(path, *len, shared)?;
                put_scale(&object, &label(len.unwrap_or(0)), *number)?;
                object.close()?;
            }
            Action::Scale { path, number } => {
                let object = file.object(path)?;
                put_scale(&object, split(path).1, *number)?;
                object.close()?;
            }
            Action::Number { path, number } => {
                let object = file.object(path)?;
                object.put_integers(NUMBER, &[], &[*number])?;
                object.close()?;
            }
            Action::Links { dataset, numbers, scales } => {
                let object = file.object(dataset)?;
                object.put_integers(COORDINATES, &[numbers.len() as u64], numbers)?;
                if !scales.is_empty() {
                    let scales =
                        scales.iter().map(|path| address(file, &mut addresses, path)).collect::<Result<Vec<_>>>()?;
                    object.put_scales(&scales)?;
                }
                object.close()?;
            }
            Action::Users { path, users } => {
                let users = users
                    .iter()
                    .map(|(dataset, d)| Ok((address(file, &mut addresses, dataset)?, *d)))
                    .collect::<Result<Vec<_>>>()?;
                let object = file.object(path)?;
                object.put_users(&users)?;
                object.close()?;
            }
        }
    }
    Ok(())
}

fn put_scale(object: &crate::hdf5::dimension_scales::Object, label: &str, number: i32) -> Result<()> {
    object.put_fixed_text("CLASS", "DIMENSION_SCALE", 16)?;
    object.put_fixed_text("NAME", label, label.len() + 1)?;
    object.put_integers(NUMBER, &[], &[number])
}

/// The address of an object, asked for once.
fn address<'a>(file: &File<'_>, known: &mut BTreeMap<&'a str, Reference>, path: &'a str) -> Result<Reference> {
    if let Some(&address) = known.get(path) {
        return Ok(address);
    }
    let address = file.reference(path)?;
    known.insert(path, address);
    Ok(address)
}
