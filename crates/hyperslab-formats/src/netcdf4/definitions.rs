//! The dimensions and variables of a file, and which of them have yet to be written. No I/O.

use super::names::{beside_dimension, in_scope, join, split};
use crate::netcdf4_entry::options::Options;
use hyperslab_core::{ArraySpec, Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};

const DOING: &str = "create array";

/// What a dimension is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// Nothing yet.
    Planned,
    /// A dataset of its own.
    Alone,
    /// Its coordinate variable.
    Variable,
    /// Nothing, ever: it has no name in the file.
    Phony,
}

/// A dimension.
#[derive(Debug, Clone)]
pub(super) struct Dimension {
    /// Its path, also that of its scale.
    pub(super) path: String,
    /// `_Netcdf4Dimid`.
    pub(super) number: i32,
    /// `None`: it grows.
    pub(super) len: Option<u64>,
    pub(super) home: Home,
    /// The list of datasets that use it is to be written.
    pub(super) references_changed: bool,
    /// The file does not say its number.
    pub(super) unnumbered: bool,
}

/// A variable.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    /// The path of its dataset.
    pub(super) dataset: String,
    /// Indices of its dimensions.
    pub(super) dimensions: Vec<usize>,
    /// It is the scale of its first dimension.
    pub(super) is_coordinate: bool,
    /// Its links to dimensions are to be written.
    pub(super) planned: bool,
}

/// All of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Definitions {
    pub(super) dimensions: Vec<Dimension>,
    /// By path of the dimension.
    by_path: BTreeMap<String, usize>,
    /// By name of the array.
    pub(super) variables: BTreeMap<String, Variable>,
    next_number: i32,
}

/// What must happen before the dataset of a new array is made.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Preparation {
    /// Where the dataset goes.
    pub(super) dataset: String,
    /// A dimension without variable that it replaces.
    pub(super) replaces: Option<String>,
    /// Datasets that go out of the way of new dimensions, from and to.
    pub(super) moves: Vec<(String, String)>,
}

/// A dimension that an array asks for.
struct Wanted {
    path: String,
    len: Option<u64>,
}

impl Definitions {
    /// Adds a dimension that the file has.
    pub(super) fn found(&mut self, path: String, number: Option<i32>, len: Option<u64>, home: Home) -> usize {
        let unnumbered = number.is_none();
        let number = number.unwrap_or(self.next_number);
        self.next_number = self.next_number.max(number.saturating_add(1));
        let index = self.dimensions.len();
        self.by_path.insert(path.clone(), index);
        self.dimensions.push(Dimension { path, number, len, home, references_changed: false, unnumbered });
        index
    }

    /// The dimension with this number.
    pub(super) fn numbered(&self, number: i32) -> Option<usize> {
        self.dimensions.iter().position(|dimension| dimension.number == number)
    }

    /// Whether a dimension has this path, and no variable.
    pub(super) fn is_only_dimension(&self, path: &str) -> bool {
        self.by_path.get(path).is_some_and(|&index| matches!(self.dimensions[index].home, Home::Planned | Home::Alone))
    }

    /// Names of the dimensions of an array.
    pub(super) fn names(&self, array: &str) -> Option<Vec<String>> {
        let variable = self.variables.get(array)?;
        Some(variable.dimensions.iter().map(|&index| self.dimensions[index].path.clone()).collect())
    }

    /// Whether anything has to be written.
    pub(super) fn changed(&self) -> bool {
        self.dimensions.iter().any(|dimension| dimension.home == Home::Planned || dimension.references_changed)
            || self.variables.values().any(|variable| variable.planned)
    }

    /// Adds an array. `text` is the length of one more dimension, for characters. Changes nothing if it fails.
    pub(super) fn add(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        text: Option<u64>,
        options: &Options,
    ) -> Result<Preparation> {
        let before = self.dimensions.len();
        let added = self.try_add(name, spec, text, options);
        if added.is_err() {
            self.take_back(before);
        }
        added
    }

    /// Removes the dimensions after the first `count`, which nothing uses.
    fn take_back(&mut self, count: usize) {
        for dimension in self.dimensions.drain(count..) {
            self.by_path.remove(&dimension.path);
        }
    }

