//! What two containers hold, compared object by object and element by element.

use crate::terminal::plain;
use anyhow::Result;
use hyperslab_comm::Solo;
use hyperslab_core::{Array, Container, MemoryViewMut, OpenMode, Selection, Stack, TransferMode, dims};
use std::collections::BTreeSet;
use std::path::Path;

/// Bytes of elements that are read of each at a time.
const AT_A_TIME: u64 = 8 << 20;

/// What was compared, and what is not the same.
#[derive(Debug, Default)]
pub struct Contents {
    /// Arrays whose elements were compared.
    pub arrays: usize,
    /// Bytes of their elements.
    pub bytes: u64,
    /// What differs, in words.
    pub differences: Vec<String>,
    /// What cannot be compared, and why.
    pub left_out: Vec<String>,
}

/// Two containers that should hold the same.
struct Pair<'a> {
    a: &'a dyn Container,
    b: &'a dyn Container,
    /// The name that both have for the user.
    name: &'a str,
}

impl Contents {
    /// Compares two containers of a stack, which the user knows as `name`.
    pub fn compare(&mut self, stack: &Stack, [a, b]: [&Path; 2], name: &str) -> Result<()> {
        let format = hyperslab_run::open_stack(stack)?;
        let a = format.open(a, OpenMode::Read, &Solo::shared())?;
        let b = format.open(b, OpenMode::Read, &Solo::shared())?;
        self.containers(&Pair { a: &*a, b: &*b, name })?;
        a.close()?;
        b.close()?;
        Ok(())
    }

    fn differs(&mut self, pair: &Pair<'_>, what: &str) {
        self.differences.push(plain(&format!("{}: {what}", pair.name)));
    }

    fn leave_out(&mut self, pair: &Pair<'_>, what: &str, why: impl std::fmt::Display) {
        let why = why.to_string().lines().next().unwrap_or_default().to_owned();
        self.left_out.push(plain(&format!("{}: {what}: {why}", pair.name)));
    }

    fn containers(&mut self, pair: &Pair<'_>) -> Result<()> {
        self.attributes(pair, "");
        for group in self.common(pair, "group", pair.a.groups()?, pair.b.groups()?) {
            self.attributes(pair, &group);
        }
        for array in self.common(pair, "array", pair.a.arrays()?, pair.b.arrays()?) {
            self.attributes(pair, &array);
            self.array(pair, &array)?;
        }
        Ok(())
    }

    /// The names that both have; others are differences.
    fn common(&mut self, pair: &Pair<'_>, kind: &str, a: Vec<String>, b: Vec<String>) -> Vec<String> {
        let (a, b): (BTreeSet<_>, BTreeSet<_>) = (a.into_iter().collect(), b.into_iter().collect());
        for (names, side) in [(a.difference(&b), "without"), (b.difference(&a), "with")] {
            names.for_each(|name| self.differs(pair, &format!("{kind} {name} is there only {side} the connector")));
        }
        a.intersection(&b).cloned().collect()
    }

    fn attributes(&mut self, pair: &Pair<'_>, object: &str) {
        let of = if object.is_empty() { String::new() } else { format!(" of {object}") };
        let (a, b) = match (pair.a.attributes(object), pair.b.attributes(object)) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(error), _) | (_, Err(error)) => return self.leave_out(pair, &format!("attributes{of}"), error),
        };
        for name in self.common(pair, &format!("attribute{of}"), a, b) {
            match (pair.a.attribute(object, &name), pair.b.attribute(object, &name)) {
                (Ok(a), Ok(b)) if a.dtype == b.dtype && a.shape == b.shape && a.data == b.data => {}
                (Ok(_), Ok(_)) => self.differs(pair, &format!("attribute {name}{of} has another value")),
                (Err(error), _) | (_, Err(error)) => self.leave_out(pair, &format!("attribute {name}{of}"), error),
            }
        }
    }

    fn array(&mut self, pair: &Pair<'_>, name: &str) -> Result<()> {
        let (a, b) = match (pair.a.array(name), pair.b.array(name)) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(error), _) | (_, Err(error)) => {
                self.leave_out(pair, name, error);
                return Ok(());
            }
        };
        let (of_a, of_b) = (a.spec()?, b.spec()?);
        if of_a != of_b {
            self.differs(pair, &format!("{name}: type, shape or storage differ"));
        } else {
            let all = Selection::all(&of_a.shape)?;
            let most = (AT_A_TIME / of_a.dtype.size().max(1)).max(1);
            let (mut unequal, mut first) = (0u64, None);
            let read = all.for_each_part(most, &mut |part| {
                let (number, place) = unequal_elements([&*a, &*b], part, &of_a.shape, of_a.dtype.size())?;
                unequal += number;
                first = first.take().or(place);
                Ok(())
            });
            match (read, first) {
                (Err(error), _) => self.leave_out(pair, name, error),
                (Ok(()), None) => {
                    self.arrays += 1;
                    self.bytes += all.len() * of_a.dtype.size();
                }
                (Ok(()), Some(place)) => {
                    let all = all.len();
                    self.differs(pair, &format!("{name}: {unequal} of {all} elements differ, the first at {place}"));
                }
            }
        }
        a.close()?;
        b.close()?;
        Ok(())
    }
}

/// How many elements of a part differ, and where the first is.
fn unequal_elements(
    arrays: [&dyn Array; 2],
    part: &Selection,
    shape: &[u64],
    element: u64,
) -> hyperslab_core::Result<(u64, Option<String>)> {
    let bytes = usize::try_from(part.len() * element).unwrap_or(usize::MAX);
    let mut read = [vec![0u8; bytes], vec![0u8; bytes]];
    for (array, data) in arrays.iter().zip(&mut read) {
        array.read(part, MemoryViewMut::packed(data), TransferMode::Independent)?;
    }
    let [a, b] = &read;
    if a == b {
        return Ok((0, None));
    }
    let size = element as usize;
    let unequal: Vec<usize> =
        a.chunks(size).zip(b.chunks(size)).enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
    let mut left = unequal.first().copied().unwrap_or_default() as u64;
    for run in part.runs(shape, 1)? {
        if left < run.len {
            return Ok((unequal.len() as u64, Some(dims::display(&coordinates(run.offset + left, shape)))));
        }
        left -= run.len;
    }
    Ok((unequal.len() as u64, Some("an unknown place".into())))
}

fn coordinates(mut linear: u64, shape: &[u64]) -> Vec<u64> {
    let mut place = vec![0; shape.len()];
    for (at, extent) in place.iter_mut().zip(shape).rev() {
        (*at, linear) = (linear % extent.max(&1), linear / extent.max(&1));
    }
    place
}
