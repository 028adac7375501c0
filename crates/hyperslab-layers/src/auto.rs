//! Adaptive I/O: chooses synchronous I/O, `async` or `log` for every epoch: `auto/hdf5`, `auto(dir=/local/scratch)/hdf5`.
//!
//! An **epoch** is a compute phase and the transfers after it. It begins with a transfer after a pause of at least a
//! millisecond that is no shorter than a quarter of the usual pause, or after half a second without such a pause; with
//! several ranks also at a flush. All time between calls counts as computing.
//!
//! The expected time of the next epoch with each choice follows from earlier epochs ([`history`], [`cost`]), and the
//! shortest wins ([`chooser`]). One container is open below, which synchronous I/O and the layers `async` and `log` use in
//! turn ([`strategies`]).
//!
//! # Guarantees
//!
//! * **Order, errors, memory, durability** are those of the strategy in use: of `async` and `log` as documented there, of
//!   synchronous I/O those of the format below. A change of strategy drains the old one first, so that only one of them ever has
//!   buffered writes. A strategy that has failed stays in use, so that its error is reported by the next flush or close, as
//!   without this layer.
//! * **All ranks choose alike.** Ranks compare their epochs at collective calls only: opening and creating arrays, resizing,
//!   flushing, and collective transfers (not at every one of a long sequence). The slowest rank counts, and the first rank
//!   decides for all. Between such calls the strategy stays.
//! * **Bounded risk.** A strategy that was never measured is tried once if it should take at most 15 % more, and otherwise,
//!   or again after 64 epochs, when that costs less than 1 % of the elapsed time.
//! * The history is kept for later runs ([`history_file`]); errors of its file are diagnostics.
//! * Closing an array does not wait for its writes. Dropping a container without closing it drains what is left.
//! * A forked child keeps its strategy.

mod array;
mod choice;
mod chooser;
mod container;
mod controller;
mod cost;
mod epoch_detector;
mod epoch_report;
mod explain;
#[doc(hidden)]
pub mod fuzz_api;
mod history;
mod history_file;
mod least_squares;
mod memcpy_rate;
mod options;
mod request_class;
mod shared_container;
mod shared_history;
mod storage_key;
mod strategies;
mod throughput;
mod timing_sampler;

pub(crate) use shared_history::{HistoriesGuard, lock_histories};

use crate::LayerEntry;
use choice::Choice;
use container::AutoContainer;
use controller::Controller;
use explain::Explain;
use hyperslab_core::{
    Caps, Communicator, Container, Format, LayerEffect, OpenMode, Result, Stack, StackElement, agree,
};
use options::Options;
use shared_history::SharedHistory;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use storage_key::StorageKey;
use strategies::Strategies;

pub(crate) const NAME: &str = "auto";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "waiting, async or log, chosen anew for every time step by what earlier ones took",
    options: options::SPECS,
    bare: &[],
    wrap,
    effect: |_| Ok(LayerEffect::Chosen),
    consequence: None,
    connector_mode: None,
    h5bench_mode: None,
};

fn wrap(element: &StackElement, inner: Arc<dyn Format>, below: &Stack) -> Result<Arc<dyn Format>> {
    Ok(Arc::new(AutoFormat { inner, options: Options::parse(element)?, below: below.clone() }))
}

/// A format whose transfers use the strategy with the shortest expected time.
#[derive(Debug)]
struct AutoFormat {
    inner: Arc<dyn Format>,
    options: Options,
    /// The stack below.
    below: Stack,
}

#[deny(clippy::missing_trait_methods)]
impl Format for AutoFormat {
    hyperslab_core::forward!(self, self.inner, [extension, exists, remove, files]);

    fn name(&self) -> &'static str {
        NAME
    }

    fn caps(&self) -> Caps {
        let mut caps = self.inner.caps();
        caps.execution.prefetch |= self.options.choices.contains(&Choice::Async);
        caps
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(self.open_container(path, how, comm)?))
    }
}

