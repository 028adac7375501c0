//! What an open array must hold.

use hyperslab_core::workload::{ArrayDeclaration, Workload};
use hyperslab_core::{Array, DataRules, Datatype, Dims, Error, Result, dims};

/// An open array as far as its data are concerned.
#[derive(Debug)]
pub(crate) struct Content {
    pub name: String,
    pub dtype: Datatype,
    pub shape: Dims,
    pub rules: DataRules,
}

/// How long an array may be at its opening, against what is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extents {
    /// Longer along the slowest dimension is fine: the values of the declared part are the same.
    AtLeast,
    /// It will be extended, which gives the same file only from the same start.
    Exactly,
}

impl Content {
    /// Data of an array of declaration number `array`, made with `seed`. Refuses an array that is not as declared.
    pub fn of(
        workload: &Workload,
        array: u32,
        name: &str,
        open: &dyn Array,
        seed: u64,
        extents: Extents,
    ) -> Result<Self> {
        let declaration = declaration(workload, array)?;
        let spec = open.spec()?;
        let declared = &declaration.spec.shape;
        if spec.dtype != declaration.spec.dtype || spec.shape.len() != declared.len() {
            return Err(Error::invalid(
                "open array",
                format!(
                    "it has type {} and {} dimensions; the workload expects {} and {}",
                    spec.dtype,
                    spec.shape.len(),
                    declaration.spec.dtype,
                    declared.len()
                ),
            )
            .target(name)
            .hint("write and read with the same patterns and number of dimensions"));
        }
        let sizes = || (dims::display(&spec.shape), dims::display(declared));
        if extents == Extents::Exactly && spec.shape != *declared {
            let (found, expected) = sizes();
            return Err(Error::invalid(
                "open array",
                format!(
                    "it has {found} elements; this append expects {expected}: it was appended to before, or written \
                     with other extents"
                ),
            )
            .target(name)
            .hint("write it anew before appending to it"));
        }
        let grows_only_slowest = declared.len() < 2 || spec.shape[1..] == declared[1..];
        if !grows_only_slowest || spec.shape.first() < declared.first() {
            let ((found, expected), ranks) = (sizes(), workload.header.ranks);
            return Err(Error::invalid(
                "open array",
                format!("it has {found} elements; {ranks} ranks of this workload expect {expected}"),
            )
            .target(name)
            .hint("read with as many ranks and the same extents per rank as it was written with"));
        }
        let rules = DataRules::new(&spec.dtype, &declaration.fill, name, seed)?;
        Ok(Self { name: name.into(), dtype: spec.dtype, shape: spec.shape, rules })
    }
}

/// Declaration number `array`.
pub(crate) fn declaration(workload: &Workload, array: u32) -> Result<&ArrayDeclaration> {
    workload
        .header
        .arrays
        .get(array as usize)
        .ok_or_else(|| Error::invalid("run workload", format!("a step uses array {array}, which is not declared")))
}
