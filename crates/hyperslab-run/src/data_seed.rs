//! By which rule the data of a container are made: the seed, and who says it.

use crate::execute::RunContext;
use hyperslab_core::workload::{FileDeclaration, MIXED_SEEDS, PART_ATTRIBUTE, SEED_ATTRIBUTE, Update};
use hyperslab_core::{Attribute, Container, Datatype, Error, ErrorKind, Result};

/// What is known about the data of a file at its first opening in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataSeed {
    /// Seed of what is written, and of what is read unless `mixed`.
    pub seed: u64,
    /// Parts of the data were made with different seeds, or other parts were written than are read: nothing tells what a
    /// read must find.
    pub mixed: bool,
    /// It is to be overwritten, but held data of the same seed before.
    pub had_same_data: bool,
}

/// What a container says about itself.
enum Stated {
    Seed(u64),
    Mixed,
    Nothing,
}

impl DataSeed {
    /// Asks the container where the declaration alone does not tell. Not collective; not to be measured.
    pub fn of(context: &RunContext<'_>, declaration: &FileDeclaration, container: &dyn Container) -> Result<Self> {
        let seed = context.workload.header.seed;
        let told = declaration.unchecked.is_none();
        let own = Self { seed, mixed: !told, had_same_data: false };
        if declaration.created {
            return Ok(own);
        }
        match declaration.update {
            Some(Update::Overwrite) => {
                let same = context.verify && matches!(stated(container, declaration)?, Stated::Seed(s) if s == seed);
                Ok(Self { had_same_data: same, ..own })
            }
            // Without checking, nothing that is read needs a rule: a foreign file can be measured undisturbed.
            None if !context.verify || !told => Ok(own),
            None | Some(Update::Extend) => match stated(container, declaration)? {
                Stated::Seed(seed) => Ok(Self { seed, ..own }),
                Stated::Mixed => Ok(Self { mixed: true, ..own }),
                Stated::Nothing if context.verify && told => Err(Error::invalid(
                    "verify",
                    "the file was not written by hyperslab, so its data cannot be checked",
                )
                .hint("run without --verify")),
                Stated::Nothing => Ok(own),
            },
        }
    }
}

fn stated(container: &dyn Container, declaration: &FileDeclaration) -> Result<Stated> {
    if let Ok(written) = container.attribute("", PART_ATTRIBUTE)
        && written.as_text() != Some(&declaration.part)
    {
        return Ok(Stated::Mixed);
    }
    match container.attribute("", SEED_ATTRIBUTE) {
        Ok(attribute) => Ok(match integer(&attribute) {
            Some(MIXED_SEEDS) => Stated::Mixed,
            Some(seed) => Stated::Seed(seed as u64),
            None => Stated::Nothing,
        }),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported) => Ok(Stated::Nothing),
        Err(error) => Err(error),
    }
}

fn integer(attribute: &Attribute) -> Option<i64> {
    let scalar = attribute.dtype == Datatype::I64 && attribute.shape.is_empty();
    attribute.data.as_slice().try_into().ok().filter(|_| scalar).map(i64::from_ne_bytes)
}