impl AutoFormat {
    fn open_container(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<AutoContainer> {
        let first = comm.rank() == 0;
        let explain =
            self.options.explain.as_deref().filter(|_| first).map_or_else(|| Ok(Explain::default()), Explain::to);
        let explain = agree(&**comm, explain)?;
        let strategies = Strategies::open(&self.inner, &self.below, &self.options, path, how, comm)?;
        let mut wrong = Vec::new();
        let record = first.then(|| {
            let place = StorageKey::of(path, &self.below.to_string());
            let (record, why) = SharedHistory::of(self.options.state.as_deref(), place);
            wrong.extend(why.map(|why| format!("auto: what earlier runs learnt is not used: {why}")));
            record
        });
        let allowed: Vec<Choice> =
            self.options.choices.iter().copied().filter(|choice| strategies.has(*choice)).collect();
        let allowed = if allowed.is_empty() { vec![Choice::Sync] } else { allowed };
        Ok(AutoContainer {
            controller: Arc::new(Controller::new(strategies, allowed, comm.clone(), record, explain)),
            comm: comm.clone(),
            opening: Mutex::default(),
            closed: AtomicBool::new(false),
            wrong: Mutex::new(wrong),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::{ArraySpec, Datatype, Durability, MemoryView, MemoryViewMut, Selection, TransferMode};

    /// Every change from one way to another, with writes before and after that overlap.
    #[test]
    fn every_change_keeps_the_data() {
        let folder = tempfile::tempdir().unwrap();
        let stack: Stack = format!("auto(state=off,dir={})/posix", folder.path().display()).parse().unwrap();
        let inner = hyperslab_formats::build(&stack.format).unwrap();
        let options = Options::parse(&stack.layers[0]).unwrap();
        let format = AutoFormat { inner, options, below: "posix".parse().unwrap() };
        let container =
            format.open_container(&folder.path().join("x"), OpenMode::Create, &hyperslab_comm::Solo::shared()).unwrap();
        let array = container.hierarchy().unwrap().create("a", &ArraySpec::new(Datatype::U8, &[64])).unwrap();
        let mut right = [0u8; 64];
        let strategies: Vec<Choice> = (0..60).map(|step| Choice::ALL[(step + step / 3) % 3]).collect();
        let mut taken = std::collections::BTreeSet::new();
        for (step, to) in strategies.into_iter().enumerate() {
            let before = container.controller.current();
            container.controller.switch_to(Some(to));
            assert_eq!(container.controller.current(), to);
            taken.insert((before.index(), to.index()));
            let (start, len) = (step * 11 % 50, 1 + step * 5 % 14);
            let selection = Selection::dense(&[start as u64], &[len as u64]).unwrap();
            let data = vec![step as u8 + 1; len];
            array.write(&selection, MemoryView::packed(&data), TransferMode::Independent).unwrap();
            right[start..start + len].copy_from_slice(&data);
            if step % 4 == 0 {
                let mut read = [0; 64];
                let all = Selection::all(&[64]).unwrap();
                array.read(&all, MemoryViewMut::packed(&mut read), TransferMode::Independent).unwrap();
                assert_eq!(read, right, "step {step}");
            }
            if step % 13 == 12 {
                container.flush(Durability::Visible).unwrap();
            }
        }
        assert_eq!(taken.iter().filter(|(from, to)| from != to).count(), 6, "{taken:?}");
        container.close().unwrap();
        let plain = hyperslab_formats::build(&stack.format).unwrap();
        let plain = plain.open(&folder.path().join("x"), OpenMode::Read, &hyperslab_comm::Solo::shared()).unwrap();
        let mut read = [0; 64];
        let all = Selection::all(&[64]).unwrap();
        plain.array("a").unwrap().read(&all, MemoryViewMut::packed(&mut read), TransferMode::Independent).unwrap();
        assert_eq!(read, right);
    }
}
