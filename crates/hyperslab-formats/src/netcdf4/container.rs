//! An open NetCDF-4 file.

use super::array::Netcdf4Array;
use super::definitions::{Definitions, Preparation};
use super::names::{self, FILL};
use super::types::{self, Storing};
use super::{attributes, publish, survey};
use crate::hdf5::{Hdf5Container, library_version};
use crate::netcdf4_entry::options::Options;
use hyperslab_core::{
    Array, ArraySpec, Attribute, Communicator, Container, Datatype, Durability, Error, ErrorKind, Hierarchy, OpenMode,
    Result, agree,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const CREATING: &str = "create array";
const SETTING: &str = "set attribute";

/// What the arrays of one rank's file share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) file: Arc<Hdf5Container>,
    pub(super) comm: Arc<dyn Communicator>,
    /// `None` until somebody asks, in files open for reading.
    definitions: Mutex<Option<Definitions>>,
}

/// One rank's handle of a NetCDF-4 file.
#[derive(Debug)]
pub(super) struct Netcdf4Container {
    shared: Arc<Shared>,
    options: Options,
    writable: bool,
    closed: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Definitions>> {
        self.definitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `body` with the definitions, which are read now if they were not.
    fn with<T>(&self, body: impl FnOnce(&mut Definitions) -> T) -> Result<T> {
        let mut known = self.lock();
        if known.is_none() {
            *known = Some(survey::read(&self.file)?);
        }
        known.as_mut().map(body).ok_or_else(|| Error::invalid("read dimensions", "there are none"))
    }

    /// The dataset of an array, or the path of another object. Does not read all definitions for it.
    fn dataset(&self, name: &str) -> Result<String> {
        if let Some(definitions) = self.lock().as_ref() {
            return Ok(match definitions.variables.get(name) {
                Some(variable) => variable.dataset.clone(),
                None if definitions.is_only_dimension(name) => names::beside_dimension(name),
                None => name.into(),
            });
        }
        if name.is_empty() {
            return Ok(String::new());
        }
        self.file.inspect("find array", |file| {
            let only_dimension = || {
                Ok::<_, Error>(file.object(name)?.scale_name()?.is_some_and(|label| names::is_without_variable(&label)))
            };
            Ok(match !file.exists(name)? || only_dimension()? {
                true if file.exists(&names::beside_dimension(name))? => names::beside_dimension(name),
                true if file.exists(name)? => {
                    let message = "this is a dimension without a variable";
                    return Err(Error::new(ErrorKind::NotFound, "find array", message).target(name));
                }
                _ => name.into(),
            })
        })
    }

    /// How the elements of a dataset are stored.
    fn storing(&self, name: &str, dataset: &str, spec: &ArraySpec) -> Result<Storing> {
        match &spec.dtype {
            Datatype::Integer { size: 1, signed: true, .. } => {
                let known = self.file.attribute(dataset, names::DTYPE);
                let is_bool = known.is_ok_and(|value| value.as_text() == Some("bool"));
                Ok(if is_bool { Storing::Bytes } else { Storing::Same })
            }
            Datatype::FixedString(1) if !spec.shape.is_empty() => {
                let names = dimension_names(self, name)?.unwrap_or_default();
                let length =
                    spec.shape.last().and_then(|length| u32::try_from(*length).ok()).filter(|length| *length > 1);
                let last = names.last().map(|name| names::split(name).1.to_owned()).unwrap_or_default();
                let ours = |length: u32| {
                    let wish = format!("string{length}");
                    last == wish || last.strip_prefix(&wish).is_some_and(|rest| rest.starts_with('_'))
                };
                Ok(length.filter(|length| ours(*length)).map_or(Storing::Same, Storing::Characters))
            }
            _ => Ok(Storing::Same),
        }
    }

    /// The value that elements of a dataset have that were never written.
    fn fill(&self, dataset: &str) -> Result<Option<Vec<u8>>> {
        self.file.inspect("read fill value", |file| file.object(dataset)?.fill_value())
    }
}

/// The names of the dimensions of an array, with that of its characters.
pub(super) fn dimension_names(shared: &Shared, name: &str) -> Result<Option<Vec<String>>> {
    shared.with(|definitions| definitions.names(name))
}

impl Netcdf4Container {
    /// Takes over an open file. Collective.
    pub(super) fn new(
        file: Arc<Hdf5Container>,
        how: OpenMode,
        options: Options,
        comm: Arc<dyn Communicator>,
    ) -> Result<Self> {
        let created = matches!(how, OpenMode::Create | OpenMode::Truncate);
        let definitions = match how {
            OpenMode::Read => Ok(None),
            // Before any rank changes it.
            OpenMode::Update => survey::read(&file).map(Some),
            OpenMode::Create | OpenMode::Truncate => Ok(Some(Definitions::default())),
        };
        let definitions = Mutex::new(agree(&*comm, definitions)?);
        if created {
            file.define("create", Ok(()), |file| {
                let root = file.object("")?;
                let written = format!("version=2,hyperslab={},hdf5={}", env!("CARGO_PKG_VERSION"), library_version());
                root.put_text(names::PROPERTIES, written.as_bytes())?;
                if options.classic {
                    root.put_integers(names::STRICT, &[], &[1])?;
                }
                root.close()
            })?;
        }
        let shared = Arc::new(Shared { file, comm, definitions });
        Ok(Self { shared, options, writable: how != OpenMode::Read, closed: AtomicBool::new(false) })
    }

