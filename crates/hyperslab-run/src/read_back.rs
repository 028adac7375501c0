//! Verifies a finished write: reads every written selection back and compares.

use crate::buffers::Buffers;
use crate::data_seed::DataSeed;
use crate::execute::{RunContext, container, no_array};
use crate::expected_data::{ExpectedData, Extents};
use hyperslab_core::workload::{Step, Unchecked};
use hyperslab_core::{Array, Communicator, Container, Datatype, Error, ErrorKind, OpenMode, Result, TransferMode};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Reads back what the next rank wrote, so that no rank's own memory of the file can hide a mistake.
/// Collective. Returns the number of bytes compared.
pub(crate) fn read_back(context: &RunContext<'_>, comm: &Arc<dyn Communicator>) -> Result<u64> {
    let writer = (comm.rank() + 1) % comm.size();
    let mut files: Vec<Option<Arc<dyn Container>>> = context.workload.header.files.iter().map(|_| None).collect();
    let mut seeds = vec![context.workload.header.seed; files.len()];
    let mut slots: HashMap<u32, (Arc<dyn Array>, ExpectedData)> = HashMap::new();
    let mut buffers = Buffers::default();
    let mut bytes = 0;
    let untold = |file: u32| context.file(file).map(|declaration| declaration.unchecked == Some(Unchecked::All));
    // Slots of files that no rule tells.
    let mut passed = HashSet::new();
    for step in context.workload.steps(writer)? {
        if context.progress.stop_requested() {
            return Err(Error::new(ErrorKind::Interrupted, "verify", "stopped on request"));
        }
        match step? {
            Step::OpenFile { file, .. } if untold(file)? => {}
            Step::Create { slot, file, .. } | Step::Open { slot, file, .. } if untold(file)? => {
                passed.insert(slot);
            }
            Step::Write { slot, .. } if passed.contains(&slot) => {}
            Step::OpenFile { file, .. } => {
                let path = context.path(file, writer)?;
                let comm = context.comm_for(file, comm);
                let container = context.format.open(&path, OpenMode::Read, &comm)?;
                seeds[file as usize] = DataSeed::of(context, context.file(file)?, &*container)?.seed;
                files[file as usize] = Some(container);
            }
            Step::Create { slot, file, array, name } | Step::Open { slot, file, array, name } => {
                let open = container(&files, file)?.array(&name)?;
                let seed = seeds[file as usize];
                let expected = ExpectedData::of(context.workload, array, &name, &*open, seed, Extents::AtLeast)?;
                slots.insert(slot, (open, expected));
            }
            Step::Write { slot, selection, .. }
                if slots.get(&slot).is_some_and(|(_, content)| content.dtype == Datatype::VariableString) =>
            {
                let (array, content) = slots.get(&slot).ok_or_else(|| no_array(slot))?;
                let found = array.read_strings(&selection, TransferMode::Independent)?;
                Buffers::check_strings(content, &selection, &found)?;
                bytes += found.bytes();
            }
            Step::Write { slot, selection, memory, .. } => {
                let (array, content) = slots.get(&slot).ok_or_else(|| no_array(slot))?;
                buffers.clear(content, &selection, &memory, true)?;
                array.read(&selection, buffers.view_mut(&memory), TransferMode::Independent)?;
                buffers.check(content, &selection, &memory)?;
                bytes += Buffers::payload(content, &selection, &memory)?;
            }
            Step::CloseArray { slot } => {
                passed.remove(&slot);
                if let Some((array, _)) = slots.remove(&slot) {
                    array.close()?;
                }
            }
            Step::CloseFile { file } => {
                if let Some(container) = files[file as usize].take() {
                    container.close()?;
                }
            }
            _ => {}
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::execute::run_rank;
    use crate::progress::Progress;
    use hyperslab_comm::Solo;
    use hyperslab_core::workload::{
        ArrayDeclaration, FileDeclaration, Header, MIXED_SEEDS, SEED_ATTRIBUTE, StepSource, Update, WORKLOAD_VERSION,
        Workload,
    };
    use hyperslab_core::{ArraySpec, Attribute, Datatype, Fill, Selection, StackElement};
    use std::path::Path;

    #[derive(Debug)]
    struct Fixed(Vec<Step>);

    impl StepSource for Fixed {
        fn steps(&self, _: usize) -> Result<Box<dyn Iterator<Item = Result<Step>> + Send + '_>> {
            Ok(Box::new(self.0.iter().cloned().map(Ok)))
        }
    }

    fn workload(seed: u64, tag: i64, file: FileDeclaration) -> Workload {
        let (open, array) = if file.created {
            (OpenMode::Create, Step::Create { slot: 0, file: 0, array: 0, name: "a".into() })
        } else {
            (OpenMode::Update, Step::Open { slot: 0, file: 0, array: 0, name: "a".into() })
        };
        let value = Attribute::integer(tag);
        let steps = vec![
            Step::OpenFile { file: 0, how: open },
            array,
            Step::Write {
                slot: 0,
                selection: Selection::dense(&[2], &[3]).unwrap(),
                memory: Arc::default(),
                transfer: TransferMode::Independent,
            },
            Step::Attribute { file: 0, object: "".into(), name: SEED_ATTRIBUTE.into(), value },
            Step::CloseArray { slot: 0 },
            Step::CloseFile { file: 0 },
        ];
        let header = Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: "lost".into(),
            about: String::new(),
            ranks: 1,
            seed,
            files: vec![file],
            arrays: vec![ArrayDeclaration { spec: ArraySpec::new(Datatype::F32, &[8]), fill: Fill::Random }],
        };
        Workload::new(header, Arc::new(Fixed(steps))).unwrap()
    }

    #[test]
    fn a_lost_overwrite_is_found() {
        for name in ["posix", "hdf5", "zarr"] {
            let directory = tempfile::tempdir().unwrap();
            let format = hyperslab_formats::build(&StackElement::plain(name)).unwrap();
            let progress = Progress::default();
            let comm = Solo::shared();
            let context = |workload| RunContext {
                workload,
                format: &*format,
                directory: directory.path() as &Path,
                verify: true,
                durable: false,
                samples: None,
                progress: &progress,
            };
            let first = workload(1, 1, FileDeclaration::created("f"));
            run_rank(&context(&first), &comm).unwrap();
            assert_eq!(read_back(&context(&first), &comm).unwrap(), 12);

            let second = workload(2, MIXED_SEEDS, FileDeclaration::updated("f", Update::Overwrite));
            let error = read_back(&context(&second), &comm).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch, "nothing was overwritten yet: {error}");
            run_rank(&context(&second), &comm).unwrap();
            assert_eq!(read_back(&context(&second), &comm).unwrap(), 12);
        }
    }
}
