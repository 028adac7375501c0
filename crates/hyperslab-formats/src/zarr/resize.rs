//! Changing the shape of an array.
//!
//! Whatever a shrunk array loses is gone: files outside the new shape are removed and files cut by it are cleared
//! beyond it, so that growing again finds the fill value there. Files are cleared before the metadata changes: an
//! interruption leaves the old shape with some of the elements to be dropped already at the fill value, never old
//! elements that come back. Arrays that others have shrunk without clearing are cleared when they grow.

use super::array_metadata;
use super::array_state::{ArrayState, Current};
use super::atomic_files::AtomicFiles;
use super::nodes;
use super::region::{self, Region};
use super::store_dir;
use hyperslab_core::{Datatype, Dims, Error, ErrorKind, Result, Strings, dims};
use serde_json::json;

/// Refuses shapes that the array cannot take.
pub fn check(current: &Current, shape: &[u64]) -> Result<()> {
    let layout = &current.layout;
    if shape.len() != layout.shape.len() {
        return Err(Error::invalid(
            "resize",
            format!("{} has {} dimensions, the array {}", dims::display(shape), shape.len(), layout.shape.len()),
        ));
    }
    dims::byte_count(shape, layout.dtype.size())?;
    if shape == layout.shape.as_slice() {
        return Ok(());
    }
    let Some(max) = &layout.max_shape else {
        return Err(
            Error::invalid("resize", "the array was created with a fixed shape").hint("create it with a maximum shape")
        );
    };
    if max.iter().zip(shape).any(|(max, extent)| max.is_some_and(|max| *extent > max)) {
        return Err(Error::invalid("resize", format!("{} exceeds the maximum shape", dims::display(shape))));
    }
    Ok(())
}

/// Gives the array its new shape, on disk and for everyone in this process.
pub fn apply(state: &ArrayState, files: &AtomicFiles, shape: &[u64]) -> Result<()> {
    let mut current = state.changing();
    check(&current, shape)?;
    let keep: Dims = current.layout.shape.iter().zip(shape).map(|(old, new)| *old.min(new)).collect();
    let shrinks = keep != current.layout.shape;
    if shrinks || !current.clean_beyond {
        clear_beyond(state, &current, files, &keep)?;
    }
    let mut layout = current.layout.clone();
    layout.shape = shape.into();
    {
        let _changing = nodes::change_metadata();
        let directory = current.chunks.directory();
        let gone = || Error::new(ErrorKind::NotFound, "resize", "the array's metadata is gone");
        let mut node = nodes::read(directory)?.ok_or_else(gone)?;
        array_metadata::read(node.version, &node.document, &node.attributes)?;
        let object = node.document.as_object_mut().ok_or_else(gone)?;
        object.insert("shape".into(), json!(shape));
        nodes::write(files, directory, &node)?;
        nodes::drop_consolidated(files, &state.name)?;
    }
    current.layout = layout;
    current.clean_beyond = true;
    Ok(())
}

/// Removes and clears what lies outside `keep`. Looks at the files that exist, not at the chunks that could.
fn clear_beyond(state: &ArrayState, current: &Current, files: &AtomicFiles, keep: &[u64]) -> Result<()> {
    let Current { layout, chunks, .. } = current;
    let everything = Region::all(&layout.file);
    for path in store_dir::regular_files(chunks.directory())? {
        let name = path.strip_prefix(chunks.directory()).ok().and_then(|name| name.to_str());
        let Some(index) = name.and_then(|name| layout.keys.parse(name, keep.len())) else { continue };
        // How much of the file stays, in each dimension.
        let stays: Dims = (0..keep.len())
            .map(|d| keep[d].saturating_sub(index[d].saturating_mul(layout.file[d])).min(layout.file[d]))
            .collect();
        if stays == layout.file {
            continue;
        }
        let _lock = state.identity.writing(&index);
        if stays.contains(&0) {
            files.remove(&path)?;
            continue;
        }
        if layout.dtype == Datatype::VariableString {
            clear_strings(current, files, &index, &stays)?;
            continue;
        }
        let Some(loaded) = chunks.load(layout, &index, &everything)? else { continue };
        let element = layout.dtype.size() as usize;
        let mut cleared = region::filled(layout.file_bytes(), &layout.fill);
        let zeros = Dims::from_elem(0, keep.len());
        let place = region::BoxInBuffer { shape: &layout.file, start: &zeros };
        region::copy_box(&loaded.data, place, &mut cleared, place, &stays, element);
        if cleared != loaded.data {
            chunks.store(files, layout, &index, &cleared, &everything, None)?;
        }
    }
    Ok(())
}

/// Clears the strings of a chunk beyond the box `stays`. The caller holds its lock.
fn clear_strings(current: &Current, files: &AtomicFiles, index: &[u64], stays: &[u64]) -> Result<()> {
    let Current { layout, chunks, .. } = current;
    let Some(strings) = chunks.load_strings(layout, index)? else { return Ok(()) };
    let mut cleared = Strings::new();
    let everything = Region::all(&layout.file);
    let mut all = strings.iter();
    region::for_each_index(&everything, |at| {
        let text = all.next().unwrap_or_default();
        let kept = at.iter().zip(stays).all(|(at, end)| at < end);
        cleared.push(if kept { text } else { &layout.fill });
        Ok::<_, Error>(())
    })?;
    chunks.store_strings(files, layout, index, &cleared)
}
