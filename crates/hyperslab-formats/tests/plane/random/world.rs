//! A file, its twin in the oracle, and up to two handles of the array in it.

use super::case::{Case, Kind, Step, layout, new_shape, selection};
use crate::common::{Noise, open, read};
use crate::python::expectation;
use hyperslab_comm::Solo;
use hyperslab_core::{Array, ArraySpec, Container, Durability, Format, OpenMode, Result, Selection};
use hyperslab_testkit::{Memory, Twin};
use libtest_mimic::Failed;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "array";

/// What went wrong, and the story until then.
pub struct Failure {
    pub text: String,
}

struct Handle {
    container: Arc<dyn Container>,
    array: Arc<dyn Array>,
}

struct World<'a> {
    case: &'a Case,
    path: &'a Path,
    oracle: Arc<dyn Array>,
    /// By libhdf5, and by the plane.
    handles: [Option<Handle>; 2],
    story: Vec<String>,
    /// Whether the plane did everything that it was asked for.
    by_plane: bool,
}

/// The container of the oracle, removed at the end.
struct OracleAt(PathBuf);

impl Drop for OracleAt {
    fn drop(&mut self) {
        let _ = Memory.remove(&self.0);
    }
}

/// Plays a case; returns what h5py must find in the file.
pub fn play(case: &Case, path: &Path) -> Result<Value, Failure> {
    let twin = OracleAt(Path::new("oracle").join(path.strip_prefix("/").unwrap_or(path)));
    let mut story = Vec::new();
    let played = (|| {
        let oracle = Memory.open(&twin.0, OpenMode::Create, &Solo::shared())?;
        let oracle = oracle.create(NAME, &ArraySpec { filters: Vec::new(), ..case.spec.clone() })?;
        let mut world = World { case, path, oracle, handles: [None, None], story: Vec::new(), by_plane: true };
        let played = world.create().and_then(|()| case.steps.iter().try_for_each(|step| world.step(step)));
        let played = played.and_then(|()| world.finish());
        story = std::mem::take(&mut world.story);
        played
    })();
    played.map_err(|failed| {
        let message = failed.message().unwrap_or("no message").to_owned();
        let Case { spec, on, off, .. } = case;
        let text = format!("{message}\n  on: {on}\n  off: {off}\n  {spec:?}\n  {}\n", story.join("\n  "));
        Failure { text }
    })
}

