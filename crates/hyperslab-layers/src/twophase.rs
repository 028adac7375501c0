//! Two-phase collective buffering: `twophase(aggregators=4)/hdf5`.
//!
//! In a collective transfer ranks often touch many small pieces that interleave with those of others. Here they first
//! exchange data, so that a few ranks, the aggregators, access the format below in few large pieces. Independent
//! transfers, everything that is no transfer, and all calls where there is only one rank go straight to the format below.
//!
//! # How a collective transfer runs
//!
//! 1. Every rank checks its arguments, and all tell each other what they access, or what is wrong: a bad argument of
//!    one rank is an error on all, before anything moves.
//! 2. What is accessed, from the first byte to the last in storage order, is shared out among the aggregators. Storage
//!    order is row-major; arrays with chunks go chunk after chunk, so that a chunk has one aggregator.
//! 3. In each round an aggregator covers one window of its part, of at most `buffer` bytes. Ranks send it their pieces of
//!    the window, and it writes them together as few selections; or they ask, and it reads once for all and answers,
//!    while they ask for the next. Where most windows are touched by nobody, those are skipped. While an aggregator writes, the
//!    next round is prepared and exchanged, if the format below may be called by another thread.
//! 4. All hear whether every access succeeded. The rank whose access failed returns its error, the others one of kind
//!    `Peer`. A long transfer ends early: ranks ask each other now and then.
//!
//! What no rank writes is never written, not even with its old value. Where the selections of several ranks overlap, the
//! highest of these ranks wins. Reads may fetch short gaps between what is asked for.
//!
//! Until the next flush, data written collectively counts as written by the aggregators: whoever reads it before then
//! relies on the format below showing one rank's writes to another.
//!
//! # Who gets what
//!
//! * `even`: the accessed range in equal parts, one for each aggregator.
//! * `aligned`: the same, but parts begin and end at multiples of `unit`, so that no two aggregators share a stripe of
//!   the file system or a block that it locks.
//! * `static-cyclic`: unit 0 of the array belongs to the first aggregator, unit 1 to the second, and so on in turn,
//!   whatever is accessed. With as many aggregators as storage targets each aggregator meets the same target always.
//! * `group-cyclic`: aggregators in groups of `group`; each group has an aligned part of the accessed range, and units
//!   are dealt out in turn within the group. For many aggregators on few storage targets: as regular as the cyclic
//!   kind, but each aggregator stays in one region.
//!
//! Of arrays with chunks, units are whole chunks, as many as it takes to reach `unit`.
//!
//! # Memory
//!
//! An aggregator holds its window (`buffer` bytes; more where a unit of a cyclic kind, or a chunk, is larger) and what it
//! receives or sends of it in that round, as much again, and once more what it receives while it writes. Where ranks
//! overlap, windows shrink by the average number of ranks that access a byte, so that this holds on average. A rank
//! holds what it sends or receives in one round: at most
//! `buffer` for each aggregator, and no more than it transfers. Lists of pieces are sent beside the bytes: a few bytes
//! for each piece, or for each row of equal pieces at equal distances. Ranks whose memory is not packed need a packed
//! copy of what they transfer, unless there is one lane (one aggregator or `static-cyclic`) and no chunks.
//!
//! # What is left to the format below
//!
//! If one rank writes only some fields of its elements, or chunks have more than 1 GiB, all ranks call the format below
//! with the same collective transfer; the container remarks on it.

mod aggregators;
mod agreement;
mod array;
mod boxes;
mod container;
mod coverage;
mod domains;
mod exchange;
mod message;
mod options;
mod order;
mod packed;
mod parts;
mod receiving;
mod rounds;
mod sending;
mod walk;
mod window;
mod writer;

use crate::LayerEntry;
pub(crate) use boxes::boxes;
use container::{Shared, TwoPhaseContainer};
use hyperslab_core::{Caps, Communicator, Container, Format, OpenMode, Result, Stack, StackElement};
use options::Options;
pub(crate) use parts::write_in_parts;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const NAME: &str = "twophase";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "collective transfers by few ranks in large pieces, after an exchange between all (two-phase I/O)",
    options: options::SPECS,
    bare: &[],
    wrap,
};

/// The format with an exchange between ranks, as it is without options.
pub(crate) fn over(inner: Arc<dyn Format>) -> Result<Arc<dyn Format>> {
    Ok(Arc::new(TwoPhaseFormat { inner, options: Options::parse(&StackElement::plain(NAME))? }))
}

fn wrap(element: &StackElement, inner: Arc<dyn Format>, _: &Stack) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    Ok(Arc::new(TwoPhaseFormat { inner, options }))
}

/// A format whose collective transfers run in two phases.
#[derive(Debug)]
struct TwoPhaseFormat {
    inner: Arc<dyn Format>,
    options: Options,
}

#[deny(clippy::missing_trait_methods)]
impl Format for TwoPhaseFormat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caps(&self) -> Caps {
        Caps { collective: true, ..self.inner.caps() }
    }

    fn extension(&self) -> &'static str {
        self.inner.extension()
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let inner = self.inner.open(path, how, comm)?;
        let aggregators = aggregators::choose(&**comm, self.options.aggregators)?;
        Ok(Arc::new(TwoPhaseContainer { inner, shared: Shared::new(comm.clone(), self.options, aggregators) }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.inner.files(path)
    }
}
