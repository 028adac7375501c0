//! Collective transfers. Every rank makes exactly one collective call of libhdf5, whatever its memory layout, even if
//! it has nothing to transfer or its arguments are invalid: no rank blocks for ever.

use super::collective_stats::{Collective, Direction};
use super::library;
use super::transfer::{Buffer, Call, PACKED, Request, Route, prepare, read_route, route, run};
use hyperslab_core::{Gather, MemoryView, MemoryViewMut, Result, Scatter, Selection};
use std::borrow::Cow;

/// Writes the selected elements.
pub(super) fn write(
    request: Request<'_>,
    collective: &Collective,
    selection: &Selection,
    memory: MemoryView<'_>,
) -> Result<()> {
    library::with(|| match outgoing(request, selection, memory) {
        Ok(Some((call, bytes))) => perform(request, collective, &call, Buffer::From(bytes.as_ptr())),
        Ok(None) => join(request, collective, Direction::Write),
        Err(error) => {
            let _ = join(request, collective, Direction::Write); // the first error is the cause
            Err(error)
        }
    })
}

/// Reads the selected elements. Bytes of memory that no element or member covers stay as they are.
pub(super) fn read(
    request: Request<'_>,
    collective: &Collective,
    selection: &Selection,
    memory: MemoryViewMut<'_>,
) -> Result<()> {
    library::with(|| match incoming(request, selection, &memory) {
        Ok(Some((call, ReadTarget::Memory(skip)))) => {
            perform(request, collective, &call, Buffer::To(memory.data[skip..].as_mut_ptr()))
        }
        Ok(Some((call, ReadTarget::Packed(mut packed)))) => {
            perform(request, collective, &call, Buffer::To(packed.as_mut_ptr()))?;
            Scatter::new(memory, &request.stored.dtype, selection.len())?.next_from(&packed);
            Ok(())
        }
        Ok(None) => join(request, collective, Direction::Read),
        Err(error) => {
            let _ = join(request, collective, Direction::Read); // the first error is the cause
            Err(error)
        }
    })
}

/// Takes part without elements.
fn join(request: Request<'_>, collective: &Collective, direction: Direction) -> Result<()> {
    let mut nowhere = [0u8; 1];
    let buffer = match direction {
        Direction::Write => Buffer::From(nowhere.as_ptr()),
        Direction::Read => Buffer::To(nowhere.as_mut_ptr()),
    };
    perform(request, collective, &Call::of_nothing(request, collective.nothing())?, buffer)
}

fn perform(request: Request<'_>, collective: &Collective, call: &Call, buffer: Buffer) -> Result<()> {
    call.perform(request, collective.list().raw(), buffer)?;
    collective.note(match buffer {
        Buffer::From(_) => Direction::Write,
        Buffer::To(_) => Direction::Read,
    })
}

/// Describes this rank's write as one call; `None` if it has no elements.
fn outgoing<'a>(
    request: Request<'_>,
    selection: &Selection,
    memory: MemoryView<'a>,
) -> Result<Option<(Call, Cow<'a, [u8]>)>> {
    let dtype = &request.stored.dtype;
    let (space, shape) = request.file_space()?;
    selection.check_inside(&shape)?;
    memory.check(dtype, selection.len())?;
    if selection.is_empty() {
        return Ok(None);
    }
    let whole = memory.layout.plan(dtype)?.covers_element();
    match route(request, selection.len(), memory.layout)? {
        // To convert structures, libhdf5 2.2 reads the file's elements by a collective call that ranks with other
        // memory layouts do not make. So they are gathered here.
        Route::Direct(lies) if whole && lies.element.is_none() => {
            let bytes = &memory.data[lies.skip..];
            Ok(Some((prepare(request, selection, space, &shape, lies)?, Cow::Borrowed(bytes))))
        }
        _ => {
            let mut packed = vec![0; (selection.len() * dtype.size()) as usize];
            if !whole {
                run(request, selection, space.clone(), &shape, PACKED, Buffer::To(packed.as_mut_ptr()))?;
            }
            Gather::new(memory, dtype, selection.len())?.next_into(&mut packed);
            Ok(Some((prepare(request, selection, space, &shape, PACKED)?, Cow::Owned(packed))))
        }
    }
}

/// Destination of a read.
enum ReadTarget {
    /// The caller's memory, from this byte on.
    Memory(usize),
    /// A packed buffer, to be scattered afterwards.
    Packed(Vec<u8>),
}

/// Describes this rank's read as one call; `None` if it has no elements.
fn incoming(
    request: Request<'_>,
    selection: &Selection,
    memory: &MemoryViewMut<'_>,
) -> Result<Option<(Call, ReadTarget)>> {
    let dtype = &request.stored.dtype;
    let (space, shape) = request.file_space()?;
    selection.check_inside(&shape)?;
    memory.check(dtype, selection.len())?;
    if selection.is_empty() {
        return Ok(None);
    }
    let (lies, place) = match read_route(request, selection.len(), memory.layout)? {
        Route::Direct(lies) => {
            let skip = lies.skip;
            (lies, ReadTarget::Memory(skip))
        }
        Route::Pieces => (PACKED, ReadTarget::Packed(vec![0; (selection.len() * dtype.size()) as usize])),
    };
    Ok(Some((prepare(request, selection, space, &shape, lies)?, place)))
}
