//! An open store.

use super::array::ZarrArray;
use super::array_metadata;
use super::array_state::StoreState;
use super::atomic_files::AtomicFiles;
use super::attributes;
use super::layout::{ArrayLayout, Version};
use super::nodes::{self, Node, NodeKind};
use super::options::Options;
use super::store_dir;
use hyperslab_core::{
    Array, ArraySpec, Attribute, Communicator, Container, Durability, Error, ErrorKind, Hierarchy, OpenMode, Result,
    agree,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// State shared by a store and its arrays on one rank.
#[derive(Debug)]
pub struct StoreContext {
    pub(super) comm: Arc<dyn Communicator>,
    pub(super) options: Options,
    pub(super) files: AtomicFiles,
    pub(super) store: Arc<StoreState>,
    version: Version,
    how: OpenMode,
    closed: AtomicBool,
}

impl StoreContext {
    pub(super) fn check_open(&self, operation: &'static str) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::invalid(operation, "the store has been closed"));
        }
        Ok(())
    }

    pub(super) fn check_writable(&self, operation: &'static str) -> Result<()> {
        if self.how == OpenMode::Read {
            return Err(Error::invalid(operation, "the store was opened for reading").hint("open it for update"));
        }
        Ok(())
    }

    pub(super) fn many_processes(&self) -> bool {
        self.comm.size() > 1 && !self.comm.one_process()
    }
}

/// One rank's handle on a store.
#[derive(Debug)]
pub struct ZarrContainer {
    context: Arc<StoreContext>,
}

impl ZarrContainer {
    /// Opens or creates the store at `path`. Collective.
    pub fn open(path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>, options: &Options) -> Result<Self> {
        let named = |error: Error| error.backend("zarr").target(path.display());
        let prepared = if comm.rank() == 0 { prepare(path, how, options) } else { Ok(()) };
        agree(&**comm, prepared.map_err(named))?;
        let opened = Self::build(path, how, comm, options);
        if let (0, OpenMode::Create | OpenMode::Truncate, Ok(container)) = (comm.rank(), how, &opened) {
            // Made before there was a container to remember it until it is durable.
            let files = &container.context.files;
            nodes::METADATA_FILES.iter().for_each(|name| files.remember(&files.root().join(name)));
        }
        agree(&**comm, opened.map_err(named))
    }

    fn build(path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>, options: &Options) -> Result<Self> {
        store_dir::check_store(path, "open")?;
        let root = path.canonicalize().map_err(|e| Error::io("open", e))?;
        let missing = || Error::new(ErrorKind::NotFound, "open", "there is no Zarr store");
        let version = nodes::read(&root)?.ok_or_else(missing)?.version;
        let store = StoreState::of(&root);
        let files = AtomicFiles::new(root, options.write_empty);
        let closed = AtomicBool::new(false);
        let context = StoreContext { comm: comm.clone(), options: options.clone(), files, store, version, how, closed };
        Ok(Self { context: Arc::new(context) })
    }

    fn named(&self, object: &str) -> impl Fn(Error) -> Error {
        let target = match object {
            "" => self.context.files.root().display().to_string(),
            name => name.to_owned(),
        };
        move |error| error.backend("zarr").target(&target)
    }

    /// Checks on every rank, acts on rank 0, and lets all ranks know how it went.
    fn on_rank_zero(&self, object: &str, operation: &'static str, act: impl FnOnce() -> Result<()>) -> Result<()> {
        let context = &*self.context;
        let checked = context
            .check_open(operation)
            .and_then(|()| context.check_writable(operation))
            .and_then(|()| nodes::check_name(object));
        let done = match checked {
            Ok(()) if context.comm.rank() == 0 => act(),
            other => other,
        };
        agree(&*context.comm, done.map_err(self.named(object)))
    }

    fn directory(&self, name: &str) -> PathBuf {
        nodes::directory(self.context.files.root(), name)
    }

    /// Creates the groups in `names` that are not there. The caller holds the lock for changing metadata.
    fn create_groups<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<()> {
        for name in names {
            let directory = self.directory(name);
            match nodes::read(&directory)? {
                Some(Node { kind: NodeKind::Group, .. }) => {}
                Some(Node { kind: NodeKind::Array, .. }) => {
                    return Err(Error::new(ErrorKind::AlreadyExists, "create group", "there is an array of this name")
                        .target(if name.is_empty() { "/" } else { name }));
                }
                None => nodes::write(&self.context.files, &directory, &nodes::new_group(self.context.version))?,
            }
        }
        Ok(())
    }

    fn create_array(&self, name: &str, layout: &ArrayLayout) -> Result<()> {
        let files = &self.context.files;
        let directory = self.directory(name);
        let _changing = nodes::change_metadata();
        if nodes::read(&directory)?.is_some() {
            return Err(Error::new(ErrorKind::AlreadyExists, "create array", "there is an object of this name"));
        }
        if directory.exists() && !store_dir::regular_files(&directory)?.is_empty() {
            let message = "there are files in the place of the new array";
            return Err(Error::new(ErrorKind::AlreadyExists, "create array", message).target(directory.display()));
        }
        self.create_groups(nodes::ancestors(name))?;
        let (document, attributes) = array_metadata::write(layout)?;
        let node = Node { version: layout.version, kind: NodeKind::Array, document, attributes };
        nodes::write(files, &directory, &node)?;
        nodes::drop_consolidated(files, name)
    }

