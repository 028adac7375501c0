//! Changing what the header defines, with elements moved where it needs their place. All of it is collective.

use super::arrays::{self, Wanted};
use super::encode::{encode, encoded_len};
use super::header::{CdfAttribute, Header};
use super::journal::LARGEST_HEADER;
use super::layout::{check, place_all, place_new};
use super::names;
use super::relocate::relocate;
use super::state::{Open, Shared};
use hyperslab_core::{ArraySpec, Error, ErrorKind, Reduce, Result, agree};
use std::sync::atomic::Ordering;

/// Whose attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    File,
    /// The array with this number.
    Array(usize),
}

/// What a definition changed, to take it back.
struct Before {
    dimensions: usize,
    variables: usize,
    begins: Vec<u64>,
    records: u64,
    /// One past the last byte of elements.
    end: u64,
    longest: u64,
    changed: bool,
}

impl Before {
    fn of(open: &Open) -> Self {
        let Open { header, longest, changed, .. } = open;
        Self {
            dimensions: header.dimensions.len(),
            variables: header.variables.len(),
            begins: header.variables.iter().map(|variable| variable.begin).collect(),
            records: header.records,
            end: header.end(),
            longest: *longest,
            changed: *changed,
        }
    }

    fn put_begins(&self, header: &mut Header) {
        header.variables.iter_mut().zip(&self.begins).for_each(|(variable, begin)| variable.begin = *begin);
    }

    fn restore(&self, open: &mut Open) {
        let header = &mut open.header;
        header.dimensions.truncate(self.dimensions);
        header.variables.truncate(self.variables);
        header.records = self.records;
        self.put_begins(header);
        open.arrays.truncate(self.variables);
        open.by_name.retain(|_, number| *number < self.variables);
        (open.longest, open.changed) = (self.longest, self.changed);
    }
}

/// Whether elements can stay where they are after a definition.
#[derive(Debug, PartialEq, Eq)]
enum Placed {
    Kept,
    Moved,
}

/// Lays out a header that has new variables from number `known` on, or a longer list of attributes.
fn place(open: &mut Open, shared: &Shared, known: usize, touched: bool) -> Result<Placed> {
    let spacing = &shared.options.spacing;
    let len = encoded_len(&open.header);
    if len > LARGEST_HEADER {
        return Err(Error::unsupported("define", format!("the header would have {len} bytes, more than 1 GiB"))
            .hint("use fewer arrays and smaller attributes"));
    }
    open.longest = open.longest.max(len);
    if !touched {
        place_all(&mut open.header, open.longest, spacing)?;
        return Ok(Placed::Kept);
    }
    if place_new(&mut open.header, known, open.longest, spacing)? {
        return Ok(Placed::Kept);
    }
    place_all(&mut open.header, open.longest, spacing)?;
    Ok(Placed::Moved)
}

/// Whether any rank has put elements into the file. Collective.
fn touched(shared: &Shared) -> Result<bool> {
    let mut touched = [u64::from(shared.touched.load(Ordering::Acquire))];
    shared.comm.all_reduce(&mut touched, Reduce::Max)?;
    Ok(touched != [0])
}

/// Takes the elements, the last of which was before byte `end`, where the new header says, and makes the file long enough.
fn move_elements(
    shared: &Shared,
    state: &mut Option<Open>,
    (placed, end): (Result<Placed>, u64),
    old: impl FnOnce(&Open) -> Header,
) -> Result<()> {
    let comm = &*shared.comm;
    let placed = agree(comm, placed)?;
    let open = state.as_mut().ok_or_else(|| Shared::closed_error("define"))?;
    if placed == Placed::Kept {
        return shared.on_root(|| open.lengthen(end));
    }
    let old = old(open);
    shared.on_root(|| {
        relocate(&shared.path, &open.file, &shared.staging, (&old, &open.header), open.durable)?;
        open.stored = encode(&open.header);
        Ok(())
    })?;
    (open.changed, open.named) = (false, false);
    // Failing here leaves a rank without the file: the container can only be closed, on every rank.
    let reopened = agree(comm, shared.open_file().map(|file| open.file = file));
    if reopened.is_err() {
        state.take();
    }
    reopened
}

/// Defines a new array; returns its number. Its elements, and those of records that it adds, are zeros.
pub(crate) fn define_array(shared: &Shared, name: &str, spec: &ArraySpec) -> Result<usize> {
    // Held throughout, so that no transfer of this rank begins between asking whether there was one and moving elements.
    let mut state = shared.write();
    let judge = |open: &Open| {
        names::check_name(name)?;
        check_free(open, name)?;
        let wanted = arrays::variable_for(&open.header, name, spec)?;
        check_shared_records(&open.header, &wanted, spec)?;
        Ok(wanted)
    };
    let wanted = agree(&*shared.comm, shared.writable(&mut state, "create").and_then(|open| judge(open)))?;
    let touched = touched(shared)?;
    let open = shared.writable(&mut state, "create")?;
    let before = Before::of(open);
    let number = before.variables;
    add(open, wanted, spec);
    let placed = place(open, shared, number, touched);
    let old = |open: &Open| {
        let mut header = open.header.clone();
        header.dimensions.truncate(before.dimensions);
        header.variables.truncate(before.variables);
        header.records = before.records;
        before.put_begins(&mut header);
        header
    };
    let moved = move_elements(shared, &mut state, (placed, before.end), old);
    if moved.is_err()
        && let Some(open) = state.as_mut()
    {
        before.restore(open);
    }
    moved.map(|()| number)
}