    fn try_add(&mut self, name: &str, spec: &ArraySpec, text: Option<u64>, options: &Options) -> Result<Preparation> {
        if self.variables.contains_key(name) {
            return Err(Error::new(ErrorKind::AlreadyExists, DOING, ""));
        }
        let (group, own) = split(name);
        let mut used: Vec<usize> = Vec::new();
        let mut is_coordinate = false;
        for d in 0..spec.shape.len() {
            let grows = spec.max_shape.as_ref().is_some_and(|max| max[d] != Some(spec.shape[d]));
            let len = (!grows).then_some(spec.shape[d]);
            if options.classic && grows && d > 0 {
                let message = "in files of the classic model only the first dimension of an array grows";
                return Err(Error::unsupported(DOING, message).hint("leave out model=classic"));
            }
            let index = match &spec.dims {
                Some(names) => {
                    let path = names[d].clone();
                    if !in_scope(split(&path).0, group) {
                        let message =
                            format!("dimension {path:?} belongs to another group, where {name:?} cannot use it");
                        return Err(
                            Error::invalid(DOING, message).hint("name dimensions of the array's group or above")
                        );
                    }
                    self.named(Wanted { path, len })?
                }
                None if grows => self.made(&join(group, &format!("{own}_{d}")), len, &used),
                None => self.made(&format!("d{}", spec.shape[d]), len, &used),
            };
            is_coordinate |= d == 0 && self.dimensions[index].path == name;
            used.push(index);
        }
        if let Some(len) = text {
            used.push(self.made(&format!("string{len}"), Some(len), &used));
        }
        if options.classic {
            self.check_classic(name)?;
        }
        Ok(self.place(name, used, is_coordinate))
    }

    /// Where the dataset goes, and what it changes for others.
    fn place(&mut self, name: &str, used: Vec<usize>, is_coordinate: bool) -> Preparation {
        let mut preparation = Preparation { dataset: name.into(), ..Preparation::default() };
        if is_coordinate {
            let index = used[0];
            let dimension = &mut self.dimensions[index];
            if dimension.home == Home::Alone {
                // Another object takes its place: every link to it has to be written again.
                preparation.replaces = Some(dimension.path.clone());
                for variable in self.variables.values_mut() {
                    variable.planned |= !variable.is_coordinate && variable.dimensions.contains(&index);
                }
            }
            dimension.home = Home::Planned;
        } else if self.by_path.contains_key(name) {
            preparation.dataset = beside_dimension(name);
        }
        // The other way round: a variable that is there already has the name of a new dimension.
        for &index in &used {
            let Dimension { path, home, .. } = &self.dimensions[index];
            if *home == Home::Planned
                && let Some(variable) = self.variables.get_mut(path)
                && variable.dataset == *path
                && !variable.is_coordinate
            {
                let to = beside_dimension(path);
                preparation.moves.push((path.clone(), to.clone()));
                variable.dataset = to;
            }
        }
        // Scales themselves have no links to dimensions.
        for &index in used.iter().take(if is_coordinate { 1 } else { used.len() }) {
            self.dimensions[index].references_changed = true;
        }
        let dataset = preparation.dataset.clone();
        self.variables.insert(name.into(), Variable { dataset, dimensions: used, is_coordinate, planned: true });
        preparation
    }

    /// Takes an array out again whose dataset could not be made, with dimensions that only it has.
    pub(super) fn forget(&mut self, name: &str) {
        self.variables.remove(name);
        let used = |index: usize| self.variables.values().any(|variable| variable.dimensions.contains(&index));
        let unused = |index: &usize| self.dimensions[*index].home == Home::Planned && !used(*index);
        let count = self.dimensions.len();
        let last = (0..count).rev().take_while(unused).count();
        self.take_back(count - last);
    }

    fn named(&mut self, wanted: Wanted) -> Result<usize> {
        let Some(&index) = self.by_path.get(&wanted.path) else {
            return Ok(self.found(wanted.path, None, wanted.len, Home::Planned));
        };
        let Dimension { path, len, .. } = &self.dimensions[index];
        match (*len, wanted.len) {
            (None, _) => Ok(index),
            (Some(known), Some(len)) if known == len => Ok(index),
            (Some(known), len) => {
                let len = len.map_or_else(|| "that grows".to_owned(), |len| format!("of length {len}"));
                let message = format!("dimension {path:?} has length {known}, the array has one {len}");
                Err(Error::invalid(DOING, message).hint("give it another name"))
            }
        }
    }

    /// A dimension whose name nobody cares about: shared if it has a fixed length, but not within one array.
    fn made(&mut self, wish: &str, len: Option<u64>, used: &[usize]) -> usize {
        for number in 1u64.. {
            let path = if number == 1 { wish.to_owned() } else { format!("{wish}_{number}") };
            match self.by_path.get(&path) {
                Some(&index) => {
                    let fits = len.is_some() && self.dimensions[index].len == len;
                    if fits && !used.contains(&index) {
                        return index;
                    }
                }
                None if self.variables.contains_key(&path) => {}
                None => return self.found(path, None, len, Home::Planned),
            }
        }
        0
    }

    fn check_classic(&self, name: &str) -> Result<()> {
        let refuse = |message: String| Err(Error::unsupported(DOING, message).hint("leave out model=classic"));
        if name.contains('/') {
            return refuse("files of the classic model have no groups".into());
        }
        let growing: BTreeSet<_> = self.dimensions.iter().filter(|d| d.len.is_none()).map(|d| &d.path).collect();
        if growing.len() > 1 {
            return refuse("files of the classic model have one dimension that grows".into());
        }
        Ok(())
    }
}