    fn node(&self, object: &str) -> Result<Node> {
        nodes::check_name(object)?;
        nodes::read(&self.directory(object))?
            .ok_or_else(|| Error::new(ErrorKind::NotFound, "find object", "there is no such group or array"))
    }

    fn new_layout(&self, spec: &ArraySpec) -> Result<ArrayLayout> {
        let (have, asked) = (self.context.version, self.context.options.version);
        if asked.is_some_and(|asked| asked != have) {
            return Err(Error::invalid("create array", "the store has another Zarr version than the option asks for")
                .hint("leave out version"));
        }
        ArrayLayout::new(spec, &self.context.options, have)
    }

    fn opened(&self, name: &str, clean_beyond: bool) -> Result<Arc<dyn Array>> {
        let state = nodes::check_name(name).and_then(|()| self.context.store.array(name, clean_beyond));
        let state = agree(&*self.context.comm, state.map_err(self.named(name)))?;
        Ok(Arc::new(ZarrArray::new(self.context.clone(), state)))
    }
}

/// Creates, replaces or finds the store, on rank 0.
fn prepare(path: &Path, how: OpenMode, options: &Options) -> Result<()> {
    let there = path.symlink_metadata().is_ok();
    match how {
        OpenMode::Read | OpenMode::Update => return store_dir::check_store(path, "open"),
        OpenMode::Create if there => {
            return Err(Error::new(ErrorKind::AlreadyExists, "create", "something is there already"));
        }
        OpenMode::Truncate if there => {
            let canonical = path.canonicalize().map_err(|e| Error::io("create", e))?;
            store_dir::remove(path, "replace")?;
            StoreState::forget(&canonical);
        }
        OpenMode::Create | OpenMode::Truncate => {}
    }
    std::fs::create_dir(path).map_err(|e| Error::io("create", e))?;
    let root = path.canonicalize().map_err(|e| Error::io("create", e))?;
    StoreState::forget(&root);
    let files = AtomicFiles::new(root.clone(), false);
    nodes::write(&files, &root, &nodes::new_group(options.version.unwrap_or(Version::V3)))
}

impl Container for ZarrContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        agree(&*self.context.comm, self.context.check_open("open array").map_err(self.named(name)))?;
        self.opened(name, false)
    }

    fn write_back(&self) -> Result<()> {
        // Nothing is kept in this process.
        self.context.check_open("write back").map_err(self.named(""))
    }

    fn flush(&self, how: Durability) -> Result<()> {
        let flushed = self.context.check_open("flush").and_then(|()| match how {
            Durability::Visible => Ok(()),
            Durability::Durable => self.context.files.sync(),
        });
        agree(&*self.context.comm, flushed.map_err(self.named("")))
    }

    fn close(&self) -> Result<()> {
        if self.context.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        // Writes are in their files when they return; once everyone is here, all of them are visible.
        agree(&*self.context.comm, Ok(()))
    }
}

impl Hierarchy for ZarrContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        self.context
            .check_open("list arrays")
            .and_then(|()| store_dir::arrays(self.context.files.root()))
            .map_err(self.named(""))
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.context
            .check_open("list groups")
            .and_then(|()| store_dir::groups(self.context.files.root()))
            .map_err(self.named(""))
    }

    fn create_group(&self, name: &str) -> Result<()> {
        self.on_rank_zero(name, "create group", || {
            let _changing = nodes::change_metadata();
            self.create_groups(nodes::ancestors(name).chain([name]))?;
            nodes::drop_consolidated(&self.context.files, name)
        })
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let context = &*self.context;
        let layout = context.check_open("create array").and_then(|()| match name {
            "" => Err(Error::new(ErrorKind::AlreadyExists, "create array", "the root is a group already")),
            _ => self.new_layout(spec),
        });
        let layout = agree(&*context.comm, layout.map_err(self.named(name)))?;
        self.on_rank_zero(name, "create array", || self.create_array(name, &layout))?;
        self.opened(name, true)
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.on_rank_zero(object, "set attribute", || {
            let files = &self.context.files;
            let _changing = nodes::change_metadata();
            let mut node = self.node(object)?;
            attributes::set(&mut node.attributes, name, value)?;
            nodes::write(files, &self.directory(object), &node)?;
            nodes::drop_consolidated(files, object)
        })
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.context
            .check_open("read attribute")
            .and_then(|()| self.node(object))
            .and_then(|node| attributes::get(&node.attributes, name))
            .map_err(self.named(object))
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.context
            .check_open("list attributes")
            .and_then(|()| self.node(object))
            .map(|node| attributes::names(&node.attributes))
            .map_err(self.named(object))
    }
}