impl World<'_> {
    fn stack(&self, on: bool) -> &str {
        if on { &self.case.on } else { &self.case.off }
    }

    fn create(&mut self) -> Result<(), Failed> {
        let first = self.case.at_once.unwrap_or(self.case.number.is_multiple_of(2));
        self.story.push(format!("create with plane {first}, at once: {:?}", self.case.at_once));
        let container = open(self.stack(first), self.path, OpenMode::Create)?;
        let array = container.create(NAME, &self.case.spec)?;
        self.handles[usize::from(first)] = Some(Handle { container, array });
        if self.case.at_once.is_some() {
            self.open(!first)?;
        }
        Ok(())
    }

    fn open(&mut self, on: bool) -> Result<(), Failed> {
        let container = open(self.stack(on), self.path, OpenMode::Update)?;
        let array = container.array(NAME)?;
        self.handles[usize::from(on)] = Some(Handle { container, array });
        Ok(())
    }

    fn close(&mut self, noise: &mut Noise) -> Result<(), Failed> {
        let mut order = [0, 1];
        if noise.once_in(2) {
            order.reverse();
        }
        for handle in order.into_iter().filter_map(|at| self.handles[at].take()) {
            self.by_plane &= handle.container.diagnostics().is_empty();
            if noise.once_in(2) {
                handle.array.close()?;
            }
            handle.container.close()?;
        }
        Ok(())
    }

    /// The handle of one way; where only one is open at a time the other is closed first.
    fn handle(&mut self, on: bool, noise: &mut Noise) -> Result<&Handle, Failed> {
        if self.handles[usize::from(on)].is_none() {
            self.story.push(format!("close, open with plane {on}"));
            self.close(noise)?;
            self.open(on)?;
        }
        self.handles[usize::from(on)].as_ref().ok_or_else(|| "no handle".into())
    }

    fn twin(&mut self, on: bool, noise: &mut Noise) -> Result<Twin, Failed> {
        let subject = self.handle(on, noise)?.array.clone();
        Ok(Twin { subject, oracle: self.oracle.clone(), dtype: self.case.spec.dtype.clone() })
    }

    fn step(&mut self, step: &Step) -> Result<(), Failed> {
        let noise = &mut Noise::new(step.choice);
        let now = self.oracle.spec()?;
        match step.kind {
            Kind::Write => {
                let twin = self.twin(step.on, noise)?;
                let selection = selection(noise, &now.shape)?;
                let layout = layout(noise, &now.dtype, &selection)?;
                self.story.push(format!("write (plane {}) {selection:?} from {layout:?}", step.on));
                twin.write(&selection, &layout, noise.next())?;
                self.now_and_then(noise)
            }
            Kind::Read => {
                let twin = self.twin(step.on, noise)?;
                let selection = selection(noise, &now.shape)?;
                let layout = layout(noise, &now.dtype, &selection)?;
                let what = format!("read (plane {}) {selection:?} into {layout:?}", step.on);
                twin.compare(&selection, &layout, &what)?;
                self.story.push(what);
                Ok(())
            }
            Kind::Resize => {
                let Some(max) = &self.case.spec.max_shape else { return Ok(()) };
                if self.case.spec.max_shape.iter().flatten().zip(&self.case.spec.shape).all(|(m, s)| *m == Some(*s)) {
                    return Ok(()); // the file cannot tell this from an array that never changes
                }
                let shape = new_shape(noise, &now, max);
                let twin = self.twin(step.on, noise)?;
                self.story.push(format!("resize (plane {}) from {:?} to {shape:?}", step.on, now.shape));
                twin.subject.resize(&shape)?;
                twin.oracle.resize(&shape)?;
                self.now_and_then(noise)
            }
            Kind::Flush => {
                self.story.push(format!("flush (plane {})", step.on));
                Ok(self.handle(step.on, noise)?.container.flush(Durability::Visible)?)
            }
            Kind::Reopen => {
                let first = noise.once_in(2);
                self.story.push(format!("close, open with plane {first} first"));
                self.close(noise)?;
                self.open(first)?;
                if self.case.at_once.is_some() {
                    self.open(!first)?;
                }
                Ok(())
            }
        }
    }

    /// Compares everything once in a while, by any way that is open.
    fn now_and_then(&mut self, noise: &mut Noise) -> Result<(), Failed> {
        if !noise.once_in(3) {
            return Ok(());
        }
        for (on, handle) in [false, true].into_iter().zip(&self.handles) {
            if let Some(handle) = handle {
                let (subject, oracle) = (handle.array.clone(), self.oracle.clone());
                let twin = Twin { subject, oracle, dtype: self.case.spec.dtype.clone() };
                twin.compare_all(&format!("all (plane {on})"))?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Value, Failed> {
        let noise = &mut Noise::new(self.case.number);
        for on in [noise.once_in(2), true, false] {
            self.story.push(format!("at the end, plane {on}"));
            self.twin(on, noise)?.compare_all(&format!("at the end (plane {on})"))?;
        }
        self.close(noise)?;
        let spec = self.oracle.spec()?;
        let bytes = read(&*self.oracle, &Selection::all(&spec.shape)?, spec.dtype.size())?;
        let Case { seed, number, .. } = self.case;
        let about = format!("HYPERSLAB_SEED={seed}, case {number}");
        let mut told = expectation(self.path, NAME, &spec.dtype, &spec.shape, &bytes, &about)?;
        told["by_plane"] = self.by_plane.into();
        Ok(told)
    }
}
