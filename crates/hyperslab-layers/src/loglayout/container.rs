//! Containers of the layer.

use super::array::LogLayoutArray;
use super::array_state::ArrayState;
use super::index_io::Generations;
use super::names;
use super::options::Options;
use super::stats::LogLayoutStats;
use super::volumes::OpenVolume;
use hyperslab_core::{
    Array, ArraySpec, Attribute, Caps, Communicator, Container, Datatype, Durability, Error, Hierarchy, Result,
    Telemetry, dims,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The state shared by a container and its arrays on one rank.
#[derive(Debug)]
pub(super) struct Shared {
    pub inner: Arc<dyn Container>,
    pub comm: Arc<dyn Communicator>,
    pub caps: Caps,
    pub options: Options,
    pub read_only: bool,
    pub counts: LogLayoutStats,
    pub generations: Mutex<Generations>,
    /// Arrays by name, and so in the same order on every rank.
    arrays: Mutex<BTreeMap<String, Arc<ArrayState>>>,
    closed: AtomicBool,
}

impl Shared {
    pub fn new(
        inner: Arc<dyn Container>,
        comm: &Arc<dyn Communicator>,
        caps: Caps,
        options: Options,
        read_only: bool,
    ) -> Self {
        Self {
            inner,
            comm: comm.clone(),
            caps,
            options,
            read_only,
            counts: LogLayoutStats::default(),
            generations: Mutex::default(),
            arrays: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    pub fn rank(&self) -> u64 {
        self.comm.rank() as u64
    }

    pub fn ranks(&self) -> u64 {
        self.comm.size() as u64
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The state of an array.
    pub fn named(&self, name: &str) -> Arc<ArrayState> {
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = arrays.get(name) {
            return named.clone();
        }
        let named = ArrayState::new(name);
        arrays.insert(name.into(), named.clone());
        named
    }

    /// The states of all arrays.
    pub fn all_named(&self) -> Vec<Arc<ArrayState>> {
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Opens the volumes of an array that has no open handle. Collective.
    fn open_volumes(&self, named: &ArrayState) -> Result<()> {
        let wanted: Vec<(u32, u64)> = {
            let state = named.lock();
            let closed = state.log.volumes.iter().filter(|volume| volume.open.is_none());
            closed.map(|volume| (volume.number, volume.regions)).collect()
        };
        for (number, regions) in wanted {
            let bytes = self.inner.array(&names::volume(number, regions, &named.name))?;
            let open = OpenVolume::new(bytes, regions)?;
            let mut state = named.lock();
            if let Some(volume) = state.log.volumes.iter_mut().find(|volume| volume.number == number) {
                volume.open = Some(open);
            }
        }
        Ok(())
    }

    /// Adds a volume if an array of `spec` should have a longer log. Collective.
    pub fn make_room(&self, named: &ArrayState, spec: &ArraySpec) -> Result<()> {
        let ranks = self.ranks();
        let wanted = self.options.room.of_rank(dims::byte_count(&spec.shape, spec.dtype.size())?, ranks);
        let (have, number) = {
            let state = named.lock();
            (state.log.of_rank(ranks), state.log.next_number())
        };
        if have >= wanted {
            return Ok(());
        }
        // Half as much again, so that gradual growth creates few volumes.
        let region = (wanted - have).max(have / 2);
        let name = names::volume(number, ranks, &named.name);
        let spec = ArraySpec::new(Datatype::U8, &[region * ranks]);
        let bytes = self.inner.create(&name, &spec).map_err(|error| {
            error.hint("loglayout needs an array of bytes beside each array; use a format or options that can hold one")
        })?;
        named.lock().log.add(number, ranks, OpenVolume::new(bytes, ranks)?, self.rank());
        Ok(())
    }

    /// Closes the volumes of an array. Collective.
    pub fn close_volumes(&self, named: &ArrayState) -> Result<()> {
        let open: Vec<OpenVolume> =
            named.lock().log.volumes.iter_mut().filter_map(|volume| volume.open.take()).collect();
        // Closes all, whatever fails, like every rank.
        let closed: Vec<Result<()>> = open.iter().map(|open| open.bytes.close()).collect();
        closed.into_iter().collect()
    }
}

/// A container of one rank.
#[derive(Debug)]
pub(super) struct LogLayoutContainer {
    pub shared: Arc<Shared>,
}

impl LogLayoutContainer {
    /// Creates a handle of an array that is open below. Collective.
    fn wrap(&self, named: Arc<ArrayState>, inner: Arc<dyn Array>, spec: ArraySpec) -> Result<Arc<dyn Array>> {
        let mut state = named.lock();
        let known = state.set_spec(spec, self.shared.rank(), self.shared.ranks());
        known.map_err(|error| error.target(format!("the index of {}", named.name)))?;
        state.handles += 1;
        drop(state);
        Ok(Arc::new(LogLayoutArray::new(inner, named, self.shared.clone())))
    }

    fn create_new(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let inner = self.shared.inner.create(name, spec)?;
        let spec = inner.spec()?;
        let named = self.shared.named(name);
        let old = named.lock().has_stored();
        if old {
            // The log of a former array of this name, which was removed without the layer.
            self.shared.publish(Durability::Visible, Some(name))?;
        }
        self.shared.open_volumes(&named)?;
        self.shared.make_room(&named, &spec)?;
        self.wrap(named, inner, spec)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for LogLayoutContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        names::check_known(name)?;
        let inner = self.shared.inner.array(name)?;
        let spec = inner.spec()?;
        let named = self.shared.named(name);
        self.shared.open_volumes(&named)?;
        self.wrap(named, inner, spec)
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    /// Writes are only found through an index that all ranks publish collectively.
    fn write_back(&self) -> Result<()> {
        let waiting = || self.shared.all_named().iter().any(|named| !named.lock().index.waiting().is_empty());
        match self.shared.is_closed() || self.shared.read_only || !waiting() {
            true => self.shared.inner.write_back(),
            false if self.shared.ranks() == 1 => self.shared.publish(Durability::Visible, None),
            false => Err(Error::unsupported(
                "write back",
                "loglayout makes writes of several ranks findable at a flush only",
            )
            .backend(super::NAME)
            .hint("flush before the staging area is full, or put loglayout above the layer that stages writes")),
        }
    }

    fn flush(&self, how: Durability) -> Result<()> {
        match self.shared.is_closed() || self.shared.read_only {
            true => self.shared.inner.flush(how),
            false => self.shared.publish(how, None),
        }
    }

    fn close(&self) -> Result<()> {
        if self.shared.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let published = match self.shared.read_only {
            true => Ok(()),
            false => self.shared.publish(Durability::Visible, None),
        };
        let closed = self.shared.inner.close();
        published.and(closed)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for LogLayoutContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        let mut names = self.shared.inner.arrays()?;
        names.retain(|name| !names::is_hidden(name));
        Ok(names)
    }

    fn groups(&self) -> Result<Vec<String>> {
        let mut names = self.shared.inner.groups()?;
        names.retain(|name| !names::is_hidden(name));
        Ok(names)
    }

    fn create_group(&self, name: &str) -> Result<()> {
        names::check_new(name)?;
        self.shared.inner.create_group(name)
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        names::check_new(name)?;
        self.create_new(name, spec)
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        names::check_known(object)?;
        self.shared.inner.set_attribute(object, name, value)
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        names::check_known(object)?;
        self.shared.inner.attribute(object, name)
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        names::check_known(object)?;
        self.shared.inner.attributes(object)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Telemetry for LogLayoutContainer {
    hyperslab_core::forward!(self, self.shared.inner.telemetry(), [background, explain]);

    fn diagnostics(&self) -> Vec<String> {
        let mut diagnostics = self.shared.inner.diagnostics();
        diagnostics.extend(self.shared.counts.diagnostic());
        diagnostics
    }
}