    /// Writes definitions that are not in the file. Collective.
    fn publish(&self) -> Result<()> {
        if !self.writable || self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let actions = self.shared.with(|definitions| definitions.changed().then(|| definitions.plan()))?;
        let Some(actions) = actions else { return Ok(()) };
        let shared = self.shared.comm.size() > 1 && !self.shared.comm.one_process();
        self.shared.file.define("write dimensions", Ok(()), |file| publish::execute(file, &actions, shared))?;
        self.shared.with(Definitions::note_written)
    }

    /// Makes way for the dataset of a new array. Collective.
    fn prepare(&self, preparation: &Preparation) -> Result<()> {
        if preparation.replaces.is_none() && preparation.moves.is_empty() {
            return Ok(());
        }
        let Preparation { replaces, moves, .. } = preparation;
        let define = |file: &crate::hdf5::dimension_scales::File<'_>| {
            replaces.iter().try_for_each(|path| file.unlink(path))?;
            moves.iter().try_for_each(|(from, to)| file.rename(from, to))
        };
        self.shared.file.define(CREATING, Ok(()), define).map(drop)
    }

    fn check_new(&self, name: &str, spec: &ArraySpec) -> Result<(Storing, ArraySpec)> {
        spec.check()?;
        if name.is_empty() {
            return Err(Error::invalid(CREATING, "an array needs a name").backend(super::NAME));
        }
        if !self.writable {
            return Err(Error::invalid(CREATING, "the file is open for reading only").hint("open it for update"));
        }
        let storing = types::storing(&spec.dtype, &self.options)?;
        Ok((storing, types::stored(spec, storing, &self.options)?))
    }

    /// Attributes that say what the dataset does not. Collective.
    fn describe(&self, dataset: &str, spec: &ArraySpec, stored: &ArraySpec, storing: Storing) -> Result<()> {
        let fill = spec.fill_value.as_ref().and(stored.fill_value.as_ref());
        let fill = fill.filter(|_| !matches!(stored.dtype, Datatype::Compound(_)));
        let fill = fill.filter(|value| crate::netcdf_fill::default_fill(&stored.dtype).as_ref() != Some(value));
        if fill.is_none() && storing != Storing::Bytes {
            return Ok(());
        }
        let describe = |file: &crate::hdf5::dimension_scales::File<'_>| {
            let object = file.object(dataset)?;
            if storing == Storing::Bytes {
                object.put_text(names::DTYPE, b"bool")?;
            }
            match (fill, &stored.dtype) {
                (Some(value), Datatype::FixedString(_)) => object.put_text(FILL, value)?,
                (Some(value), Datatype::VariableString) => object.put_texts(FILL, &[value])?,
                (Some(value), dtype) => object.put_numbers(FILL, dtype, &[1], value)?,
                (None, _) => {}
            }
            object.close()
        };
        self.shared.file.define(CREATING, Ok(()), describe).map(drop)
    }

    fn handle(&self, name: &str, dataset: Arc<dyn Array>, storing: Storing) -> Arc<dyn Array> {
        Arc::new(Netcdf4Array { name: name.into(), dataset, storing, shared: self.shared.clone() })
    }

    /// Whether a name is that of a dimension scale that is also an array.
    fn is_scale(&self, object: &str) -> Result<bool> {
        if object.is_empty() {
            return Ok(false);
        }
        self.shared.with(|definitions| definitions.variables.get(object).is_some_and(|variable| variable.is_coordinate))
    }
}

