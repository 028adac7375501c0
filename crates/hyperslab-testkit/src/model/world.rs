//! A container and its twin, to which operations happen.

use super::operation::{Kind, Operation, attribute, below, common, layout, name, new_shape, selection, spec};
use crate::test_data::Noise;
use crate::{Memory, OraclePair, Pair, Subject, buffer};
use hyperslab_core::{
    Array, ArraySpec, Caps, Durability, ErrorKind, Format, MemoryView, OpenMode, Result, TransferMode,
};
use libtest_mimic::Failed;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct World<'a> {
    subject: &'a Subject,
    caps: Caps,
    pair: Pair,
    twins: BTreeMap<String, OraclePair>,
    /// What happened, in words.
    pub(super) story: Vec<String>,
}

/// Both must succeed or both must fail.
fn alike<T, U>(ours: &Result<T>, theirs: &Result<U>, what: &str) -> Result<(), Failed> {
    match (ours, theirs) {
        (Ok(_), Ok(_)) | (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(error)) => Err(format!("{what} succeeded, the oracle refuses: {error}").into()),
        (Err(error), Ok(_)) => Err(format!("{what} failed, the oracle succeeds: {error:?}").into()),
    }
}

/// Whether an array may have another shape some day.
fn grows(array: &Arc<dyn Array>) -> bool {
    array.spec().is_ok_and(|spec| spec.max_shape.is_some())
}

impl<'a> World<'a> {
    pub(super) fn new(subject: &'a Subject) -> Result<Self, Failed> {
        let pair = subject.pair("a", OpenMode::Create)?;
        Ok(Self { subject, caps: common(&subject.caps), pair, twins: BTreeMap::new(), story: Vec::new() })
    }

    pub(super) fn apply(&mut self, operation: &Operation) -> Result<(), Failed> {
        let noise = &mut Noise::new(operation.choice);
        match operation.kind {
            Kind::Create => self.create(noise),
            Kind::CreateGroup if self.caps.data.groups => self.create_group(noise),
            Kind::Write => self.write(noise),
            Kind::Read => self.read(noise),
            Kind::Resize if self.caps.data.resize => self.resize(noise),
            Kind::SetAttribute if self.caps.data.attributes => self.set_attribute(noise),
            Kind::ReadAttribute if self.caps.data.attributes => self.read_attributes(),
            Kind::Flush => {
                let how = if below(noise, 4) == 0 { Durability::Durable } else { Durability::Visible };
                Ok(self.pair.subject.flush(how)?)
            }
            Kind::Reopen => self.reopen(),
            Kind::Remove => self.remove(),
            _ => Ok(()),
        }
    }

    /// Everything equals the oracle, before and after opening again.
    pub(super) fn finish(&mut self) -> Result<(), Failed> {
        self.compare("at the end")?;
        self.reopen()?;
        self.compare("at the end, opened again")?;
        Ok(self.pair.close()?)
    }

    fn compare(&self, when: &str) -> Result<(), Failed> {
        let (ours, theirs) = (self.pair.subject.arrays()?, self.pair.oracle.arrays()?);
        if ours != theirs {
            return Err(format!("{when}: the arrays are {ours:?}, expected {theirs:?}").into());
        }
        for (name, twin) in &self.twins {
            twin.compare_all(&format!("{when}, {name:?}"))?;
        }
        if self.caps.data.attributes { self.read_attributes() } else { Ok(()) }
    }

    fn create(&mut self, noise: &mut Noise) -> Result<(), Failed> {
        let (name, mut spec) = (name(noise), spec(noise, &self.caps)?);
        if self.caps.data.shared_growth && self.twins.values().any(|twin| grows(&twin.oracle)) {
            // The oracle's arrays grow each for itself.
            spec.max_shape = None;
        }
        self.story.push(format!("create {name:?} as {spec:?}"));
        let ours = self.pair.subject.create(name, &spec);
        if matches!(&ours, Err(error) if error.kind() == ErrorKind::Unsupported) {
            return Ok(()); // an honest refusal of something that Caps cannot express
        }
        let theirs = self.pair.oracle.create(name, &ArraySpec { filters: Vec::new(), ..spec.clone() });
        alike(&ours, &theirs, &format!("create {name:?} {spec:?}"))?;
        if let (Ok(subject), Ok(oracle)) = (ours, theirs) {
            let twin = OraclePair { subject, oracle, dtype: spec.dtype };
            twin.compare_all(&format!("{name:?}, just created"))?;
            self.twins.insert(name.into(), twin);
        }
        Ok(())
    }

    fn create_group(&mut self, noise: &mut Noise) -> Result<(), Failed> {
        let name = name(noise);
        let (ours, theirs) = (self.pair.subject.create_group(name), self.pair.oracle.create_group(name));
        alike(&ours, &theirs, &format!("create group {name:?}"))
    }

    fn pick(&self, noise: &mut Noise) -> Option<(&String, &OraclePair)> {
        self.twins.iter().nth(below(noise, self.twins.len() as u64) as usize)
    }