fn add(open: &mut Open, wanted: Wanted, spec: &ArraySpec) {
    let Wanted { dimensions, variable, array } = wanted;
    open.header.dimensions.extend(dimensions);
    if open.header.has_records(&variable) {
        open.header.records = spec.shape[0];
    }
    open.by_name.insert(array.name.clone(), open.arrays.len());
    open.header.variables.push(variable);
    open.arrays.push(array);
    open.changed = true;
}

/// Refuses names that others have, or that lie in an array or above one.
fn check_free(open: &Open, name: &str) -> Result<()> {
    let exists = |message: &str| Err(Error::new(ErrorKind::AlreadyExists, "create", message));
    if open.by_name.contains_key(name) {
        return exists("an array of this name exists");
    }
    if let Some((at, _)) = name.match_indices('/').find(|(at, _)| open.by_name.contains_key(&name[..*at])) {
        return Err(Error::invalid("create", format!("{:?} is an array, not a group", &name[..at])));
    }
    let inside = format!("{name}/");
    let after = open.by_name.range(inside.clone()..).next();
    if after.is_some_and(|(other, _)| other.starts_with(&inside)) {
        return exists("a group of this name exists");
    }
    Ok(())
}

/// Refuses an array with another number of records than the others have.
fn check_shared_records(header: &Header, wanted: &Wanted, spec: &ArraySpec) -> Result<()> {
    let first = wanted.variable.dimensions.first();
    let grows = first.and_then(|first| header.dimensions.get(*first)).is_some_and(|dimension| dimension.len == 0);
    let shares = grows && header.record_variables().next().is_some();
    if shares && spec.shape[0] != header.records {
        let message = format!(
            "a classic NetCDF file has one dimension that grows, of {} records now, not {}",
            header.records, spec.shape[0]
        );
        return Err(Error::unsupported("create", message)
            .hint("create arrays that grow with equal extents before they grow, or use hdf5 or zarr"));
    }
    Ok(())
}

/// The attributes of the file or of an array.
fn attributes_mut(header: &mut Header, owner: Owner) -> &mut Vec<CdfAttribute> {
    match owner {
        Owner::File => &mut header.attributes,
        Owner::Array(number) => &mut header.variables[number].attributes,
    }
}

/// Sets an attribute, which `judge` makes from what is there.
pub(crate) fn define_attribute(
    shared: &Shared,
    judge: impl FnOnce(&Open) -> Result<(Owner, CdfAttribute)>,
) -> Result<()> {
    let mut state = shared.write();
    let judged = shared.writable(&mut state, "set attribute").and_then(|open| judge(open));
    let (owner, value) = agree(&*shared.comm, judged)?;
    let touched = touched(shared)?;
    let open = shared.writable(&mut state, "set attribute")?;
    let before = Before::of(open);
    let name = value.name.clone();
    let all = attributes_mut(&mut open.header, owner);
    let at = all.iter().position(|attribute| attribute.name == name);
    let replaced = match at {
        Some(at) => Some(std::mem::replace(&mut all[at], value)),
        None => {
            all.push(value);
            None
        }
    };
    open.changed = true;
    let placed = place(open, shared, before.variables, touched);
    let old = |open: &Open| {
        let mut header = open.header.clone();
        before.put_begins(&mut header);
        header
    };
    let moved = move_elements(shared, &mut state, (placed, before.end), old);
    if moved.is_err()
        && let Some(open) = state.as_mut()
    {
        let all = attributes_mut(&mut open.header, owner);
        match (at, replaced) {
            (Some(at), Some(replaced)) => all[at] = replaced,
            _ => drop(all.pop()),
        }
        before.restore(open);
    }
    moved
}

/// Changes the number of records. Refuses to cut those of several arrays at once.
pub(crate) fn define_records(shared: &Shared, records: u64) -> Result<()> {
    let now = shared.with("resize", |open| Ok(open.header.records))?;
    let change = |records: u64| {
        shared.with_mut("resize", |open| {
            open.header.records = records;
            open.changed = true;
            Ok(())
        })
    };
    // What a header promises must be there: it shrinks before the file and grows after it.
    shared.on_root(|| {
        let file_len = |records: u64| {
            shared.with("resize", |open| {
                let header = Header { records, ..open.header.clone() };
                open.file.set_len(header.end().max(open.stored.len() as u64))
            })
        };
        if records < now {
            change(records)?;
            shared.store_header()?;
            return file_len(records);
        }
        // A shrink that was interrupted may have left old elements beyond the end.
        file_len(now)?;
        file_len(records)?;
        change(records)?;
        shared.store_header()
    })?;
    if !shared.is_root() {
        change(records)?;
    }
    shared.touched.store(true, Ordering::Release);
    agree(&*shared.comm, Ok(()))
}

/// Refuses a number of records that the file cannot have.
pub(crate) fn check_records(open: &Open, records: u64) -> Result<()> {
    if records < open.header.records && open.header.record_variables().count() > 1 {
        return Err(Error::unsupported(
            "resize",
            "arrays of a classic NetCDF file share their records: cutting them would cut those of the others too",
        )
        .hint("copy the arrays that are to stay to another file"));
    }
    super::layout::check_records(&open.header, records)?;
    check(&open.header)
}