impl Container for Netcdf4Container {
    hyperslab_core::forward!(self, self.shared.file, [telemetry, write_back]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let dataset = agree(&*self.shared.comm, self.shared.dataset(name))?;
        let array = self.shared.file.array(&dataset).map_err(|error| error.target(name))?;
        let storing = array.spec().and_then(|spec| self.shared.storing(name, &dataset, &spec));
        Ok(self.handle(name, array, agree(&*self.shared.comm, storing)?))
    }

    fn flush(&self, how: Durability) -> Result<()> {
        self.publish()?;
        self.shared.file.flush(how)
    }

    fn close(&self) -> Result<()> {
        let published = self.publish();
        self.closed.store(true, Ordering::Release);
        published.and(self.shared.file.close())
    }
}

impl Hierarchy for Netcdf4Container {
    hyperslab_core::forward!(self, self.shared.file, [groups]);

    fn arrays(&self) -> Result<Vec<String>> {
        if self.closed.load(Ordering::Acquire) {
            return self.shared.file.arrays(); // which says so
        }
        self.shared.with(|definitions| definitions.variables.keys().cloned().collect())
    }

    fn create_group(&self, name: &str) -> Result<()> {
        if self.options.classic && !name.is_empty() {
            let message = "files of the classic model have no groups";
            return Err(Error::unsupported("create group", message).hint("leave out model=classic"));
        }
        self.shared.file.create_group(name)
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let comm = &*self.shared.comm;
        let located = |error: Error| error.backend(super::NAME).target(name);
        let (storing, stored) = agree(comm, self.check_new(name, spec).map_err(located))?;
        let text = match storing {
            Storing::Characters(length) => Some(u64::from(length)),
            _ => None,
        };
        let added = self.shared.with(|definitions| definitions.add(name, spec, text, &self.options));
        let preparation = agree(comm, added.and_then(|added| added).map_err(located))?;
        let made = self.prepare(&preparation).and_then(|()| {
            let array = self.shared.file.create(&preparation.dataset, &stored)?;
            self.describe(&preparation.dataset, spec, &stored, storing).map(|()| array)
        });
        match made {
            Ok(array) => Ok(self.handle(name, array, storing)),
            Err(error) => {
                self.shared.with(|definitions| definitions.forget(name))?;
                Err(error)
            }
        }
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        let check = || {
            let is_scale = self.is_scale(object)?;
            attributes::check(object, name, value, is_scale, self.options.classic)?;
            let dataset = self.shared.dataset(object)?;
            if name == FILL && !object.is_empty() {
                attributes::check_fill(name, self.shared.fill(&dataset)?.as_deref(), value)?;
            }
            Ok(dataset)
        };
        let mark = |error: Error| error.backend(super::NAME).target(format!("{object}@{name}"));
        let dataset = agree(&*self.shared.comm, check().map_err(mark))?;
        let set = |file: &crate::hdf5::dimension_scales::File<'_>| {
            let open = file.object(&dataset)?;
            attributes::put(&open, name, value).map_err(mark)?;
            open.close()
        };
        self.shared.file.define(SETTING, Ok(()), set).map(drop)
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        let dataset = self.shared.dataset(object)?;
        self.shared.file.attribute(&dataset, name).map(attributes::restored)
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        let dataset = self.shared.dataset(object)?;
        let mut listed = self.shared.file.attributes(&dataset)?;
        let is_scale = !object.is_empty() && self.is_scale(object)?;
        listed.retain(|name| !names::is_reserved(object, name, is_scale));
        if listed.iter().any(|name| name == FILL) && !object.is_empty() {
            let value = self.shared.file.attribute(&dataset, FILL)?;
            if attributes::is_implied(self.shared.fill(&dataset)?.as_deref(), &value) {
                listed.retain(|name| name != FILL);
            }
        }
        if listed.iter().any(|name| name == names::DTYPE) && !object.is_empty() {
            let value = self.shared.file.attribute(&dataset, names::DTYPE)?;
            let bytes = || self.shared.file.inspect("list attributes", |file| file.object(&dataset)?.is_signed_bytes());
            if value.as_text() == Some("bool") && bytes()? {
                listed.retain(|name| name != names::DTYPE);
            }
        }
        Ok(listed)
    }
}
