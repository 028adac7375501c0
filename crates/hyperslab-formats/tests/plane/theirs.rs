//! Files that h5py wrote: read by the plane, partly overwritten by it, and read again by h5py.

use crate::common::{Noise, directory, open, read, same, seed};
use crate::python::{self, expectation};
use hyperslab_core::{Datatype, Error, MemoryView, OpenMode, Selection, TransferMode};
use hyperslab_testkit::watchdog;
use libtest_mimic::{Completion, Failed, Trial};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![Trial::ignorable_test("files of h5py", || match python::python() {
        None => Ok(Completion::ignored_with(python::MISSING)),
        Some(_) => watchdog::within(Duration::from_secs(600), files_of_h5py),
    })]
}

/// An array that h5py wrote.
struct Given<'a> {
    file: &'a Path,
    name: &'a str,
    dtype: Datatype,
    shape: Vec<u64>,
    bytes: Vec<u8>,
    /// Why the plane must leave it alone.
    reason: Option<&'a str>,
    /// Whether the plane may know its filter or not; libhdf5 does not.
    optional: bool,
}

impl<'a> Given<'a> {
    fn new(told: &'a Value) -> Result<Self, Failed> {
        let text = |key: &str| told[key].as_str().ok_or_else(|| Failed::from(format!("no {key} in {told}")));
        Ok(Self {
            file: Path::new(text("file")?),
            name: text("name")?,
            dtype: serde_json::from_value(told["dtype"].clone())?,
            shape: serde_json::from_value(told["shape"].clone())?,
            bytes: std::fs::read(text("expected")?)?,
            reason: told["reason"].as_str(),
            optional: told["optional"] == true,
        })
    }

    fn about(&self) -> String {
        let file = self.file.file_name().unwrap_or_default().display();
        format!("{file}: {}", self.name)
    }

    /// Reads everything and some, with the plane wherever it should be.
    fn check(&self, noise: &mut Noise, how: OpenMode) -> Result<(), Failed> {
        let about = self.about();
        let container = open("hdf5(plane=on)", self.file, how)?;
        let array = container.array(self.name)?;
        let element = self.dtype.size();
        same(&read(&*array, &Selection::all(&self.shape)?, element)?, &self.bytes, &about)?;
        for _ in 0..3 {
            let some = part(noise, &self.shape)?;
            same(&read(&*array, &some, element)?, &self.packed(&some)?, &about)?;
        }
        let diagnostics = container.diagnostics().join("; ");
        let fits = match self.reason {
            None => diagnostics.is_empty(),
            Some(reason) => diagnostics.contains(reason),
        };
        if !fits {
            return Err(format!("{about}: remarks {diagnostics:?}, expected {:?}", self.reason).into());
        }
        Ok(container.close()?)
    }

    fn packed(&self, some: &Selection) -> Result<Vec<u8>, Error> {
        let runs = some.runs(&self.shape, self.dtype.size())?;
        Ok(runs.flat_map(|run| self.bytes[run.offset as usize..run.end() as usize].to_vec()).collect())
    }

    /// Writes other elements over some, several times.
    fn overwrite(&mut self, noise: &mut Noise) -> Result<(), Failed> {
        let container = open("hdf5(plane=on)", self.file, OpenMode::Update)?;
        let array = container.array(self.name)?;
        let element = self.dtype.size();
        for _ in 0..3 {
            let some = part(noise, &self.shape)?;
            let size = (some.len() * element) as usize;
            // Elements from elsewhere are sure to be valid.
            let from = noise.below((self.bytes.len() - size) as u64 / element + 1) * element;
            let data = self.bytes[from as usize..][..size].to_vec();
            array.write(&some, MemoryView::packed(&data), TransferMode::Independent)?;
            let mut at = 0;
            for run in some.runs(&self.shape, element)? {
                self.bytes[run.offset as usize..run.end() as usize].copy_from_slice(&data[at..][..run.len as usize]);
                at += run.len as usize;
            }
            same(&read(&*array, &Selection::all(&self.shape)?, element)?, &self.bytes, &self.about())?;
        }
        Ok(container.close()?)
    }
}

fn part(noise: &mut Noise, shape: &[u64]) -> Result<Selection, Error> {
    let start: Vec<u64> = shape.iter().map(|&extent| noise.below(extent)).collect();
    let count: Vec<u64> = shape.iter().zip(&start).map(|(&extent, &first)| 1 + noise.below(extent - first)).collect();
    Selection::dense(&start, &count)
}

fn files_of_h5py() -> Result<Completion, Failed> {
    let folder = directory()?;
    let said = python::script("theirs.py", &[folder.path()])?;
    let told = said.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let (head, told) = told.split_first().ok_or("h5py wrote nothing")?;
    if head["plugins"] != true {
        eprintln!("files of h5py: hdf5plugin is not installed, so no zstd and other filters");
    }
    let noise = &mut Noise::new(seed()?);
    let (mut unknown, mut wrong, mut left) = (BTreeSet::new(), Vec::new(), Vec::new());
    let files = python::files();
    for told in told {
        let mut given = Given::new(told)?;
        let checked = given
            .check(noise, OpenMode::Read)
            .and_then(|()| given.overwrite(noise))
            .and_then(|()| given.check(noise, OpenMode::Update));
        match checked {
            Ok(()) => {
                let Given { file, name, dtype, shape, bytes, .. } = &given;
                left.push(expectation(file, name, dtype, shape, bytes, &given.about())?);
            }
            Err(_) if given.optional => {
                unknown.insert(given.name.split('/').next().unwrap_or_default().to_owned());
            }
            Err(failed) => wrong.push(failed.message().unwrap_or_default().to_owned()),
        }
    }
    drop(files);
    if !unknown.is_empty() {
        eprintln!("files of h5py: filters not known here: {unknown:?}");
    }
    if let Err(failed) = python::compare(folder.path(), &left) {
        wrong.push(failed.message().unwrap_or_default().to_owned());
    }
    if wrong.is_empty() { Ok(Completion::Completed) } else { Err(wrong.join("\n").into()) }
}
