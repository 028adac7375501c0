//! What two containers hold, compared object by object and element by element.

use crate::terminal::plain;
use anyhow::Result;
use hyperslab_comm::Solo;
use hyperslab_core::{Array, Container, Error, MemoryViewMut, OpenMode, Selection, Stack, TransferMode, dims};
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
    /// Compares two containers of a stack, which the user knows as `name`. What can be read on one side only is a difference;
    /// an error is what neither can be opened for.
    pub fn compare(&mut self, stack: &Stack, paths: [&Path; 2], name: &str) -> Result<()> {
        let format = hyperslab_run::open_stack(stack)?;
        let (a, b) = match <(_, _)>::from(paths.map(|path| format.open(path, OpenMode::Read, &Solo::shared()))) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(why), Err(_)) => return Err(why.into()),
            (a, b) => {
                self.differences.push(plain(&format!("{name}: {}", readable_once(a.err(), b.err()))));
                return Ok(());
            }
        };
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

    /// What both sides answer. What one side alone fails in is a difference, what both fail in is left out.
    fn both<T>(
        &mut self,
        pair: &Pair<'_>,
        what: &str,
        a: hyperslab_core::Result<T>,
        b: hyperslab_core::Result<T>,
    ) -> Option<(T, T)> {
        match (a, b) {
            (Ok(a), Ok(b)) => return Some((a, b)),
            (Err(why), Err(_)) => self.leave_out(pair, what, why),
            (a, b) => self.differs(pair, &format!("{what}: {}", readable_once(a.err(), b.err()))),
        }
        None
    }

    fn containers(&mut self, pair: &Pair<'_>) -> Result<()> {
        self.attributes(pair, "");
        if let Some((a, b)) = self.both(pair, "groups", pair.a.groups(), pair.b.groups()) {
            for group in self.common(pair, "group", a, b) {
                self.attributes(pair, &group);
            }
        }
        if let Some((a, b)) = self.both(pair, "arrays", pair.a.arrays(), pair.b.arrays()) {
            for array in self.common(pair, "array", a, b) {
                self.attributes(pair, &array);
                self.array(pair, &array)?;
            }
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
        let names = self.both(pair, &format!("attributes{of}"), pair.a.attributes(object), pair.b.attributes(object));
        let Some((a, b)) = names else { return };
        for name in self.common(pair, &format!("attribute{of}"), a, b) {
            let what = format!("attribute {name}{of}");
            let values = (pair.a.attribute(object, &name), pair.b.attribute(object, &name));
            if let Some((a, b)) = self.both(pair, &what, values.0, values.1)
                && (a.dtype != b.dtype || a.shape != b.shape || a.data != b.data)
            {
                self.differs(pair, &format!("{what} has another value"));
            }
        }
    }

    fn array(&mut self, pair: &Pair<'_>, name: &str) -> Result<()> {
        let Some((a, b)) = self.both(pair, name, pair.a.array(name), pair.b.array(name)) else { return Ok(()) };
        let Some((of_a, of_b)) = self.both(pair, name, a.spec(), b.spec()) else { return Ok(()) };
        if of_a != of_b {
            self.differs(pair, &format!("{name}: type, shape or storage differ"));
        } else {
            let all = Selection::all(&of_a.shape)?;
            let most = (AT_A_TIME / of_a.dtype.size().max(1)).max(1);
            let (mut unequal, mut first, mut once) = (0u64, None, None);
            let read =
                all.for_each_part(most, &mut |part| match <(_, _)>::from(parts([&*a, &*b], part, of_a.dtype.size())) {
                    (Ok(a), Ok(b)) => {
                        let (number, place) = unequal_elements([&a, &b], part, &of_a.shape, of_a.dtype.size())?;
                        unequal += number;
                        first = first.take().or(place);
                        Ok(())
                    }
                    (Err(why), Err(_)) => Err(why),
                    (a, b) => {
                        once = once.take().or(Some(readable_once(a.err(), b.err())));
                        Ok(())
                    }
                });
            match (read, once, first) {
                (_, Some(words), _) => self.differs(pair, &format!("{name}: {words}")),
                (Err(error), ..) => self.leave_out(pair, name, error),
                (Ok(()), None, None) => {
                    self.arrays += 1;
                    self.bytes += all.len() * of_a.dtype.size();
                }
                (Ok(()), None, Some(place)) => {
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

/// That only one side can be read, and why the other cannot.
fn readable_once(without: Option<Error>, with: Option<Error>) -> String {
    let (side, why) = if without.is_some() { ("with", without) } else { ("without", with) };
    let why = why.map(|error| error.to_string()).unwrap_or_default();
    format!("can be read only {side} the connector: {}", why.lines().next().unwrap_or_default())
}

/// The same elements of both.
fn parts(arrays: [&dyn Array; 2], part: &Selection, element: u64) -> [hyperslab_core::Result<Vec<u8>>; 2] {
    let bytes = usize::try_from(part.len() * element).unwrap_or(usize::MAX);
    arrays.map(|array| {
        let mut data = vec![0u8; bytes];
        array.read(part, MemoryViewMut::packed(&mut data), TransferMode::Independent)?;
        Ok(data)
    })
}

/// How many elements of a part differ, and where the first is.
fn unequal_elements(
    [a, b]: [&[u8]; 2],
    part: &Selection,
    shape: &[u64],
    element: u64,
) -> hyperslab_core::Result<(u64, Option<String>)> {
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