    fn write(&mut self, noise: &mut Noise) -> Result<(), Failed> {
        let Some((name, twin)) = self.pick(noise) else { return Ok(()) };
        let selection = selection(noise, &twin.oracle.spec()?.shape)?;
        let layout = layout(noise, &twin.dtype, &selection, self.caps.data.partial_fields)?;
        let data = buffer(&twin.dtype, &layout, selection.len(), noise.next())?;
        let view = MemoryView { data: &data, layout: &layout };
        let transfer = if below(noise, 4) == 0 { TransferMode::Collective } else { TransferMode::Independent };
        let what = format!("write {name:?} {selection:?} from {layout:?}");
        let ours = twin.subject.write(&selection, view, transfer);
        let theirs = twin.oracle.write(&selection, view, transfer);
        alike(&ours, &theirs, &what)?;
        let compared = if below(noise, 3) == 0 { twin.compare_all(&format!("after {what}")) } else { Ok(()) };
        self.story.push(what);
        compared
    }

    fn read(&mut self, noise: &mut Noise) -> Result<(), Failed> {
        let Some((name, twin)) = self.pick(noise) else { return Ok(()) };
        let shape = twin.oracle.spec()?.shape;
        let selection = selection(noise, &shape)?;
        let layout = layout(noise, &twin.dtype, &selection, true)?;
        if selection.check_inside(&shape).is_err() {
            let mut data = buffer(&twin.dtype, &layout, selection.len(), 0)?;
            let view = hyperslab_core::MemoryViewMut { data: &mut data, layout: &layout };
            return match twin.subject.read(&selection, view, TransferMode::Independent) {
                Err(_) => Ok(()),
                Ok(()) => Err(format!("read {name:?} {selection:?} outside {shape:?} succeeded").into()),
            };
        }
        twin.compare(&selection, &layout, &format!("{name:?} {selection:?} into {layout:?}"))
    }

    fn resize(&mut self, noise: &mut Noise) -> Result<(), Failed> {
        let Some((name, twin)) = self.pick(noise) else { return Ok(()) };
        let now = twin.oracle.spec()?;
        let shape = new_shape(noise, &now);
        if now.max_shape.is_none() && shape.iter().zip(&now.shape).all(|(to, from)| to <= from) {
            // A file that knows only the largest shape cannot tell an array that may shrink from one that may not.
            return Ok(());
        }
        let ours = twin.subject.resize(&shape);
        if matches!(&ours, Err(error) if error.kind() == ErrorKind::Unsupported) {
            return twin.compare_all(&format!("{name:?} after a refused resize"));
        }
        let theirs = twin.oracle.resize(&shape);
        let story = format!("resize {name:?} to {shape:?}");
        alike(&ours, &theirs, &format!("resize {name:?} from {:?} to {shape:?}", now.shape))?;
        let compared = twin.compare_all(&format!("{name:?} resized from {:?} to {shape:?}", now.shape));
        self.story.push(story);
        compared
    }

    fn objects(&self) -> Vec<String> {
        std::iter::once(String::new()).chain(self.twins.keys().cloned()).collect()
    }

    fn set_attribute(&mut self, noise: &mut Noise) -> Result<(), Failed> {
        let mut objects = self.objects();
        objects.push("nothing/here".into());
        let object = &objects[below(noise, objects.len() as u64) as usize];
        let key = ["units", "Long Name", "é"][below(noise, 3) as usize];
        let value = attribute(noise);
        let ours = self.pair.subject.set_attribute(object, key, &value);
        let theirs = self.pair.oracle.set_attribute(object, key, &value);
        alike(&ours, &theirs, &format!("set {key:?} of {object:?} to {value:?}"))
    }

    fn read_attributes(&self) -> Result<(), Failed> {
        for object in self.objects() {
            let (ours, theirs) = (self.pair.subject.attributes(&object)?, self.pair.oracle.attributes(&object)?);
            if ours != theirs {
                return Err(format!("{object:?} has the attributes {ours:?}, expected {theirs:?}").into());
            }
            for key in theirs {
                let (ours, theirs) =
                    (self.pair.subject.attribute(&object, &key)?, self.pair.oracle.attribute(&object, &key)?);
                if ours != theirs {
                    return Err(format!("{key:?} of {object:?} is {ours:?}, expected {theirs:?}").into());
                }
            }
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), Failed> {
        self.story.push("close and open".into());
        self.pair.close()?;
        self.pair = self.subject.pair("a", OpenMode::Update)?;
        for (name, twin) in &mut self.twins {
            *twin = OraclePair::open(&self.pair.subject, &self.pair.oracle, name)?;
        }
        Ok(())
    }

    fn remove(&mut self) -> Result<(), Failed> {
        self.pair.close()?;
        self.twins.clear();
        self.story.push("remove".into());
        self.subject.format.remove(&self.subject.path("a"))?;
        Memory.remove(&self.subject.twin_path("a"))?;
        self.pair = self.subject.pair("a", OpenMode::Create)?;
        Ok(())
    }
}
