//! An open container.

use super::array::CdfArray;
use super::define::{Owner, define_array, define_attribute};
use super::fill::fill;
use super::header::CdfAttribute;
use super::names::{self, FILL};
use super::state::{Open, Shared};
use super::values;
use hyperslab_core::{Array, ArraySpec, Attribute, Container, Durability, Error, ErrorKind, Hierarchy, Result, agree};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A container on one rank.
#[derive(Debug)]
pub(crate) struct CdfContainer {
    pub shared: Arc<Shared>,
}

impl CdfContainer {
    fn locate(&self, error: Error, target: &str) -> Error {
        let error = error.backend("netcdf3");
        if target.is_empty() { error.target(self.shared.path.display()) } else { error.target(target) }
    }

    fn handle(&self, number: usize, name: &str) -> Arc<dyn Array> {
        let closed = AtomicBool::new(false);
        Arc::new(CdfArray { shared: self.shared.clone(), number, name: name.into(), closed })
    }
}

/// The attribute for the file, judged.
fn judge(open: &Open, object: &str, name: &str, value: &Attribute) -> Result<(Owner, CdfAttribute)> {
    names::check_attribute_name(name)?;
    let owner = owner(open, object)?;
    let stored = values::store(name, value, open.header.version)?;
    if let Owner::Array(number) = owner
        && name == FILL
    {
        let known = open.header.variables[number].attributes.iter().find(|known| known.name == FILL);
        if known != Some(&stored) {
            return Err(Error::unsupported("set attribute", "the fill value of an array is that it was made with")
                .hint("create the array with this fill value"));
        }
    }
    Ok((owner, stored))
}

/// The root or an array.
fn owner(open: &Open, object: &str) -> Result<Owner> {
    if object.is_empty() {
        return Ok(Owner::File);
    }
    if let Some(number) = open.by_name.get(object) {
        return Ok(Owner::Array(*number));
    }
    Err(match is_group(open, object) {
        true => Error::unsupported("find object", "classic NetCDF files have no groups, so none with attributes"),
        false => Error::new(ErrorKind::NotFound, "find object", "there is no such object"),
    })
}

/// Whether an array's name begins with this one.
fn is_group(open: &Open, object: &str) -> bool {
    let inside = format!("{object}/");
    open.by_name.range(inside.clone()..).next().is_some_and(|(name, _)| name.starts_with(&inside))
}

fn attributes_of(open: &Open, owner: Owner) -> &[CdfAttribute] {
    match owner {
        Owner::File => &open.header.attributes,
        Owner::Array(number) => &open.header.variables[number].attributes,
    }
}

impl Container for CdfContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let find = || {
            self.shared.with("open array", |open| {
                let number = open.number(name)?;
                open.arrays[number].spec(&open.header, &open.header.variables[number]).check()?;
                Ok(number)
            })
        };
        let found = agree(&*self.shared.comm, find().map_err(|error| self.locate(error, name)));
        found.map(|number| self.handle(number, name))
    }

    fn write_back(&self) -> Result<()> {
        let stored = self.shared.with("write back", |_| Ok(())).and_then(|()| self.shared.store_header());
        stored.map_err(|error| self.locate(error, ""))
    }

    fn flush(&self, how: Durability) -> Result<()> {
        let flush = || {
            agree(&*self.shared.comm, self.shared.with("flush", |_| Ok(())))?;
            match how {
                Durability::Visible => self.shared.on_root(|| self.shared.store_header()),
                Durability::Durable => self.shared.sync(),
            }
        };
        flush().map_err(|error| self.locate(error, ""))
    }

    fn close(&self) -> Result<()> {
        match self.shared.close() {
            Some(closed) => agree(&*self.shared.comm, closed.map_err(|error| self.locate(error, ""))),
            None => Ok(()),
        }
    }
}

impl Hierarchy for CdfContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        let list = self.shared.with("list arrays", |open| Ok(open.by_name.keys().cloned().collect()));
        list.map_err(|error| self.locate(error, ""))
    }

    /// There is nothing to make: a group is there as soon as an array is in it, and an empty one is not kept.
    fn create_group(&self, name: &str) -> Result<()> {
        let judge = || {
            self.shared.check_writable("create group")?;
            names::check_name(name)?;
            self.shared.with("create group", |open| {
                let above = name.match_indices('/').map(|(at, _)| &name[..at]).chain([name]);
                match above.into_iter().find(|group| open.by_name.contains_key(*group)) {
                    Some(array) => {
                        let message = format!("{array:?} is an array");
                        Err(Error::new(ErrorKind::AlreadyExists, "create group", message))
                    }
                    None => Ok(()),
                }
            })
        };
        agree(&*self.shared.comm, judge().map_err(|error| self.locate(error, name)))
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let create = || {
            let number = define_array(&self.shared, name, spec)?;
            let filled = self.shared.with("create", |open| {
                if open.arrays[number].fill.is_some() {
                    self.shared.touched.store(true, Ordering::Release);
                }
                fill(open, &self.shared.staging, &*self.shared.comm, number, 0)
            });
            agree(&*self.shared.comm, filled).map(|()| number)
        };
        create().map(|number| self.handle(number, name)).map_err(|error| self.locate(error, name))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        let defined = define_attribute(&self.shared, |open| judge(open, object, name, value));
        defined.map_err(|error| self.locate(error, object))
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        let find = |open: &Open| {
            let found = attributes_of(open, owner(open, object)?).iter().find(|attribute| attribute.name == name);
            found.map(values::restore).ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "read attribute", format!("there is no attribute {name:?}"))
            })
        };
        self.shared.with("read attribute", find).map_err(|error| self.locate(error, object))
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        let list = |open: &Open| {
            if is_group(open, object) {
                return Ok(Vec::new());
            }
            let owner = owner(open, object)?;
            let hidden = |name: &str| match owner {
                Owner::File => false,
                Owner::Array(number) => open.arrays[number].hides(name),
            };
            let names = attributes_of(open, owner).iter().map(|attribute| attribute.name.clone());
            let mut names: Vec<String> = names.filter(|name| !hidden(name)).collect();
            names.sort_unstable();
            Ok(names)
        };
        self.shared.with("list attributes", list).map_err(|error| self.locate(error, object))
    }
}
