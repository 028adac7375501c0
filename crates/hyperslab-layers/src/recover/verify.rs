//! Comparing a container with what the logs of a job say must be in it.

use super::left::Left;
use super::replay::{Job, Recovery};
use crate::journal::Write;
use crate::pairing::pair;
use hyperslab_core::{
    Array, ArraySpec, Container, Error, ErrorKind, MemoryViewMut, OpenMode, Result, Selection, TransferMode,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Writes that differ from the container, of which later ones may have replaced all that differs. Earlier ones than so many are
/// not compared any further.
const MOST: usize = 256;
/// Larger writes are compared by their checksummed pieces of so many bytes.
const LARGEST: u64 = 256 << 20;

/// What was compared.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    /// Writes of the logs.
    pub writes: u64,
    /// Those of them that later ones replaced in part, and that are too many to tell in which.
    pub skipped: u64,
}

/// A write of which some elements are not in the container, and those that no later write has.
struct Suspect {
    write: Write,
    remaining: Selection,
}

impl Recovery<'_> {
    /// Reads back every element that the logs of a job name, and compares: the last of overlapping writes counts. To be called
    /// after [`Recovery::bring`], before the logs are removed.
    pub fn compare(&self, job: &Job) -> Result<Compared> {
        let header = job.header()?;
        let format = self.format_of(header)?;
        let container = format.open(&header.container, OpenMode::Read, &self.alone)?;
        let compared = self.compare_with(job, &*container);
        compared.and_then(|compared| container.close().map(|()| compared))
    }

    fn compare_with(&self, job: &Job, container: &dyn Container) -> Result<Compared> {
        let (mut compared, mut suspects) = (Compared::default(), Vec::<Suspect>::new());
        let mut arrays: HashMap<String, (Arc<dyn Array>, ArraySpec)> = HashMap::new();
        let mut buffers = (Vec::new(), Vec::new());
        for journal in job.journals.iter().filter(|journal| Left::can_be_replayed(journal)) {
            let Some(header) = &journal.header else { continue };
            let mut reader = journal.found.reader(self.files, header);
            while let Some(write) = reader.next_write(journal.done_before)? {
                if write.sequence < journal.done_before || write.selection.is_empty() {
                    continue;
                }
                let name = &write.array.name;
                for suspect in suspects.iter_mut().filter(|suspect| suspect.write.array.name == *name) {
                    suspect.remaining = suspect.remaining.subtract(&write.selection)?;
                }
                suspects.retain(|suspect| !suspect.remaining.is_empty());
                if !arrays.contains_key(name) {
                    if arrays.len() >= 64 {
                        arrays.drain().try_for_each(|(_, (array, _))| array.close())?;
                    }
                    let array = container.array(name).map_err(|error| error.target(name))?;
                    let spec = array.spec()?;
                    arrays.insert(name.clone(), (array, spec));
                }
                let Some((array, _)) = arrays.get(name) else { continue };
                compared.writes += 1;
                if write.len() > LARGEST {
                    compared.skipped += 1;
                } else if !is_there(&**array, &write, &mut buffers)? {
                    if suspects.len() >= MOST {
                        suspects.remove(0);
                        compared.skipped += 1;
                    }
                    suspects.push(Suspect { remaining: write.selection.clone(), write });
                }
            }
        }
        for suspect in &suspects {
            let name = &suspect.write.array.name;
            let array = container.array(name)?;
            let shape = array.spec()?.shape;
            if !is_there(&*array, &suspect.write, &mut buffers)? {
                let (size, (is, must)) = (suspect.write.array.dtype.size(), &buffers);
                let selection = &suspect.write.selection;
                pair(&suspect.remaining, selection, selection, &shape, |from, to, len| {
                    let part = |at: u64| (at * size) as usize..((at + len) * size) as usize;
                    match is.get(part(from)) == must.get(part(to)) {
                        true => Ok(()),
                        false => Err(differs(name)),
                    }
                })?;
            }
            array.close()?;
        }
        arrays.drain().try_for_each(|(_, (array, _))| array.close())?;
        Ok(compared)
    }
}

fn differs(name: &str) -> Error {
    let message = "what was written is not what the file has when it is read back";
    Error::new(ErrorKind::Corrupt, "verify", message).target(name)
}

/// Reads the elements of a write from both sides, the container's first. Returns whether they are the same.
fn is_there(array: &dyn Array, write: &Write, (is, must): &mut (Vec<u8>, Vec<u8>)) -> Result<bool> {
    let len = usize::try_from(write.len()).map_err(|_| Error::invalid("verify", "a write is too long"))?;
    is.resize(len, 0);
    must.resize(len, 0);
    write.read_into(must)?;
    array.read(&write.selection, MemoryViewMut::packed(is), TransferMode::Independent)?;
    Ok(is == must)
}
