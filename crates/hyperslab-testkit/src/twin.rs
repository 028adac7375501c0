//! One array in the format under test and its twin in the oracle, kept in step and compared.

use crate::memory::elements::places;
use crate::sample::{Noise, element, meaningful};
use hyperslab_core::{
    Array, ArraySpec, Container, Datatype, MemoryLayout, MemoryView, MemoryViewMut, Result, Selection, TransferMode,
};
use libtest_mimic::Failed;
use std::sync::Arc;

/// An array under test and the same array in [`crate::Memory`].
#[derive(Debug, Clone)]
pub struct Twin {
    /// In the format under test.
    pub subject: Arc<dyn Array>,
    /// In the oracle.
    pub oracle: Arc<dyn Array>,
    /// Type of one element.
    pub dtype: Datatype,
}

/// The buffer a program would hold for `layout`: valid elements where elements are, noise elsewhere.
pub fn buffer(dtype: &Datatype, layout: &MemoryLayout, elements: u64, seed: u64) -> Result<Vec<u8>> {
    let mut data = Noise::bytes(seed, layout.buffer_len(dtype, elements)? as usize);
    for (i, members) in places(layout, dtype, elements as usize).into_iter().enumerate() {
        let value = element(dtype, seed.wrapping_add(i as u64));
        for member in members {
            data[member.memory..][..member.len].copy_from_slice(&value[member.element..][..member.len]);
        }
    }
    Ok(data)
}

/// Bytes of a buffer that a read may leave as they are or not: padding inside transferred compounds.
fn undefined(dtype: &Datatype, layout: &MemoryLayout, elements: u64, len: usize) -> Vec<bool> {
    let counts = meaningful(dtype);
    let mut out = vec![false; len];
    for member in places(layout, dtype, elements as usize).into_iter().flatten() {
        for byte in 0..member.len {
            out[member.memory + byte] = !counts[member.element + byte];
        }
    }
    out
}

impl Twin {
    /// Creates the array on both sides. The oracle keeps no filters, so they are not asked of it.
    pub fn create(
        subject: &Arc<dyn Container>,
        oracle: &Arc<dyn Container>,
        name: &str,
        spec: &ArraySpec,
    ) -> Result<Self> {
        let subject = subject.create(name, spec)?;
        let oracle = oracle.create(name, &ArraySpec { filters: Vec::new(), ..spec.clone() })?;
        Ok(Self { subject, oracle, dtype: spec.dtype.clone() })
    }

    /// Opens the array on both sides.
    pub fn open(subject: &Arc<dyn Container>, oracle: &Arc<dyn Container>, name: &str) -> Result<Self> {
        let oracle = oracle.array(name)?;
        let dtype = oracle.spec()?.dtype;
        Ok(Self { subject: subject.array(name)?, oracle, dtype })
    }

    /// Writes the same buffer on both sides.
    pub fn write(&self, selection: &Selection, layout: &MemoryLayout, seed: u64) -> Result<()> {
        let data = buffer(&self.dtype, layout, selection.len(), seed)?;
        let view = MemoryView { data: &data, layout };
        self.subject.write(selection, view, TransferMode::Independent)?;
        self.oracle.write(selection, view, TransferMode::Independent)
    }

    /// Reads on both sides and compares every byte of both buffers, those outside the selection included.
    pub fn compare(&self, selection: &Selection, layout: &MemoryLayout, what: &str) -> Result<(), Failed> {
        let len = layout.buffer_len(&self.dtype, selection.len())? as usize;
        let before = Noise::bytes(0xFEED, len);
        let (mut ours, mut theirs) = (before.clone(), before.clone());
        let view = |data| MemoryViewMut { data, layout };
        self.subject
            .read(selection, view(&mut ours), TransferMode::Independent)
            .map_err(|error| format!("{what}: read failed: {error:?}"))?;
        self.oracle.read(selection, view(&mut theirs), TransferMode::Independent)?;
        let ignore = undefined(&self.dtype, layout, selection.len(), len);
        let differs = |i: &usize| ours[*i] != theirs[*i] && !ignore[*i];
        match (0..len).find(differs) {
            None => Ok(()),
            Some(at) => Err(format!(
                "{what}: {} of {len} bytes differ, the first at {at}: read {:#04x}, expected {:#04x} ({})",
                (0..len).filter(differs).count(),
                ours[at],
                theirs[at],
                if theirs[at] == before[at] {
                    "the byte should not have been touched, or not have changed"
                } else {
                    "data"
                },
            )
            .into()),
        }
    }

    /// Compares the whole arrays.
    pub fn compare_all(&self, what: &str) -> Result<(), Failed> {
        let shape = self.oracle.spec()?.shape;
        let found = self.subject.spec()?.shape;
        if found != shape {
            return Err(format!("{what}: the shape is {found:?}, expected {shape:?}").into());
        }
        self.compare(&Selection::all(&shape)?, &MemoryLayout::packed(), what)
    }
}
