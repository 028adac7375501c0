//! Compounds, field by field.

use super::numbers::Numbers;
use hyperslab_core::{Datatype, Error, Result};

/// Elements that are converted at a time.
const BLOCK: usize = 512;
/// Bytes of the largest number.
const LARGEST: usize = 8;

/// What is done to one field, or to bytes of several that stay as they are.
#[derive(Debug, Clone)]
struct Step {
    from: usize,
    to: usize,
    how: How,
}

#[derive(Debug, Clone)]
enum How {
    /// Bytes are copied.
    Copy(usize),
    Convert(Numbers),
}

/// The fields that two compounds have in common.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    from_size: usize,
    to_size: usize,
    steps: Vec<Step>,
}

impl Fields {
    /// Refuses fields of the same name that cannot be converted, and compounds without a common field.
    pub fn new(from: &Datatype, to: &Datatype) -> Result<Self> {
        let mut fields = Self { from_size: from.size() as usize, to_size: to.size() as usize, steps: Vec::new() };
        fields.add(from, 0, to, 0)?;
        match fields.steps.is_empty() {
            true => Err(Error::unsupported("convert", format!("{from} and {to} have no field in common"))),
            false => Ok(fields),
        }
    }

    fn add(&mut self, from: &Datatype, from_at: u64, to: &Datatype, to_at: u64) -> Result<()> {
        for target in to.fields() {
            let Some(source) = from.field(&target.name) else { continue };
            let (from_at, to_at) = (from_at + source.offset, to_at + target.offset);
            let how = match (&source.dtype, &target.dtype) {
                (from @ Datatype::Compound(_), to @ Datatype::Compound(_)) if from != to => {
                    self.add(from, from_at, to, to_at)?;
                    continue;
                }
                (from, to) if from == to => How::Copy(from.size() as usize),
                (from, to) => How::Convert(Numbers::new(from, to).ok_or_else(|| {
                    Error::unsupported("convert", format!("field {:?} from {from} to {to}", target.name))
                })?),
            };
            self.push(Step { from: from_at as usize, to: to_at as usize, how });
        }
        Ok(())
    }

    /// Adds a step; bytes that follow those copied before, on both sides, are copied with them.
    fn push(&mut self, step: Step) {
        if let (Some(Step { from, to, how: How::Copy(len) }), How::Copy(more)) = (self.steps.last_mut(), &step.how)
            && *from + *len == step.from
            && *to + *len == step.to
        {
            *len += more;
            return;
        }
        self.steps.push(step);
    }

    pub fn depends_on_library(&self) -> bool {
        self.steps.iter().any(|step| matches!(&step.how, How::Convert(numbers) if numbers.depends_on_library()))
    }

    /// Converts as many elements as both slices hold. Bytes of the target that no common field has stay as they are.
    pub fn convert(&self, from: &[u8], to: &mut [u8]) {
        let blocks = from.chunks(BLOCK * self.from_size).zip(to.chunks_mut(BLOCK * self.to_size));
        for (from, to) in blocks {
            for step in &self.steps {
                match &step.how {
                    How::Copy(len) => self.copy(step, *len, from, to),
                    How::Convert(numbers) => self.convert_field(step, numbers, from, to),
                }
            }
        }
    }

    fn copy(&self, step: &Step, len: usize, from: &[u8], to: &mut [u8]) {
        let elements = from.chunks_exact(self.from_size).zip(to.chunks_exact_mut(self.to_size));
        for (from, to) in elements {
            to[step.to..step.to + len].copy_from_slice(&from[step.from..step.from + len]);
        }
    }

    fn convert_field(&self, step: &Step, numbers: &Numbers, from: &[u8], to: &mut [u8]) {
        let (mut packed, mut converted) = ([0; BLOCK * LARGEST], [0; BLOCK * LARGEST]);
        let count = (from.len() / self.from_size).min(to.len() / self.to_size);
        let (before, after) = numbers.sizes();
        let packed = &mut packed[..count * before];
        let converted = &mut converted[..count * after];
        match before {
            1 => gather::<1>(from, self.from_size, step.from, packed),
            2 => gather::<2>(from, self.from_size, step.from, packed),
            4 => gather::<4>(from, self.from_size, step.from, packed),
            _ => gather::<8>(from, self.from_size, step.from, packed),
        }
        numbers.convert(packed, converted);
        match after {
            1 => scatter::<1>(converted, to, self.to_size, step.to),
            2 => scatter::<2>(converted, to, self.to_size, step.to),
            4 => scatter::<4>(converted, to, self.to_size, step.to),
            _ => scatter::<8>(converted, to, self.to_size, step.to),
        }
    }
}

/// Takes `N` bytes at `at` of each element.
fn gather<const N: usize>(from: &[u8], stride: usize, at: usize, packed: &mut [u8]) {
    for (element, to) in from.chunks_exact(stride).zip(packed.as_chunks_mut::<N>().0) {
        to.copy_from_slice(&element[at..at + N]);
    }
}

/// Puts `N` bytes at `at` of each element.
fn scatter<const N: usize>(packed: &[u8], to: &mut [u8], stride: usize, at: usize) {
    for (from, element) in packed.as_chunks::<N>().0.iter().zip(to.chunks_exact_mut(stride)) {
        element[at..at + N].copy_from_slice(from);
    }
}
